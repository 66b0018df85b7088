// The scopes of a runtime, and a round through them; see scope_list.hpp.
#include "runtime/scope_list.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace lev::detail {

void scope_list::add(scope& one) {
  const spin_guard<> held(lock_);
  all_.push_back(&one);
  count_.store(static_cast<std::uint32_t>(all_.size()), memory_order_relaxed);
}

void scope_list::remove(scope& one) noexcept {
  const spin_guard<> held(lock_);
  const std::size_t found = std::erase(all_, &one);
  LEV_DCHECK(found == 1);
  count_.store(static_cast<std::uint32_t>(all_.size()), memory_order_relaxed);
}

bool scope_list::ask_each() noexcept {
  if (!lock_.try_lock()) return false;
  std::size_t given = 0;
  for (scope* one : all_) given += one->give_back();
  lock_.unlock();
  return given != 0;
}

}  // namespace lev::detail
