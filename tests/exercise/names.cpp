// Words for what programs are made of.
#include "exercise/generate.hpp"
#include "exercise/program.hpp"

#include <string>

namespace lev::exercise {

const char* place_name(place p) noexcept {
  constexpr const char* names[] = {"threads", "sim", "processes", "pool"};
  return names[static_cast<unsigned>(p)];
}

const char* verb_name(verb v) noexcept {
  constexpr const char* names[] = {
      "submit",      "wait",       "wait_any",     "wait_all",       "poll",      "cancel",
      "end",         "release",    "keep",         "await_done",     "then",      "await",
      "loop",        "ordered",    "wait_ordered", "cancel_ordered", "share",     "cancel_shown",
      "end_shown",   "poll_shown", "set_flag",     "await_flag",     "spin_flag", "filters",
      "begin_phase", "end_phase",  "complete",     "start",          "join",      "yield",
      "nap",         "spawn",      "visit",        "cross",          "strands",   "toss",
      "look",        "misuse",     "shut",         "split",          "aside"};
  static_assert(sizeof names / sizeof *names == static_cast<unsigned>(verb::verb_count));
  return names[static_cast<unsigned>(v)];
}

bool ingredients::without(const char* name) {
  const std::string word = name;
  for (unsigned v = 0; v < static_cast<unsigned>(verb::verb_count); ++v) {
    if (word != verb_name(static_cast<verb>(v))) continue;
    has_verb[v] = false;
    return true;
  }
  const struct {
    const char* name;
    bool& has;
  } others[] = {{"unassigned", unassigned},
                {"few_tickets", few_tickets},
                {"low_nest", low_nest},
                {"hosts", hosts},
                {"few_contexts", few_contexts},
                {"locks", locks},
                {"handed", handed},
                {"crash", crash},
                {"close_cancels", close_cancels}};
  for (const auto& o : others) {
    if (word != o.name) continue;
    o.has = false;
    return true;
  }
  return false;
}

}  // namespace lev::exercise
