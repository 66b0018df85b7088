// gcell (S4): SPEs take jobs from one locked queue in memory; ends are told by the interrupt
// mailbox.
//
//   1. A client keeps 64 jobs in flight: it waits for any, and submits as many as have ended.
//   2. An SPE takes a job from the queue under its lock, with a copy of the job's descriptor. An
//      empty queue, or a lock that is taken, makes it wait for a random time that doubles each time
//      (published tables of starts and caps by the number of SPEs), or for the event of a lost
//      reservation.
//   3. It runs the job, here a delay, puts the descriptor back, and tells the end. First version: a
//      letter for each job, and it waits for room. Second: ends are collected while the mailbox is
//      full.
//   4. An event handler, a PPE thread, waits for events, takes all letters that are there, and
//      wakes the client.
#pragma once

#include <leveret_papers/world.hpp>

namespace leveret_papers {

struct gcell_jobs {
  const char* machine = "cell-qs21";
  unsigned spes = 16;
  unsigned jobs = 6000;
  double delay_us = 50;    // nominal
  bool is_batched = true;  // the second version
  bool waits_for_event = false;
};

// Microseconds from the first submit to the last end, for each job.
double us_of_a_job(world& w, const gcell_jobs& what);
// Jobs times delay over time, over SPEs: 1 is linear.
double efficiency(world& w, const gcell_jobs& what);

}  // namespace leveret_papers
