// start_strings: the environment and arguments that a zygote starts with. Confined workers are
// forked from it and can read all its memory, so it gets only what it needs to start, and forgets
// it.
#pragma once

#include <leveret/config.hpp>

#include <vector>

namespace lev::processes {

// environment_for() returns the variables of this process that the zygote gets, then `own`, then
// null. For confined workers these are the variables that the dynamic loader and interpreters need
// to start (LD_LIBRARY_PATH, LD_PRELOAD, PATH, PYTHONHOME), and numbers of threads: variables that
// end in _NUM_THREADS and have a number as their value. (A library may not start any thread there.)
std::vector<char*> environment_for(isolation level, char* own);

// forget_start() empties this process's environment, and clears the memory where the kernel has put
// it and the arguments. False: the system does not say where that is.
bool forget_start() noexcept;

}  // namespace lev::processes
