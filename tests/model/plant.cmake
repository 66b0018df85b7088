# Changed copies of files of src/ for the model tests. They come first in the tests' include path.
#
# plant(FILE FROM TO) replaces one piece of code; plant_write(FOLDER) writes what was changed since the last plant_write().
# In most, model::fault("NAME") chooses while the program runs between what stood there and a mistake. A piece that is no
# longer in the file ends the configuration: the change must follow the code.

function(plant header from to)
  get_property(text GLOBAL PROPERTY "plant_${header}")
  if(NOT text)
    file(READ "${PLANT_SOURCE}/${header}" text)
    set_property(GLOBAL APPEND PROPERTY plant_headers "${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PLANT_SOURCE}/${header}")
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
    message(FATAL_ERROR "src/${header} has no longer exactly one\n${from}\n"
                        "to replace: change tests/model/*.cmake as the code was changed.")
  endif()
  string(REPLACE "${found}" "${to}" text "${text}")
  set_property(GLOBAL PROPERTY "plant_${header}" "${text}")
endfunction()

function(plant_write folder)
  get_property(headers GLOBAL PROPERTY plant_headers)
  foreach(header IN LISTS headers)
    get_property(text GLOBAL PROPERTY "plant_${header}")
    set(old "")
    if(EXISTS "${folder}/${header}")
      file(READ "${folder}/${header}" old)
    endif()
    if(NOT old STREQUAL text)
      file(WRITE "${folder}/${header}" "${text}")
    endif()
    set_property(GLOBAL PROPERTY "plant_${header}")
  endforeach()
  set_property(GLOBAL PROPERTY plant_headers)
endfunction()
