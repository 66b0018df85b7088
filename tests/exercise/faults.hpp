// The planted faults: each is a mistake that was made, or would be easy to make, and that the
// exerciser must find in the time given. plants.cmake has their code.
#ifndef LEVERET_TESTS_EXERCISE_FAULTS_HPP
#define LEVERET_TESTS_EXERCISE_FAULTS_HPP

#include "exercise/drive.hpp"
#include "exercise/program.hpp"

#include <cstdlib>

namespace lev::exercise {

struct planted_fault {
  const char* name;     // as in plants.cmake
  place machine;        // where it is looked for
  double seconds;       // it must be found in
  const char* promise;  // what it breaks
};

constexpr planted_fault planted_faults[] = {
    {"mutex: handed over, but not held", place::threads, 30, "never beside a holder of its mutex"},
    {"after: dependants of a failed task run", place::sim, 30, "only after all predecessors' ok"},
    {"finish: only the waiter named last is woken", place::threads, 60, "no lost wake-up"},
};

// The switch is the variable LEVERET_FAULT of the environment: a process has one fault or none.
// Looks for the fault until it is found, or its time is over.
inline report exercise_with(const planted_fault& f) {
  setenv("LEVERET_FAULT", f.name, 1);
  plan p;
  p.machines = {f.machine};
  p.programs = 0;
  p.seconds = f.seconds;
  p.hang_seconds = 5;
  p.jobs = 1;
  p.shrinks = false;
  const report r = exercise_all(p);
  unsetenv("LEVERET_FAULT");
  return r;
}

}  // namespace lev::exercise

#endif
