// Whether a program that is started again has Leveret before its main() runs.
#pragma once

namespace lev::processes {

// is_loaded_late(): the module that holds Leveret came by dlopen(), and no module that the
// program's start loads has a Leveret. Started again, such a program would run its main() once more
// instead of the constructor that makes a zygote.
bool is_loaded_late() noexcept;

}  // namespace lev::processes
