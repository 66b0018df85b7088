// A program as text: how one that fails is shown.
#pragma once

#include "exercise/program.hpp"

#include <string>

namespace lev::exercise {

// C++ that does what the program does, against <leveret/leveret.hpp>, to be pasted into a test.
std::string print(const program& p);
// What sets `c`, a lev::config, in lines of their own.
std::string print_settings(const settings& c);
const char* policy_text(wait_policy p) noexcept;

}  // namespace lev::exercise
