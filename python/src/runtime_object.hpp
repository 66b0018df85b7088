// Runtime as Python has it: a session, and the calls that submit to it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "pack.hpp"
#include "wait_set.hpp"

namespace lev::python {

// leveret.Mutex: named by tasks with locks=.
struct task_mutex {
  std::shared_ptr<session> owner;
  mutex_id id;
};

// Keyword arguments of a submit.
struct submit_options {
  nb::object after;
  nb::object locks;
  std::int32_t priority = 0;
  std::uint32_t key = 0;
  std::uint32_t grain = 0;
  std::uint64_t task_ns_max = 0;
  std::uint32_t max_attempts = 0;

  bool asks_nothing() const noexcept {
    return is_empty_tuple(after) && is_empty_tuple(locks) && priority == 0 && key == 0 &&
           grain == 0 && task_ns_max == 0 && max_attempts == 0;
  }
};

// options_of() makes the core's options of all of them but `after`.
options options_of(const submit_options& asked, const session* owner);

// The core's close() is for one thread at a time. A turn ends after 20 ms, or with the task that it
// helps with; where it ends what runs, with the time that this may take. Then others come first:
// one that ends what runs, or a task, which is told that it cannot.
//
// Thread safety: any thread, without the GIL.
class closing_turns {
 public:
  // begin() waits for the caller's turn; false when the time is over. After end() another thread
  // that waits has its turn before this one comes again.
  bool begin(std::int64_t ns);
  void end();
  // is_own() tells whether it is this thread's turn already: it runs a task below its close().
  bool is_own();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id who_;      // whose turn it is; all guarded by mutex_
  unsigned waiting_ = 0;     // for their turns
  std::uint64_t begun_ = 0;  // turns
};

class runtime_object {
 public:
  explicit runtime_object(std::shared_ptr<session> s) : session_(std::move(s)) {}

  ticket_object* submit(const plan& p, nb::tuple values, const submit_options& o,
                        const lev::range* whole);
  // submit_at_once() is submit() of a task that asks for nothing and need not wait, with the GIL
  // held. The Ticket is made in `place`. False: neither was done, and submit() must be asked.
  bool submit_at_once(const plan& p, PyObject* const* values, std::size_t count, void* place);
  ticket_object* submit_bulk(const plan& p, nb::tuple values, nb::object count);
  void wait_for_completion(nb::object timeout);
  void close(nb::object timeout, bool cancel_waiting, bool end_running);
  // is_closed(): a forked child has nothing to close.
  bool is_closed() const noexcept { return is_closed_ || session_->is_forked(); }
  void set_filters(nb::object names);
  task_mutex make_mutex();
  nb::dict counters();
  nb::list worker_counters();
  void write_trace(nb::bytes path);

  // runtime() raises in a forked child. Releases what completed tasks held, as every call does.
  lev::runtime& runtime() {
    lev::runtime& r = session_->runtime();
    session_->collect();
    return r;
  }
  const std::shared_ptr<session>& owner() const noexcept { return session_; }
  // state() is for threads without the GIL.
  detail::runtime_state* state() noexcept { return session_->state(); }

 private:
  lev::ticket try_submit(const descriptor& task, const options& o, refusal* why);
  lev::ticket join(std::vector<std::uint64_t>& ids, refusal* why);
  lev::ticket submit_after(const descriptor& task, const options& o, nb::handle after,
                           refusal* why);
  lev::ticket try_submit_after(const descriptor& task, options o,
                               const std::vector<nb::object>& tickets, refusal* why);

  template <class Close>
  std::optional<status> close_in_turn(std::int64_t ns, Close&& close);

  std::shared_ptr<session> session_;
  closing_turns closing_;
  bool is_closed_ = false;
};

}  // namespace lev::python
