# Changed copies of files of src/ for tests that must find a mistake; see tests/model/README.md.
#
# leveret_mutants(OUT FOLDER...) applies the patches in the folders and writes the changed files below OUT, which
# comes first in the include path of what is built with them. It sets in the caller's scope
#   mutant_files    the changed files, as paths below src/
#   mutant_sources  the sources that are, or include, a changed file
#   mutant_faults   empty, or what to say: a patch does not apply any more
#   mutant_key      a word that is another one for other files
# Neither a build nor ccache notices that a copy has come between a program and a file of src/ which it included so far:
# what is compiled with the copies must have the definition LEVERET_CHANGED_FILES=${mutant_key}.
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)

function(leveret_mutants out)
  set(patches)
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${folder}/*.patch)
    list(APPEND patches ${found})
  endforeach()
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/mutants write ${out} ${ARGN}
    RESULT_VARIABLE code ERROR_VARIABLE said OUTPUT_QUIET)
  set(files)
  set(users)
  if(EXISTS ${out}_sources.txt)
    file(READ ${out}.txt files)
    file(READ ${out}_sources.txt users)
  endif()
  set(sources ${files})
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patches} ${sources} ${PROJECT_SOURCE_DIR}/tools/mutants)
  if(code EQUAL 0)
    set(said "")
  elseif(NOT said)
    set(said "tools/mutants ended with ${code}")
  endif()
  string(MD5 key "${files}")
  set(mutant_key k${key} PARENT_SCOPE)
  set(mutant_files ${files} PARENT_SCOPE)
  set(mutant_sources ${users} PARENT_SCOPE)
  set(mutant_faults "${said}" PARENT_SCOPE)
endfunction()
