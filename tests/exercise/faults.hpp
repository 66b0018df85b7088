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
    {"after: a stale ticket is a failure", place::threads, 60, "no wrong dependency_failed"},
    {"after: an edge is written over the others", place::threads, 30, "no dependant is lost"},
    {"lane: what a dead worker wrote is believed", place::processes, 60,
     "no task of others is hit"},
    {"lane: the number 0 means none", place::processes, 60, "each task runs once"},
    {"processes: nothing is taken back for an idle worker", place::processes, 60,
     "no task waits behind another while a worker idles"},
    {"result: is not there before the body", place::sim, 30,
     "only outputs that are written change"},
    {"out: shows what another task left in the store", place::sim, 30,
     "nobody sees bytes of another task"},
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
