// lenders: holders of tickets that no caller will ask for by number. They give back those of
// complete tasks when a submitter finds none free. Scopes of ordered tasks are lenders: they
// collect in their own calls, and while a scope is in no call no other thread would.
#ifndef LEVERET_RUNTIME_LENDERS_HPP
#define LEVERET_RUNTIME_LENDERS_HPP

#include "sync/spin_lock.hpp"

#include <cstddef>
#include <vector>

namespace lev::detail {

struct lender {
  // give_back() returns how many tickets it has given back; 0, too, while the lender's owner is in
  // a call, which then collects. Any thread.
  virtual std::size_t give_back() noexcept = 0;

 protected:
  lender() = default;
  lender(const lender&) = delete;
  lender& operator=(const lender&) = delete;
  ~lender() = default;
};

class lenders {
 public:
  // Throws std::bad_alloc.
  void add(lender& one);
  // No give_back() of `one` is under way afterwards.
  void remove(lender& one) noexcept;

  // ask() tells whether a ticket was given back. Cost: a load if there are no lenders. No waiting:
  // false, too, while another thread asks.
  bool ask() noexcept { return count_.load(memory_order_relaxed) != 0 && ask_each(); }
  bool is_empty() const noexcept { return count_.load(memory_order_relaxed) == 0; }

 private:
  bool ask_each() noexcept;

  spin_lock<> lock_;
  std::vector<lender*> all_;  // under the lock
  // Written under the lock, read by those that ask: how many. Publishes nothing.
  atomic<std::uint32_t> count_{0};
};

}  // namespace lev::detail

#endif
