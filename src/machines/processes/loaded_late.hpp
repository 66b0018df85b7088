// Whether a program that is started again has Leveret before its main() runs.
#ifndef LEVERET_MACHINES_PROCESSES_LOADED_LATE_HPP
#define LEVERET_MACHINES_PROCESSES_LOADED_LATE_HPP

namespace lev::processes {

// is_loaded_late(): the module that holds Leveret came by dlopen(), and none that the program's
// start loads has a Leveret, either: its main() would run once more, instead of the constructor
// that makes a zygote.
bool is_loaded_late() noexcept;

}  // namespace lev::processes

#endif
