// awaited: what a participant waits for.
#pragma once

#include "task/task_state.hpp"

#include <cstdint>

namespace lev {

// is_there() is asked again and again; arm() arranges for a wake-up, and returns false if there is
// no need to sleep any more.
struct awaited {
  // If it is the end of one task: where a look sees it without a call, and the word until then.
  const task_state<>* one = nullptr;
  std::uint64_t pending = 0;

  virtual bool is_there() noexcept = 0;
  virtual bool arm() noexcept = 0;
  virtual void disarm() noexcept {}
  // Whether the end of `task` is awaited, or one such end.
  virtual bool awaits(std::uint32_t) const noexcept { return false; }
  // It comes from another runtime, whose tasks may wait for any task of this one.
  virtual bool is_elsewhere() const noexcept { return false; }
  // It takes many tasks, or any: no single end need be told at once.
  virtual bool is_patient() const noexcept { return false; }
  // The deadline is that of a look: the caller waits again after it.
  virtual bool looks_again() const noexcept { return false; }

 protected:
  awaited() = default;
  awaited(const awaited&) = default;
  awaited& operator=(const awaited&) = default;
  ~awaited() = default;
};

// The word of one task is mostly the same as before, with nothing announced.
inline bool is_one_over(const awaited& what) noexcept {
  return what.one->word() != what.pending && !what.one->is_still(what.pending);
}
inline bool is_over(awaited& what) noexcept {
  return what.one != nullptr ? is_one_over(what) : what.is_there();
}

// When a wait inside a task gives up: when every context of every participant waits, or when no
// participant has run anything for 10 ms.
enum class giving_up : std::uint8_t { when_all_wait, when_still };

}  // namespace lev
