// start_again: a program that is started again to be a zygote: whether it can be, and the
// environment and files that it gets. Confined workers are forked from it and can read all its
// memory, so it gets only what it needs to start, and forgets it.
#pragma once

#include <leveret/config.hpp>

#include <spawn.h>

#include <vector>

namespace lev::processes {

// is_loaded_late(): the module that holds Leveret came by dlopen(), and no module that the
// program's start loads has a Leveret. Started again, such a program would run its main() once more
// instead of the constructor that makes a zygote.
bool is_loaded_late() noexcept;

// environment_for() returns the variables of this process that the zygote gets, then `own`, then
// null. For confined workers these are the variables that the dynamic loader and interpreters need
// to start (LD_LIBRARY_PATH, LD_PRELOAD, PATH, PYTHONHOME), and numbers of threads: variables that
// end in _NUM_THREADS and have a number as their value. (A library may not start any thread there.)
std::vector<char*> environment_for(isolation level, char* own);

// forget_start() empties this process's environment, and clears the memory where the kernel has put
// it and the arguments. False: the system does not say where that is.
bool forget_start() noexcept;

// close_from() makes the program start without the files from number `first` on.
void close_from(posix_spawn_file_actions_t& actions, int first) noexcept;

// close_listed() does the same by naming each file that is open now. One that another thread opens
// meanwhile is passed on, unless exec closes it anyway.
void close_listed(posix_spawn_file_actions_t& actions, int first) noexcept;

}  // namespace lev::processes
