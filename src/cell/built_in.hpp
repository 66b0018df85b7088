// The machine files that are part of the library; CMake writes their texts into a source file.
#pragma once

#include <span>

namespace lev::cell {

struct built_in_file {
  const char* name;
  const char* text;
};

std::span<const built_in_file> built_in_files();

}  // namespace lev::cell
