# leveret_flags: compile options of every target of this project, never of a user's.
add_library(leveret_flags INTERFACE)
target_compile_features(leveret_flags INTERFACE cxx_std_20)
target_compile_options(leveret_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-interference-size>
  # In tests not of a name in another file that is compiled together with this one (CMAKE_UNITY_BUILD).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<OR:$<STREQUAL:$<TARGET_PROPERTY:NAME>,leveret>,$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>>>:-Wshadow>
  $<$<BOOL:${LEVERET_WERROR}>:-Werror>)
# Here and not on single targets: library, tests and model tests compile the same inline functions.
if(LEVERET_CHECKS)
  target_compile_definitions(leveret_flags INTERFACE LEVERET_DEBUG_CHECKS)
endif()
if(LEVERET_SANITIZE)
  target_compile_options(leveret_flags INTERFACE
    -fsanitize=${LEVERET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # GCC's flow analysis does not see through the sanitizers' checks and warns of what cannot happen.
    -Wno-maybe-uninitialized)
  # Behind the option that it takes back: what a target says of itself stands before what it gets from here.
  target_compile_options(leveret_flags INTERFACE
    $<$<BOOL:$<TARGET_PROPERTY:LEVERET_WITHOUT_UBSAN>>:-fno-sanitize=undefined>)
  target_link_options(leveret_flags INTERFACE -fsanitize=${LEVERET_SANITIZE})
  if(LEVERET_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # ThreadSanitizer does not see stand-alone fences: there must be none in a build it checks.
    target_compile_options(leveret_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror=tsan>)
  endif()
endif()

# Programs are linked in a third of the time by another linker than the compiler's own.
if(LEVERET_LINKER)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=${LEVERET_LINKER} leveret_has_linker)
  if(leveret_has_linker)
    add_link_options(-fuse-ld=${LEVERET_LINKER})
  endif()
endif()
