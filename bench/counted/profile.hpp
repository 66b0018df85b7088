// Profiles that callgrind writes: instructions by function, without those of what it calls.
#pragma once

#include "counted/cases.hpp"

#include <map>
#include <string>

namespace bench::counted {

using profile = std::map<std::string, double>;

// read_profile() reads a file of callgrind's. Throws std::exception when there is none.
profile read_profile(const std::string& path);

double total(const profile& all);

// count_case() runs a case under valgrind, and returns what one task takes, by function. Throws
// std::exception, which says what to install, where valgrind is missing. `program` is
// leveret-counted.
profile count_case(const counted_case& which, const std::string& program);

}  // namespace bench::counted
