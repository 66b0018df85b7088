// SLED (S3): six processes on two hardware contexts, each of which offloads tasks to an SPE of its
// own and waits for it, by one of the paper's ways.
#pragma once

#include <leveret_papers/world.hpp>

namespace leveret_papers {

enum class waiting {
  busy,            // looks at its own SPE's word until its quantum ends
  yield,           // YNR: yields unless it is ready
  sled,            // looks for a ready one of its context, and yields to its parent
  sled_in_kernel,  // the same from inside the kernel, in a critical section of all processes
  work_stealing,   // whoever runs serves any SPE that is ready
  interrupt,       // blocks on the interrupt mailbox
  one_of_six,      // one process, whose every task is split over all SPEs
};

struct offloads {
  waiting how = waiting::yield;
  double task_us = 100;
  double jitter = 0.2;    // of the length, each way
  unsigned tasks = 300;   // of each SPE
  unsigned passes = 100;  // N of SLED
  bool reduces = false;   // after each task all processes exchange: MPI_Allreduce
};

// Mean time of an SPE between two tasks, in us.
double idle_us(world& w, const offloads& what);

// Mean time from one offload of a process to its next, in us.
double stage_us(world& w, const offloads& what);

}  // namespace leveret_papers
