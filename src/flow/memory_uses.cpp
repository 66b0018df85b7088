// See memory_uses.hpp.
#include "flow/memory_uses.hpp"

#include <utility>

namespace lev {

memory_uses::map memory_uses::list_of(const argument* arguments, unsigned count) {
  map list;
  for (unsigned i = 0; i < count; ++i) {
    const argument& a = arguments[i];
    if (has_address(a) && !is_empty(a)) list.emplace(a.address, memory_use{a});
  }
  return list;
}

void memory_uses::add(map&& list, std::uint32_t task) noexcept {
  for (const auto& [begin, use] : list) {
    if (!is_output(use.where)) continue;
    visit_near(use.where, [&, this](int order, map::const_iterator other) {
      if (!covers(use.where, other->second.where)) return;
      by_length_[order].erase(other);
      --size_;
    });
  }
  while (!list.empty()) {
    auto use = list.extract(list.begin());
    use.mapped().task = task;
    const int order = length_order(use.mapped().where);
    by_length_[order].insert(std::move(use));
    orders_ |= bit_of(order);
    ++size_;
  }
}

void memory_uses::clear() noexcept {
  for (map& all : by_length_) all.clear();
  orders_ = 0;
  size_ = 0;
}

}  // namespace lev
