// Programs at random. Equal seeds give equal programs.
#pragma once

#include "exercise/program.hpp"

namespace lev::exercise {

// The ingredients of programs. A verb's name, or one of: unassigned (results and outputs),
// few_tickets, low_nest, few_contexts, hosts, locks, handed, crash, close_cancels.
struct ingredients {
  bool without(const char* name);  // false: there is none of this name
  bool has_verb[static_cast<unsigned>(verb::verb_count)];
  bool unassigned = true;
  bool few_tickets = true;
  bool low_nest = true;
  bool few_contexts = true;
  bool hosts = true;
  bool locks = true;
  bool crash = true;
  bool handed = true;
  bool close_cancels = true;

  ingredients() {
    for (bool& b : has_verb) b = true;
  }
};

program generate(std::uint64_t seed, place machine, const ingredients& i = {});

}  // namespace lev::exercise
