// tend: the pipeline of workers in other processes. Their host-side part, everything but the body,
// is done by whoever is in the runtime: a thread that submits, one that waits, or, when there is
// none, the service. So a round trip costs the two line transfers it must, and no thread of the
// host runs that does not have to.
//
//   take         a task from the ready queue
//   stage        copy its inputs to the worker's local store
//   (execute)    post it to the worker's line; the process runs it
//   write_back   collect its end, copy its outputs to the caller's memory
//   complete     as everywhere
//
// Where a worker has nothing to do and nothing is ready, tasks that another worker has not begun
// are taken back from its line (level()): so none waits behind a long one, or one without an end,
// while a worker idles. A worker that runs out of tasks rings if nobody looks, so nobody has to
// look now and then.
//
// A task whose worker died is run again: nothing outside the worker's store has changed, and the
// store's next user starts anew (docs/reference/promises.md, I1 and I2; the proof is in
// machines/processes/README.md).
#ifndef LEVERET_WORKER_TEND_HPP
#define LEVERET_WORKER_TEND_HPP

#include "worker/engine.hpp"

namespace lev {

// tend() moves every line on as far as it goes now; false when there was nothing to do.
bool tend(engine& e, participant& self) noexcept;

// send_ready() posts what is ready, and takes no ends: for a callback, which is itself the end of a
// task, and may take long.
void send_ready(engine& e) noexcept;

// tend_all() does that until there is nothing to do, and tells of what it has completed: for
// callers who leave the runtime then.
void tend_all(engine& e, participant& self) noexcept;

// has_remote_work() tells whether tend() would find something.
bool has_remote_work(engine& e) noexcept;

// cancel_posted() takes those tasks out of the lines that are to be cancelled by now, and were not
// begun.
void cancel_posted(engine& e, participant& self) noexcept;

// keep_ends() takes the ends of a dead worker out of its line, before the line is emptied; tend()
// completes them. In the line's turn.
void keep_ends(engine& e, std::uint32_t worker) noexcept;

// attend() is the service's: deaths (bury.cpp), time limits, and tasks that are to be ended
// (attend.cpp). service_deadline() is when it must look again.
void attend(engine& e, participant& self) noexcept;
std::uint64_t service_deadline(engine& e) noexcept;

// end_posted() has the service end the tasks that are to be ended by now. Any thread.
void end_posted(engine& e) noexcept;

// want_ends_told() makes workers tell of ends at once from now on: somebody asked for a callback, a
// dependency or a mutex, and may not be in the runtime when it is due.
inline void want_ends_told(engine& e) noexcept {
  if (e.remote == nullptr || e.is_eager.load(memory_order_relaxed) != 0) return;
  if (e.is_eager.exchange(1, memory_order_relaxed) == 0) e.remote->want_ends(true);
}

inline bool is_service(const engine& e, const participant& self) noexcept {
  return e.remote != nullptr && self.index == e.workers;
}

}  // namespace lev

#endif
