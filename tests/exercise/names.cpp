// Words for what programs are made of.
#include "exercise/program.hpp"

namespace lev::exercise {

const char* place_name(place p) noexcept {
  constexpr const char* names[] = {"threads", "sim", "processes", "pool"};
  return names[static_cast<unsigned>(p)];
}

const char* verb_name(verb v) noexcept {
  constexpr const char* names[] = {
      "submit",       "wait",       "wait_any", "wait_all",   "poll",      "cancel",
      "release",      "keep",       "then",     "await",      "loop",      "share",
      "cancel_shown", "poll_shown", "set_flag", "await_flag", "spin_flag", "filters",
      "begin_phase",  "end_phase",  "complete", "start",      "join",      "yield",
      "nap",          "spawn"};
  static_assert(sizeof names / sizeof *names == static_cast<unsigned>(verb::verb_count));
  return names[static_cast<unsigned>(v)];
}

}  // namespace lev::exercise
