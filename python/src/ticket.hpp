// Ticket as Python has it: it may be waited for again and again, by any thread, and remembers its
// outcome.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "session.hpp"
#include "waiting.hpp"

namespace lev::python {

// Thread safety: the GIL guards every field. While one thread waits without it, `waiter_` says so
// and others wait for that thread instead of the core's ticket, which is for one thread at a time.
class ticket_object {
 public:
  ticket_object(std::shared_ptr<session> owner, const plan& p, lev::ticket&& core, hold* held,
                std::size_t tasks, bool is_bulk);
  // A ticket whose task has failed already, and never was in the core. When nobody collects the
  // failure, wait_for_completion() reports it as one of the core's.
  ticket_object(std::shared_ptr<session> owner, const plan& p, status failure);
  // The ticket of a bulk of no tasks, whose results are empty arrays.
  ticket_object(std::shared_ptr<session> owner, const plan& p, hold* held);
  ~ticket_object();
  ticket_object(ticket_object&&) = delete;

  // try_wait() waits without raising for the task's outcome; false when the time is over.
  bool try_wait(const deadline& end, wait_policy how = wait_policy::of_runtime);
  // check() raises unless the outcome, which there must be, is ok.
  void check() const;
  // raise_failure() raises this ticket's failure as the first of `failures`.
  [[noreturn]] void raise_failure(unsigned failures) const;
  // wait() is both, and raises leveret.TimeoutError when the time is over.
  void wait(const deadline& end, wait_policy how);
  nb::object result(const deadline& end, wait_policy how);
  bool done();
  bool cancel();
  bool end();
  // ring() has a bell rung when the task is complete; false: it is, or completes as this thread
  // waits for it.
  bool ring(std::shared_ptr<bell> b);
  // give_up() is for a coroutine that was cancelled while it awaited the ticket, and has been told.
  void give_up() noexcept { is_given_up_ = true; }
  // collect() notes that a wait has seen the outcome.
  void collect() noexcept { is_uncollected_ = false; }

  // is_marked() tells whether the ticket has this mark, and marks it.
  bool is_marked(std::uint64_t mark) noexcept { return std::exchange(mark_, mark) == mark; }

  bool is_finished() const noexcept { return code_ != status::pending; }
  bool is_waited_for() const noexcept { return waiter_ != std::thread::id(); }
  // is_own() tells whether this thread waits for the ticket already, below a signal's handler.
  bool is_own() const noexcept { return waiter_ == std::this_thread::get_id(); }
  // look() takes the outcome, if it is there, of a ticket that is_own().
  void look();
  status code() const noexcept { return code_; }
  unsigned failures() const noexcept { return failures_; }
  const plan& procedure() const noexcept { return plan_; }
  const std::shared_ptr<session>& owner() const noexcept { return owner_; }
  std::uint64_t id() const noexcept { return id_; }

 private:
  friend class claim;
  friend class claimed_set;

  outcome poll();
  outcome wait_alone(const deadline& end, wait_policy how);
  void finish(const outcome& o);
  std::string failure_text() const;

  std::shared_ptr<session> owner_;
  const plan& plan_;
  std::uint64_t id_ = 0;
  lev::ticket core_;
  hold* held_ = nullptr;
  std::size_t tasks_ = 1;
  bool is_bulk_ = false;
  bool is_uncollected_ = false;
  bool is_given_up_ = false;
  std::thread::id waiter_;
  std::uint64_t mark_ = 0;
  status code_ = status::pending;
  int task_code_ = 0;
  unsigned failures_ = 0;
  std::string thrown_;
};

// While it lives, this thread alone uses the ticket's core ticket.
class claim {
 public:
  explicit claim(ticket_object& t);
  ~claim();
  claim(claim&&) = delete;

 private:
  ticket_object& ticket_;
};

// await_other_waiter() returns when some thread stopped waiting for a ticket, or the time is over.
// tell_other_waiters() is what such a thread calls. With the GIL.
void await_other_waiter(const deadline& end);
void tell_other_waiters();

// forget_other_waiters() is for a child of fork(): a thread that is not there may have had a lock.
void forget_other_waiters();

}  // namespace lev::python
