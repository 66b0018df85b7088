// scope_list: the scopes of ordered tasks. A scope has tickets that no caller will ask for by
// number. It collects those of complete tasks in its own calls. While it is in none, or waits in
// one, a submitter that finds no ticket free has it give them back.
#pragma once

#include "base/assert.hpp"
#include "sync/spin_lock.hpp"

#include <cstddef>
#include <vector>

namespace lev::detail {

struct scope {
  // give_back() returns how many tickets it has given back; 0, too, while the scope's owner is in a
  // call and does not wait there: that call collects. Any thread.
  virtual std::size_t give_back() noexcept = 0;

 protected:
  scope() = default;
  scope(scope&&) = delete;
  ~scope() = default;
};

class scope_list {
 public:
  // Throws std::bad_alloc.
  void add(scope& one) {
    const spin_guard<> held(lock_);
    all_.push_back(&one);
    count_.store(static_cast<std::uint32_t>(all_.size()), memory_order_relaxed);
  }
  // No give_back() of `one` is under way afterwards.
  void remove(scope& one) noexcept {
    const spin_guard<> held(lock_);
    const std::size_t found = std::erase(all_, &one);
    LEV_DCHECK(found == 1);
    count_.store(static_cast<std::uint32_t>(all_.size()), memory_order_relaxed);
  }

  // ask() tells whether a ticket was given back. Cost: a load if there are no scopes. No waiting:
  // false, too, while another thread asks.
  bool ask() noexcept { return count_.load(memory_order_relaxed) != 0 && ask_each(); }
  bool is_empty() const noexcept { return count_.load(memory_order_relaxed) == 0; }

 private:
  [[gnu::noinline]] bool ask_each() noexcept {
    if (!lock_.try_lock()) return false;
    std::size_t given = 0;
    for (scope* one : all_) given += one->give_back();
    lock_.unlock();
    return given != 0;
  }

  spin_lock<> lock_;
  std::vector<scope*> all_;  // under the lock
  // Written under the lock, read by those that ask: how many. Publishes nothing.
  atomic<std::uint32_t> count_{0};
};

}  // namespace lev::detail
