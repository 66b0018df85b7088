// worker: what a participant does. run_one() is the pipeline; serve_until() is a waiting host or
// task that helps; work() is the life of a worker.
#ifndef LEVERET_WORKER_WORKER_HPP
#define LEVERET_WORKER_WORKER_HPP

#include "worker/engine.hpp"

namespace lev {

// help() takes a task and brings it to its end, in the middle of something else. False: there was
// none.
bool help(engine& e, participant& self) noexcept;

// run_one() takes one task to its end, where somebody serves already; settle() leaves nothing
// behind that others wait for. For contexts.cpp.
bool run_one(engine& e, participant& self) noexcept;
void settle(engine& e, participant& self) noexcept;

// owes_others() tells whether a host that helped has completed or taken something that others wait
// for; what is in its inbox they can steal.
inline bool owes_others(const participant& self) noexcept {
  return self.notice_count != 0 || self.draining != nullptr || self.ahead_count != 0;
}

// leave() is for a host that goes back to its own program after help(), or after completing tasks:
// what it has taken goes back, what it has completed is told. No effect inside a task.
void leave(engine& e, participant& self) noexcept;

// work() runs tasks until the engine stops.
void work(engine& e, participant& self) noexcept;

// What somebody waits for. is_there() is asked again and again; arm() arranges for a wake-up, and
// returns false if there is no need to sleep any more.
struct awaited {
  virtual bool is_there() noexcept = 0;
  virtual bool arm() noexcept = 0;
  virtual void disarm() noexcept {}
  // It takes many tasks, or any: no single end is to be told at once.
  virtual bool is_patient() const noexcept { return false; }

 protected:
  awaited() = default;
  awaited(const awaited&) = default;
  awaited& operator=(const awaited&) = default;
  ~awaited() = default;
};

// serve_until() waits for `what` as `how` says; with wait_policy::help it runs other tasks
// meanwhile. Workers help. False: the deadline passed first.
bool serve_until(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                 wait_policy how) noexcept;

}  // namespace lev

#endif
