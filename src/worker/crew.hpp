// crew: the participants of a runtime, seen as those that get its tasks done. This one runs them in
// its own threads. If the tasks run elsewhere, another crew takes its place (room remote), and
// nothing in this room asks which of the two it is.
#pragma once

#include <leveret/config.hpp>

#include "task/validate.hpp"
#include "worker/awaited.hpp"

namespace lev {

struct engine;
struct participant;

class crew {
 public:
  explicit crew(engine& owner) noexcept : e(owner) {}
  virtual ~crew() = default;
  crew(crew&&) = delete;

  // plan() decides the engine's numbers that depend on the crew, before the engine's memory is
  // reserved. open() comes afterwards, before the machine starts. False: machine::why_not().
  virtual void plan();
  virtual bool open() { return true; }

  // run_one() takes one task to its end, or several a step further. False: there is nothing to do.
  virtual bool run_one(participant& self) noexcept;
  // queued() is called after a task was queued: a participant runs it, or wakes up to do so.
  virtual void queued(participant& self) noexcept;
  // send() queues a task that is ready, on behalf of a host that has submitted it, and does what
  // queued() does.
  virtual void send(participant& self, std::uint32_t task) noexcept;
  // idle() waits for work, or for `what`; returns when it is worth looking again. Precondition: no
  // other context is in the ring.
  virtual void idle(participant& self, awaited& what, std::uint64_t deadline_ns,
                    wait_policy how) noexcept;
  // await() is how a participant waits, inside tasks and outside. False: the deadline passed first,
  // or waiting on is in vain.
  virtual bool await(participant& self, awaited& what, std::uint64_t deadline_ns, wait_policy how,
                     giving_up when = giving_up::when_all_wait) noexcept;
  // done_by() is how many tasks a participant has run.
  virtual std::uint64_t done_by(const participant& p) const noexcept;

  // Only the other crew implements these. can_do() is asked for each task if engine::asks_crew is
  // set.
  virtual bool can_do(const detail::draft&, const draft_facts&, refusal*) noexcept { return true; }
  // can_do_plainly() asks the same for a plain task (task/plain.hpp), without the reason.
  virtual bool can_do_plainly(procedure_id) noexcept { return true; }
  virtual bool can_do_closures() const noexcept { return true; }
  // limit() keeps a task's own limits in place of the runtime's settings. want_ends() makes workers
  // tell ends at once from now on: a submitter has asked for a callback, a dependency or a mutex,
  // and may not be in the runtime when the end comes.
  virtual bool has_time_limits() const noexcept { return false; }
  virtual void limit(std::uint32_t, std::uint64_t, std::uint32_t) noexcept {}
  virtual void want_ends() noexcept {}
  // recall() takes back tasks that must be cancelled and were not begun from where they wait for
  // their worker. end_running() ends running tasks that must end, or all; false: that is not
  // possible.
  virtual bool holds_tasks() const noexcept { return false; }
  virtual void recall(participant&) noexcept {}
  virtual bool end_running(bool) noexcept { return false; }
  // is_service() tells whether `p` has duties that no other participant takes over, so that it goes
  // on with them wherever a callback has brought its thread. is_under_way(): tasks are under way
  // whose ends it may hear of.
  virtual bool is_service(const participant&) const noexcept { return false; }
  virtual bool is_under_way() const noexcept { return false; }
  // pause_watch() says that `p` stops watching for ends while its callback waits elsewhere; true:
  // it was a watcher. Then resume_watch() says that it watches again.
  virtual bool pause_watch(const participant&) noexcept { return false; }
  virtual void resume_watch(const participant&) noexcept {}

  engine& e;
};

}  // namespace lev
