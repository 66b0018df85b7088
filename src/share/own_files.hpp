// own_files: the files that Leveret has open in a program which knows nothing of them, and those of
// them that are memory.
#pragma once

#include <cstddef>

namespace lev {

// out_of_the_way() moves a new file to a high number: new files of the program get the lowest free
// one. A program may close files that are not its own, as daemons do, and open others in their
// place; those would otherwise be written to and closed here. If the limit on files allows no such
// number, the file is only moved off standard input, output and error. -1 when it cannot be moved.
int out_of_the_way(int file) noexcept;

// make_memory_file() returns a memory file of `bytes` bytes, or -1. The file cannot shrink, nor
// grow without may_grow. seal_memory_file() allows no more seals and, with `read_only`, no new
// mapping that can write; existing mappings stay as they are. False when the system refuses.
enum file_growth : bool { has_fixed_size, may_grow };
int make_memory_file(const char* name, std::size_t bytes,
                     file_growth growth = has_fixed_size) noexcept;
bool seal_memory_file(int file, bool read_only) noexcept;
// open_to_read() opens a memory file once more, so that mappings of it cannot be made writable; -1
// when the system refuses.
int open_to_read(int file) noexcept;

}  // namespace lev
