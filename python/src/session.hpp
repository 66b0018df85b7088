// A runtime as Python holds it: shared by the Runtime object and its tickets, so that it outlives
// the last of them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gil.hpp"
#include "hold.hpp"

namespace lev::python {

// watch_forks() is called at import. fork_count() says how many forks lie between this process and
// that one.
void watch_forks();

// Written by a child's only thread right after the fork, read by everyone; publishes nothing.
inline std::atomic<unsigned> forks{0};
inline unsigned fork_count() noexcept {
  return forks.load(std::memory_order_relaxed);
}

// with_borrowed() lends the core's ticket to a call that may come from a second thread, or that may
// not consume it: it still belongs to whoever has its number.
template <class Use>
auto with_borrowed(detail::runtime_state* state, std::uint64_t id, Use&& use) {
  lev::ticket borrowed(state, id);
  auto answer = use(borrowed);
  borrowed.forget();
  return answer;
}

class session {
 public:
  // make() gives one that is ended by the last to let go of it, with the GIL: there, or on the main
  // thread as soon as that can, where it is one of the runtime's own tasks, a Python function. Such
  // a task cannot wait for itself, and cannot know what the garbage collector ends in it.
  static std::shared_ptr<session> make(config c, std::vector<std::string> command,
                                       nb::object obituaries);

  // Raises; starts the workers without the GIL. `command` is config.processes.worker_command, empty
  // for none. `obituaries` is told of deaths, or none.
  session(config c, std::vector<std::string> command, nb::object obituaries);
  ~session();  // with the GIL, which it gives up while tasks drain
  session(session&&) = delete;

  // runtime() raises when this process is a fork of the one that opened it: threads do not survive
  // a fork; and in a task of 'sim'.
  lev::runtime& runtime() {
    const bool is_refused = is_forked() || (has_simulated && detail::is_in_virtual_task());
    return is_refused ? refuse_runtime() : *runtime_;
  }
  bool is_forked() const noexcept { return fork_count_ != fork_count(); }
  detail::runtime_state* state() noexcept { return runtime_->state(); }

  // keep_until_complete() has `h` released after the task of `t` completed; called once. False: it
  // is too late, as somebody has had the outcome; never right after the submit.
  bool keep_until_complete(lev::ticket& t, hold* h);

  // leave_to_end() takes a ticket that nobody has any more: that its task ends as `expected` is no
  // failure, and any other failure counts as dropped. cancelled: the coroutine that awaited it has
  // given it up; dependency_failed: it joins others, which tell of their failures themselves.
  void leave_to_end(lev::ticket&& t, status expected) noexcept;

  // collect() releases what completed tasks no longer need; every Python call that touches the
  // runtime does it.
  void collect() noexcept {
    if (finished_.load(std::memory_order_relaxed) != nullptr) collect_finished();
    if (!left_.empty()) collect_left();
  }

  // note_dropped() counts a task that failed before it came to the core, and whose ticket nobody
  // waited for. add_dropped() adds those to what the core says of its own, once.
  void note_dropped(status code) noexcept;
  void add_dropped(outcome& o) noexcept;

 private:
  static void end(session* s) noexcept;
  // begin_to_close() is for one that nobody uses any more. False: a task of its own asks, which
  // its end would wait for.
  bool begin_to_close() noexcept;
  static void on_complete(void* h) noexcept;
  [[noreturn]] lev::runtime& refuse_runtime();
  void collect_finished() noexcept;
  void collect_left() noexcept;

  // Whether a runtime on 'sim' was ever opened: only its tasks are in virtual time. With the GIL.
  static inline bool has_simulated = false;

  nb::object obituaries_;             // outlives the runtime
  std::vector<std::string> command_;  // a new zygote may be started from it at any time
  std::vector<const char*> command_words_;
  lev::runtime* runtime_;
  unsigned fork_count_;
  struct left_ticket {
    lev::ticket of;
    status expected;
  };
  std::vector<left_ticket> left_;
  status dropped_ = status::ok;  // of the first
  unsigned dropped_count_ = 0;
  // Holds of completed tasks. Written by completing threads, which push with release what they
  // wrote to `next`; read and emptied by Python calls, with acquire.
  std::atomic<hold*> finished_{nullptr};
};

}  // namespace lev::python
