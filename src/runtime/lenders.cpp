// The list of lenders, and a round through it; see lenders.hpp.
#include "runtime/lenders.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace lev::detail {

void lenders::add(lender& one) {
  const spin_guard<> held(lock_);
  all_.push_back(&one);
  count_.store(static_cast<std::uint32_t>(all_.size()), memory_order_relaxed);
}

void lenders::remove(lender& one) noexcept {
  const spin_guard<> held(lock_);
  const std::size_t found = std::erase(all_, &one);
  LEV_DCHECK(found == 1);
  count_.store(static_cast<std::uint32_t>(all_.size()), memory_order_relaxed);
}

bool lenders::ask_each() noexcept {
  if (!lock_.try_lock()) return false;
  std::size_t given = 0;
  for (lender* one : all_) given += one->give_back();
  lock_.unlock();
  return given != 0;
}

}  // namespace lev::detail
