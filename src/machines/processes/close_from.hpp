// The files that a started program does not get.
#pragma once

#include <spawn.h>

namespace lev::processes {

// close_from() makes the program start without the files from number `first` on.
void close_from(posix_spawn_file_actions_t& actions, int first) noexcept;

// close_listed() does the same by naming each file that is open now. One that another thread opens
// meanwhile is passed on, unless exec closes it anyway.
void close_listed(posix_spawn_file_actions_t& actions, int first) noexcept;

}  // namespace lev::processes
