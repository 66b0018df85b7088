// worker: what a participant does. run_one() is the pipeline; serve_until() is a waiting host;
// wait_in_task() a waiting task; work() the life of a worker.
#ifndef LEVERET_WORKER_WORKER_HPP
#define LEVERET_WORKER_WORKER_HPP

#include "worker/engine.hpp"

namespace lev {

// help() takes a task and brings it to its end, in the middle of something else. False: there was
// none.
bool help(engine& e, participant& self) noexcept;

// For the other files of this room.
//
// run_one() takes one task to its end, where somebody serves already and no task runs below.
bool run_one(engine& e, participant& self) noexcept;
// run_on_top() runs a task that the caller has taken from a queue on top of the one that waits.
void run_on_top(engine& e, participant& self, std::uint32_t task) noexcept;
// drain() completes the task whose outputs are on their way, if there is one; tell_ends() leaves
// nothing untold that has ended here, and settle() nothing that others wait for. give_back_ahead()
// lets others have what is staged here.
bool drain(engine& e, participant& self) noexcept;
inline bool owes_failures(const participant& self) noexcept {
  return self.failing != no_slot && !self.is_failing;
}
inline bool owes_ends(const participant& self) noexcept {
  return self.notice_count != 0 || self.draining != nullptr || owes_failures(self);
}
void tell_ends(engine& e, participant& self) noexcept;
// has_tail() tells whether a callback waits for the end of a task that is in hand, or of that of
// which it is a piece.
inline bool has_callback(engine& e, std::uint32_t task) noexcept {
  // A task that comes after it may fail with it, and have one.
  return (e.pool.at(task).state.word() & (state_bits::called_back | state_bits::depended_on)) != 0;
}
bool has_tail(engine& e, const job& j) noexcept;
void settle(engine& e, participant& self) noexcept;
// tell_tails_aside() is for a task that waits, or has waited: callbacks that are due are called on
// another stack, as they may wait for this task, or for its mutex. False: none is due.
bool tell_tails_aside(engine& e, participant& self) noexcept;
void give_back_ahead(engine& e, participant& self) noexcept;
// pass_watch() is for one that looked for work as the last of all: it wakes another if there is
// more.
void pass_watch(engine& e, participant& self) noexcept;

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
  // Whether the end of `task` is what is waited for, or one such end.
  virtual bool awaits(std::uint32_t) const noexcept { return false; }
  // It takes many tasks, or any: no single end is to be told at once.
  virtual bool is_patient() const noexcept { return false; }

 protected:
  awaited() = default;
  awaited(const awaited&) = default;
  awaited& operator=(const awaited&) = default;
  ~awaited() = default;
};

// serve_until() waits for `what` as `how` says; with wait_policy::help it runs other tasks
// meanwhile. Workers help. False: the deadline passed first. Precondition: no task runs below, or
// workers are remote.
bool serve_until(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                 wait_policy how) noexcept;

// wait_in_task() waits inside a task or a callback: its own children run on top of it, or its
// worker goes on in another context. False: the deadline passed first; or nothing will come of
// waiting on: every context of every participant waits, or, with when_still, nobody has run
// anything for 10 ms.
enum class giving_up : std::uint8_t { when_all_wait, when_still };
bool wait_in_task(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                  giving_up how = giving_up::when_all_wait) noexcept;

// run_if_last() runs `task`, which a task waits for, if it is the youngest of the own inbox: fork
// and join, where nobody has taken it yet.
void run_if_last(engine& e, participant& self, std::uint32_t task) noexcept;

}  // namespace lev

#endif
