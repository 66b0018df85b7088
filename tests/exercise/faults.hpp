// The planted faults: each is a mistake that was made, or would be easy to make, and that the
// exerciser must find in the time given. mutants/ has their code.
#pragma once

#include "exercise/drive.hpp"
#include "exercise/program.hpp"

#include <cstdlib>
#include <utility>

namespace lev::exercise {

struct planted_fault {
  const char* name;     // as in mutants/*.patch
  place machine;        // where it is looked for
  double seconds;       // it must be found in, of a core that does nothing else
  const char* promise;  // what it breaks
  // Where the search begins. One program in 700 to 30,000 shows a fault that has a seed: from
  // there on it is found in a second, as long as the generator draws the same programs.
  std::uint64_t seed = 1;
};

constexpr planted_fault planted_faults[] = {
    {"mutex: handed over, but not held", place::threads, 30, "never beside a holder of its mutex"},
    {"after: dependants of a failed task run", place::sim, 30, "only after all predecessors' ok"},
    {"after: a stale ticket is a failure", place::threads, 60, "no wrong dependency_failed"},
    {"after: an edge is written over the others", place::threads, 30, "no dependant is lost"},
    {"lane: what a dead worker wrote is believed", place::processes, 60,
     "no task of others is hit"},
    {"lane: the number 0 means none", place::processes, 60, "each task runs once"},
    {"inout: in place, is read again", place::processes, 30, "one outcome, of one change"},
    {"confined: what is too large gets shared memory", place::processes, 60,
     "only what its body does fails a task", 28'354},
    {"processes: nothing is taken back for an idle worker", place::processes, 60,
     "no task waits behind another while a worker idles"},
    {"result: is not there before the body", place::sim, 30,
     "only outputs that are written change"},
    {"out: shows what another task left in the store", place::sim, 30,
     "nobody sees bytes of another task"},
    {"wait: any task runs on top of one that waits", place::sim, 60, "waits that can end do", 776},
    {"wait: a task that waits keeps its worker", place::sim, 60, "waits that can end do"},
    {"wait: what is done is too deep", place::sim, 60, "a wait for what is done never fails",
     1'133},
    {"children: the failure of one is lost", place::threads, 30, "each failure is told"},
    {"submit: tasks have no spare tickets", place::sim, 60,
     "would_block only when every ticket is held"},
    {"bulk: its submitter waits for its own join", place::sim, 60, "waits that can end do", 2'768},
    {"columns: a failure ends its piece", place::processes, 60, "each task of a bulk runs"},
    {"columns: each task gets the first row", place::threads, 30, "each task runs once"},
    {"made: in the place of one that has not run", place::threads, 30, "each task runs once"},
    {"end: nobody is asked who waits for it", place::processes, 60, "waits that can end do"},
    {"callback: a letter waits behind it", place::threads, 180,
     "no task waits behind another while a worker idles"},
    {"callback: the task behind it is in hand", place::sim, 60, "waits that can end do", 35'953},
    {"loop: it returns before its pieces", place::sim, 30, "parallel_for waits for its pieces"},
    {"pieces: who waits for them is not told", place::sim, 30, "waits that can end do"},
    {"thread: it is another one's participant", place::threads, 30, "each thread has its own"},
    {"callback: it waits like a host", place::sim, 60, "waits that can end do"},
    {"cancel: takes the tasks of others", place::processes, 60,
     "cancelled only if that was asked for"},
    {"yield: no time passes for one that polls alone", place::sim, 60, "waits that can end do"},
    {"staged ahead: kept from idle workers", place::sim, 60,
     "no task waits behind another while a worker idles"},
    {"ordered: a writer does not follow readers", place::threads, 60, "as a serial run leaves it"},
    {"ordered: what begins far before is not seen", place::sim, 60, "as a serial run leaves it"},
    {"ordered: a reader hides who wrote", place::sim, 60, "as a serial run leaves it"},
    {"ordered: what has failed is forgotten", place::sim, 60,
     "what follows a failure does not run"},
    {"ordered: an empty task stands for one too few", place::sim, 60, "as a serial run leaves it",
     1'592},
    {"help: who waits for everything is not told", place::threads, 60, "waits that can end do"},
    {"ready queue: a taker stays with its ring", place::threads, 60,
     "no task waits behind another while a worker idles"},
};

// The switch is the variable LEVERET_FAULT of the environment: a process has one fault or none.
// Looks for the fault until it is found, or its time is over. A program that fails without the
// fault as well has not found it.
inline report exercise_with(const planted_fault& f) {
  plan p;
  p.machines = {f.machine};
  p.seed = f.seed;
  p.programs = 0;
  p.hang_seconds = 2;
  p.jobs = 1;
  p.shrinks = false;
  // Beside other programs a second has a tenth of the programs in it.
  constexpr double seconds_for_one = 10;
  const double limit = seconds_for_one * f.seconds;
  report all;
  while (all.seconds < limit && all.findings.empty()) {
    p.seconds = limit - all.seconds;
    setenv("LEVERET_FAULT", f.name, 1);
    report r = exercise_all(p);
    unsetenv("LEVERET_FAULT");
    all.programs += r.programs;
    all.seconds += r.seconds;
    if (r.findings.empty()) break;
    p.seed = r.findings.front().seed + 1;
    bool is_sound = true;
    for (int i = 0; i < 5 && is_sound; ++i)
      is_sound = run_alone(r.findings.front().shrunk, 5).empty();
    if (is_sound) all.findings = std::move(r.findings);
  }
  return all;
}

}  // namespace lev::exercise
