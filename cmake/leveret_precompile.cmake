# leveret_precompile_as(GROUP TARGET HEADER...): compiles headers once for all targets of a group, which are compiled with
# the same options. The first one says which headers. Not where a compiler cache does as well, and not without
# LEVERET_PRECOMPILE: a build without it sees a header that a source forgot.
function(leveret_precompile_as group target)
  if(NOT LEVERET_PRECOMPILE OR CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  get_property(first GLOBAL PROPERTY leveret_precompiled_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY leveret_precompiled_${group} ${target})
  endif()
endfunction()
