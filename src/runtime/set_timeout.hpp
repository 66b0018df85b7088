// set_timeout: the time-out of a wait for a set of tickets, perhaps of several runtimes. Each has a
// clock of its own, which began when the runtime was opened, or counts virtual time.
#pragma once

#include "runtime/wait.hpp"

namespace lev::detail {

class set_timeout {
 public:
  explicit set_timeout(std::int64_t timeout_ns) noexcept : ns_(timeout_ns) {}

  // What is left of it, for a wait in `home`. Not inline: it would take registers from the loop
  // over tickets of tasks that are complete.
  [[gnu::noinline]] std::int64_t left_ns(runtime_state* home) noexcept {
    if (ns_ <= 0 || home == nullptr) return ns_;
    if (home != home_) {
      if (home_ != nullptr) ns_ = remaining_ns();
      home_ = home;
      deadline_ns_ = deadline_after(*home, ns_);
    }
    return remaining_ns();
  }
  // The same for the next wait. When the time is over, the first wait still takes a moment, however
  // short the time was: a task's wait lets others run, and a poll does not. Those behind it poll.
  std::int64_t next_ns(runtime_state* home) noexcept {
    const std::int64_t left = left_ns(home);
    if (left == least_ns && has_waited_) end();
    has_waited_ = true;
    return ns_ == 0 ? 0 : left;
  }
  // begin() starts the clock in `home`, if it is not there already.
  void begin(runtime_state* home) noexcept {
    if (ns_ > 0) left_ns(home);
  }
  // From now on a wait only polls.
  void end() noexcept { ns_ = 0; }
  bool is_poll() const noexcept { return ns_ == 0; }

 private:
  static constexpr std::int64_t least_ns = 1;

  std::int64_t remaining_ns() const noexcept {
    if (deadline_ns_ == no_deadline) return no_timeout;
    const std::uint64_t now = home_->machine->now_ns();
    return now >= deadline_ns_ ? least_ns : static_cast<std::int64_t>(deadline_ns_ - now);
  }

  std::int64_t ns_;  // what was left when the caller turned to home_
  runtime_state* home_ = nullptr;
  std::uint64_t deadline_ns_ = no_deadline;  // by the clock of home_
  bool has_waited_ = false;
};

}  // namespace lev::detail
