# Installation: headers, library, CMake package and pkg-config file.
include(CMakePackageConfigHelpers)

install(TARGETS leveret EXPORT leveretTargets)
install(DIRECTORY include/leveret DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(leveret_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leveret)
install(EXPORT leveretTargets NAMESPACE leveret:: DESTINATION ${leveret_cmake_dir})
configure_package_config_file(cmake/leveretConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/leveretConfig.cmake
  INSTALL_DESTINATION ${leveret_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/leveretConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/leveretConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/leveretConfigVersion.cmake
  DESTINATION ${leveret_cmake_dir})
# The prefix is relative to the file, so that --install --prefix and a moved tree both work.
file(RELATIVE_PATH leveret_pc_to_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(cmake/leveret.pc.in ${CMAKE_CURRENT_BINARY_DIR}/leveret.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/leveret.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
