# The test cases of a GoogleTest program as tests of ctest. A program of many small cases takes longer
# to start than a case takes to run, so that all instances of a case, which differ in their parameter
# alone, are one test: leveret_test_cases(PROGRAM LABEL SECONDS) adds SUITE.CASE for each. Conformance
# tests are the most, and of a suite all cases are one: starting them took as long as half of them.
# tools/check counts the instances that ran, by what the program prints.
#
# After each build, this file as a script writes what ctest reads: cmake -DPROGRAM=... -P cases.cmake
function(leveret_test_cases program label seconds)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${program}_cases.cmake)
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${list} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D LIST=${list} -D LABEL=${label}
      -D EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR} -D SECONDS=${seconds} -P ${PROJECT_SOURCE_DIR}/tests/cases.cmake)
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cases.cmake)
  # A program that was not built is a test that fails, not one that is missing.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${list}\")\n  include(\"${list}\")\nelse()\n"
    "  add_test(${program}_NOT_BUILT ${program}_NOT_BUILT)\n"
    "  set_tests_properties(${program}_NOT_BUILT PROPERTIES LABELS ${label})\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

set(runner)
if(EMULATOR)
  set(runner "[==[${EMULATOR}]==] ")
endif()
execute_process(COMMAND ${EMULATOR} ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE code TIMEOUT 60)
if(NOT code EQUAL 0)
  file(REMOVE ${PROGRAM})
  message(FATAL_ERROR "${PROGRAM} does not list its cases: ${code}\n${listed}")
endif()
# "suite." at the start of a line, its cases below it: "  case", or for each instance "  case/name  # value".
string(REGEX REPLACE "[][;\\]" "_" listed "${listed}")
string(REPLACE "\n" ";" lines "${listed}")
set(text "")
set(last "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+\\.)( |$)")
    set(suite ${CMAKE_MATCH_1})
  elseif(line MATCHES "^  ([^ /]+)(/?)")
    set(name ${suite}${CMAKE_MATCH_1})
    set(filter ${name})
    if(LABEL STREQUAL conformance)
      string(REGEX REPLACE "\\.$" "" name ${suite})
      set(filter "${suite}*")
    elseif(CMAKE_MATCH_2)
      set(filter "${name}/*")
    endif()
    if(NOT name STREQUAL last)
      string(APPEND text "add_test([==[${name}]==] ${runner}[==[${PROGRAM}]==] [==[--gtest_filter=${filter}]==])\n"
        "set_tests_properties([==[${name}]==] PROPERTIES LABELS ${LABEL} TIMEOUT ${SECONDS}\n"
        "  FAIL_REGULAR_EXPRESSION [==[Running 0 tests]==])\n")
    endif()
    set(last ${name})
  endif()
endforeach()
if(NOT text)
  file(REMOVE ${PROGRAM})
  message(FATAL_ERROR "${PROGRAM} has no test cases")
endif()
file(WRITE ${LIST} "${text}")
