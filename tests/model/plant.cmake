# Wrong steps for the model tests. plant() copies a header of src/ and replaces one piece of its code by one in which
# model::fault("NAME") chooses, while the program runs, between what stood there and a mistake. The copies come first in the
# model tests' include path. A piece that is no longer in the header ends the configuration: the fault must follow the code.
#
# plant(HEADER FROM TO) for each fault, then plant_write(FOLDER) writes the copies.

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
                        "to plant a fault in: change tests/model/faults.cmake as the code was changed.")
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
  endforeach()
endfunction()
