// The driver: runs many programs in child processes, so that one that hangs or crashes is a finding
// like any other, and shrinks those that fail.
#pragma once

#include "exercise/generate.hpp"
#include "exercise/program.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lev::exercise {

struct plan {
  std::vector<place> machines{place::threads};
  std::uint64_t seed = 1;
  std::uint64_t programs = 1000;  // 0: until the time is over
  double seconds = 0;             // 0: until all programs have run
  unsigned jobs = 2;
  unsigned failures_max = 1;  // stop after so many
  double hang_seconds = 20;   // no correct program takes that long
  ingredients made_of = {};
  bool shrinks = true;
  double shrink_seconds = 30;
};

struct finding {
  std::uint64_t seed = 0;
  place machine = place::threads;
  std::string what;  // what the oracle said, or "hangs", "ended by signal 11"
  program shrunk;
  std::string printed;  // as C++
  unsigned tries = 0;   // of so many runs of the shrunk program ...
  unsigned failed = 0;  // ... so many failed
};

struct report {
  std::uint64_t programs = 0;
  std::uint64_t by_machine[place_count] = {};
  double seconds = 0;
  std::vector<finding> findings;
};

report exercise_all(const plan& p);

// Runs one program in a child process: what is wrong, or empty.
std::string run_alone(const program& p, double hang_seconds);

}  // namespace lev::exercise
