# Changed copies of files of src/ for the model tests. They come first in the tests' include path.
#
# plant(FILE FROM TO) replaces one piece of code; plant_write(FOLDER) writes what was changed since
# the last plant_write(). In most, model::fault("NAME") chooses while the program runs between what
# stood there and a mistake. A piece that is no longer in the file ends the configuration: the
# change must follow the code.

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
    message(FATAL_ERROR "src/${file} has no longer exactly one\n${from}\n"
                        "to replace: change tests/model/*.cmake as the code was changed.")
  endif()
  string(REPLACE "${found}" "${to}" text "${text}")
  set_property(GLOBAL PROPERTY "plant_${file}" "${text}")
endfunction()

function(plant_write folder)
  get_property(files GLOBAL PROPERTY plant_files)
  foreach(file IN LISTS files)
    get_property(text GLOBAL PROPERTY "plant_${file}")
    set(old "")
    if(EXISTS "${folder}/${file}")
      file(READ "${folder}/${file}" old)
    endif()
    if(NOT old STREQUAL text)
      file(WRITE "${folder}/${file}" "${text}")
    endif()
    set_property(GLOBAL PROPERTY "plant_${file}")
  endforeach()
  set_property(GLOBAL PROPERTY plant_files)
endfunction()
