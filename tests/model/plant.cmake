# Changed copies of files of src/ for the model tests. They come first in the tests' include path.
#
# plant(FILE FROM TO) replaces one piece of code; plant_write(FOLDER) writes what was changed since
# the last plant_write(). In most, model::fault("NAME") chooses while the program runs between what
# stood there and a mistake. A piece that is no longer in the file goes to the property plant_faults,
# and model_tests is not built: the change must follow the code.

function(plant file from to)
  get_property(text GLOBAL PROPERTY "plant_${file}")
  if(NOT text)
    file(READ "${PLANT_SOURCE}/${file}" text)
    set_property(GLOBAL APPEND PROPERTY plant_files "${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PLANT_SOURCE}/${file}")
  endif()
  # Wherever FROM has white space, any white space will do.
  string(STRIP "${from}" from)
  string(STRIP "${to}" to)
  string(REGEX REPLACE "([][+.*^$()|?\\\\])" "\\\\\\1" pattern "${from}")
  string(REGEX REPLACE "[ \n]+" "[ \n]+" pattern "${pattern}")
  string(REGEX MATCH "${pattern}" found "${text}")
  string(FIND "${text}" "${found}" first)
  string(FIND "${text}" "${found}" last REVERSE)
  if(found STREQUAL "" OR NOT first EQUAL last)
    set_property(GLOBAL APPEND_STRING PROPERTY plant_faults
      "src/${file} has no longer exactly one\n${from}\nto replace. ")
    return()
  endif()
  string(REPLACE "${found}" "${to}" text "${text}")
  set_property(GLOBAL PROPERTY "plant_${file}" "${text}")
endfunction()

function(write_if_changed path text)
  set(old "")
  if(EXISTS "${path}")
    file(READ "${path}" old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

# A build does not notice that a copy has come between a program and a file of src/ which it included
# so far: what is compiled with the copies depends on FOLDER.txt, their list.
function(plant_write folder)
  get_property(files GLOBAL PROPERTY plant_files)
  foreach(file IN LISTS files)
    get_property(text GLOBAL PROPERTY "plant_${file}")
    write_if_changed("${folder}/${file}" "${text}")
    set_property(GLOBAL PROPERTY "plant_${file}")
  endforeach()
  write_if_changed("${folder}.txt" "${files}")
  set_property(GLOBAL PROPERTY plant_files)
endfunction()
