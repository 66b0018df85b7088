// call_port: Python calls on their way to worker processes and back, for leveret.ProcessExecutor.
//
// A call is a task of the procedure python_call(). The thread that completes it, mostly without the
// GIL, puts it into the list of finished calls. The list is delivered to Python by
//   - a thread that waits for a call, when one ends on it: it has given up the GIL, and takes it
//     back
//   - the caller of submit(), which must drain() the list afterwards
//   - the waiter of one that ends on another thread: it is woken for that
//   - else the courier, a thread of the port's own. While other threads submit and wait it leaves
//     the list to them for a while: two threads that fight for the GIL take turns of milliseconds.
//     It takes an urgent call at once: one for which a thread waits that is not in here.
// The runtime's own thread never waits for the GIL. What users want called when a call ends runs
// on the courier alone: on other threads it would run within submit() or a wait, under whatever
// locks their callers hold.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime_object.hpp"

namespace lev::python {

class call_port;
class deadline;

// One call. All but `how`, the atomics and `next` with the GIL.
struct port_call {
  static constexpr std::size_t reply_bytes = 1024;

  port_call() = default;
  ~port_call() { release_all(buffers); }
  port_call(port_call&&) = delete;

  nb::object port;  // keeps it alive
  nb::object cookie;
  nb::object block;                // the reply's place, or none: then it is `reply`
  std::vector<Py_buffer> buffers;  // the request, then what its arguments refer to
  std::uint64_t id = 0;
  std::thread::id waiter;        // in wait()
  unsigned further_waiters = 0;  // threads whose turn comes when that one's time is over
  bool is_delivered = false;
  lev::outcome how;
  // Written by whoever consumed the ticket, after `how`, which it publishes; read with the GIL.
  std::atomic<bool> has_outcome{false};
  // Whether the courier is to deliver it at once. Written with the GIL, read by whoever completes
  // the call; publishes nothing.
  std::atomic<bool> is_urgent{false};
  port_call* next = nullptr;  // in the list of finished calls
  alignas(16) char reply[reply_bytes];
};

// A port's own thread, and what it waits for.
struct courier {
  std::mutex mutex;
  std::condition_variable called;
  bool is_called = false;   // guarded by mutex
  bool is_hurried = false;  // guarded by mutex
  bool is_closing = false;  // guarded by mutex
  bool is_short = false;    // of memory for what it is called for; guarded by mutex
  // The port is being destroyed: nobody may take hold of it any more. With the GIL.
  bool is_over = false;
  std::thread thread;
};

class call_port {
 public:
  // `deliver` gets a list of (cookie, status, code, text, reply, call) for each batch of finished
  // calls: a plain reply as replies.hpp reads it, any other as bytes or as its block. With it comes
  // whether code of the user's may run: on the courier and in a wait, not within submit().
  // `deaths`: obituaries, or none; `deliver` is called when there are some, too. `call_back` is
  // called on the courier, after each delivery there and after hurry().
  call_port(nb::object runtime, nb::object deliver, nb::object call_back, bool may_rerun,
            nb::object setup, nb::object deaths);
  ~call_port();
  call_port(call_port&&) = delete;

  // What a call asks for in place of what its port and its runtime say.
  struct limits {
    std::uint64_t task_ns_max = 0;
    std::uint32_t max_attempts = 0;
    nb::object may_rerun;  // None: as the port's
  };
  // submit() returns the call, or none when all tickets are in use. Raises what Runtime.submit()
  // raises. The caller must drain() afterwards if has_finished().
  nb::object submit(nb::handle self, nb::object cookie, nb::object request, nb::list buffers,
                    nb::object block, const limits& own);
  // end() asks for the call's end, also if it runs. False: it has ended.
  bool end(port_call& c);
  // wait() returns true when the call's outcome was delivered; false when another thread is
  // delivering it, or the time is over. Of several threads one waits in the runtime. If it gives
  // up another one does: the courier may be in a callback of the user's.
  bool wait(port_call& c, nb::object timeout);
  // tend() lets ends come in and posts go out, without waiting; `c` is a call under way.
  void tend(port_call& c);
  // drain() delivers what is finished. may_run_code: see below.
  void drain(bool may_run_code);
  // hurry() has the courier deliver what is finished and run call_back, soon.
  void hurry() noexcept { call_courier(true); }
  // try_later() is hurry() after a moment, where there is no memory now.
  void try_later() noexcept;
  // leave() has it run call_back soon, or, if not urgent, when others leave the port alone.
  void leave(bool is_urgent) noexcept;
  // close() ends the courier; the runtime must be closed. A second call does nothing.
  void close();
  bool is_own_thread() const noexcept {
    return courier_ != nullptr && courier_->thread.get_id() == std::this_thread::get_id();
  }
  bool has_finished() const noexcept {
    return finished_.load(std::memory_order_relaxed) != nullptr;
  }
  // Has the courier look whether there is something to deliver. Any thread.
  void call_courier(bool is_hurried = false) noexcept;

  int traverse(visitproc visit, void* arg);
  void clear();

 private:
  static void on_complete(void* context) noexcept;
  void end_courier();
  void forget_courier() noexcept;
  bool push(port_call* c) noexcept;
  void note_spent(port_call* c) noexcept;
  void drop_spent() noexcept;
  static void drop(port_call* list) noexcept;
  void begin_wait(port_call& c) noexcept;
  void end_wait(port_call& c) noexcept;
  bool has_deaths() const noexcept;
  void run_courier();
  void serve();
  bool is_looked_after() const noexcept;
  void note_use() noexcept;
  bool wait_for_turn(port_call& c, const deadline& end);
  bool wait_for_delivery(const port_call& c, const deadline& end);
  void add_to(nb::list& batch, port_call& c);
  void deliver(const nb::list& batch, bool may_run_code);
  void deliver_again(const nb::object& to, const nb::list& batch, nb::python_error& e);
  void deliver_failed();
  // take() delivers a call whose outcome this thread has got.
  void take(port_call& c, lev::outcome&& how, nb::list& batch, bool may_run_code);

  nb::object runtime_;
  nb::object deliver_;
  nb::object call_back_;
  std::pair<std::uint64_t, std::uint64_t> setup_;  // what workers find it by
  nb::object deaths_;
  nb::list failed_;  // batches that could not be delivered, for the courier
  bool may_rerun_;
  // Calls whose callback has run. Written by completing threads, which push with release; emptied
  // with the GIL, with acquire.
  std::atomic<port_call*> finished_{nullptr};
  // Calls whose callback has come when their outcome was taken: all that is left of them. Written
  // and emptied as finished_.
  std::atomic<port_call*> spent_{nullptr};
  // The call that a thread waits for, which drains when its wait is over; of several the first one.
  // Written with the GIL, compared by whoever completes a call; publishes nothing.
  std::atomic<const port_call*> awaited_{nullptr};
  // Whether call_back has work that may wait until the port is left alone. Written with the GIL,
  // taken by the courier; publishes nothing.
  std::atomic<bool> has_left_{false};
  // When a thread last submitted or waited. Written by those threads, read by the courier;
  // publishes nothing.
  std::atomic<std::int64_t> used_ns_{0};

  pid_t owner_;
  std::unique_ptr<courier> courier_;  // null in a child of fork(), see forget_courier()
};

}  // namespace lev::python
