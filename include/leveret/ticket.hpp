// Tickets: the handle of a submitted task.
//
// A ticket is waited for once; the wait consumes it. A ticket that goes out of scope is released:
// the task still runs, but no wait gets its outcome (an error is then reported by
// runtime::wait_for_completion). Tickets carry a generation, so a stale one differs from a live
// one.
//
// Thread safety: different tickets may be used from different threads; one ticket by one thread at
// a time. A runtime must outlive its tickets.
#ifndef LEVERET_TICKET_HPP
#define LEVERET_TICKET_HPP

#include <leveret/config.hpp>
#include <leveret/status.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace lev {

constexpr std::int64_t no_timeout = -1;  // as a time-out in nanoseconds

// The outcome of a task (or of a whole bulk or diced task: then the first failure, and the number
// of failures).
struct outcome {
  status code = status::pending;
  int task_code = 0;               // the code that the body returned, if other than 0
  std::uint32_t failures = 0;      // failed tasks behind this ticket
  std::exception_ptr exception{};  // the body's exception, if any
};

namespace detail {
struct runtime_state;
outcome wait_one(runtime_state* runtime, std::uint64_t id, std::int64_t timeout_ns,
                 wait_policy how = wait_policy::of_runtime) noexcept;
void wait_or_throw(runtime_state* runtime, std::uint64_t& id, wait_policy how);
outcome wait_any_id(runtime_state* runtime, std::uint64_t* ids, std::size_t count,
                    std::size_t* index, std::int64_t timeout_ns,
                    wait_policy how = wait_policy::of_runtime) noexcept;
status peek(runtime_state* runtime, std::uint64_t id) noexcept;
// As peek(), for a caller that holds an interpreter's lock and would give it up for a wait: where a
// worker has been sent the task, it polls for as long as a short one takes.
bool is_soon_done(runtime_state* runtime, std::uint64_t id, wait_policy how) noexcept;
status cancel(runtime_state* runtime, std::uint64_t id) noexcept;
status end(runtime_state* runtime, std::uint64_t id) noexcept;
void release(runtime_state* runtime, std::uint64_t id) noexcept;
status on_complete(runtime_state* runtime, std::uint64_t id, void (*run)(void*),
                   void* context) noexcept;
void throw_outcome(const outcome& o);
}  // namespace detail

class ticket {
 public:
  ticket() noexcept = default;
  ticket(detail::runtime_state* runtime, std::uint64_t id) noexcept : runtime_(runtime), id_(id) {}
  ticket(ticket&& other) noexcept : runtime_(other.runtime_), id_(std::exchange(other.id_, 0)) {}
  ticket& operator=(ticket&& other) noexcept {
    if (this != &other) {
      release();
      runtime_ = other.runtime_;
      id_ = std::exchange(other.id_, 0);
    }
    return *this;
  }
  // Dropping a ticket does not wait: the task goes on, even when an exception drops the ticket. If
  // tasks use memory of the function that submits them, catch, wait_all(), and rethrow.
  ~ticket() { release(); }

  // A ticket is empty after a wait that consumed it, after release(), and when made without a task.
  explicit operator bool() const noexcept { return id_ != 0; }
  std::uint64_t id() const noexcept { return id_; }
  detail::runtime_state* home() const noexcept { return runtime_; }

  // wait() blocks until the task has its outcome and consumes the ticket. Rethrows the task's
  // exception; throws lev::error for every other outcome than ok. `how` says what a host thread
  // does meanwhile. Inside a task it has no effect: children run on top, or the worker goes on in
  // another context. A wait for a task that is done never fails for lack of depth or contexts.
  void wait(wait_policy how = wait_policy::of_runtime) {
    detail::wait_or_throw(runtime_, id_, how);
  }

  // wait_outcome() is wait() without exceptions, with a time-out: 0 polls, `no_timeout` waits. The
  // ticket is consumed unless the code is timed_out, would_deadlock, too_deep, would_block (too
  // many host threads) or bad_argument (a negative time-out other than `no_timeout`, no policy).
  outcome wait_outcome(std::int64_t timeout_ns = no_timeout,
                       wait_policy how = wait_policy::of_runtime) noexcept {
    outcome o = detail::wait_one(runtime_, id_, timeout_ns, how);
    if (consumes(o.code)) id_ = 0;
    return o;
  }

  // done() tells whether a wait would return at once. Does not consume.
  bool done() const noexcept { return detail::peek(runtime_, id_) != status::pending; }

  // cancel() asks that the task not run. It is a request: wait() tells whether it came in time
  // (status::cancelled).
  status cancel() noexcept { return detail::cancel(runtime_, id_); }

  // end() asks for the end of the task wherever it is. A waiting task does not run, as after
  // cancel(). A task that a worker process runs is ended with that process: it is not run again,
  // and its outcome is status::cancelled. The worker's other tasks go on elsewhere. In a shared
  // pool only a worker that is in this very task is killed. The request returns at once: wait()
  // tells whether the task was quicker. Data that the body has written in place, to shared memory,
  // stays. Cost: a system call, and 1 to 3 ms until the ticket is done.
  //
  // Returns ok: the end was requested; too_late: the task had its outcome; not_supported: the
  // workers are not processes, so a running body goes on, and a waiting task does not run. Errors:
  // stale_ticket, bad_ticket, closed.
  status end() noexcept { return detail::end(runtime_, id_); }

  // then() calls run(context) once, on the thread that completes the task, or at once here when it
  // has completed. A task that has not completed takes one. It is the tail of the task: it may
  // submit and wait as a task does. The ticket stays to be waited for. A wait for the ticket may
  // return before run() has run, or while it runs: waiters are told first. The object behind
  // `context` must therefore outlive the callback, not the wait. And run() uses no ticket that a
  // wait may be consuming, be it this one or another of its wait_all(): it is empty there
  // (bad_ticket), or the wait finds it used up (stale_ticket). runtime::wait_for_completion() and
  // the end of the runtime come after all callbacks. An exception of run() is a failure without a
  // ticket: wait_for_completion() reports it. Errors: exists (one is registered, and the task has
  // not completed), stale_ticket, bad_ticket, bad_argument (null), closed.
  status then(void (*run)(void*), void* context) noexcept {
    return detail::on_complete(runtime_, id_, run, context);
  }

  void release() noexcept {
    if (id_ != 0) detail::release(runtime_, std::exchange(id_, 0));
  }

  // forget() empties the ticket without releasing it: its number was consumed by other means.
  void forget() noexcept { id_ = 0; }

  static constexpr bool consumes(status code) noexcept {
    return code != status::timed_out && code != status::would_deadlock &&
           code != status::too_deep && code != status::bad_argument && code != status::would_block;
  }

 private:
  detail::runtime_state* runtime_ = nullptr;
  std::uint64_t id_ = 0;
};

constexpr std::size_t none_ready = static_cast<std::size_t>(-1);

namespace detail {
// A container whose tickets lie one after the other: a std::vector, std::array or std::span.
template <class Tickets, class Ticket>
concept has_tickets = requires(Tickets& t, Ticket** where, std::size_t* count) {
  *where = t.data();
  *count = t.size();
};
}  // namespace detail

// wait_all() waits for and consumes every non-empty ticket. Returns the first failure by position,
// with the number of failures in all; ok for an empty set, bad_argument for null with a count. On a
// time-out, tickets without outcome stay. `how` as in ticket::wait(), here and below. The tickets
// may be given as a std::vector, std::array or std::span; what follows it is the time-out, so a
// number of tickets is refused there.
outcome wait_all(ticket* tickets, std::size_t count, std::int64_t timeout_ns = no_timeout,
                 wait_policy how = wait_policy::of_runtime) noexcept;
template <detail::has_tickets<ticket> Tickets>
outcome wait_all(Tickets&& tickets, std::int64_t timeout_ns = no_timeout,
                 wait_policy how = wait_policy::of_runtime) noexcept {
  return wait_all(tickets.data(), tickets.size(), timeout_ns, how);
}
template <detail::has_tickets<ticket> Tickets, class Count>
  requires std::is_same_v<Count, std::size_t>
outcome wait_all(Tickets&& tickets, Count count,
                 wait_policy how = wait_policy::of_runtime) = delete;

// wait_any() waits until one ticket has its outcome, consumes that one and stores its place in
// `index`. Empty tickets are passed over. Errors: bad_argument when no ticket is left (never blocks
// for ever), they are of several runtimes, or a pointer is null; timed_out (nothing is consumed).
outcome wait_any(ticket* tickets, std::size_t count, std::size_t* index,
                 std::int64_t timeout_ns = no_timeout,
                 wait_policy how = wait_policy::of_runtime) noexcept;
template <detail::has_tickets<ticket> Tickets>
outcome wait_any(Tickets&& tickets, std::size_t* index, std::int64_t timeout_ns = no_timeout,
                 wait_policy how = wait_policy::of_runtime) noexcept {
  return wait_any(tickets.data(), tickets.size(), index, timeout_ns, how);
}

}  // namespace lev

#endif
