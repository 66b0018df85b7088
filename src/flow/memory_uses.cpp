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
    writing_.drop_covered(use.where);
    reading_.drop_covered(use.where);
  }
  while (!list.empty()) {
    auto use = list.extract(list.begin());
    use.mapped().task = task;
    (is_output(use.mapped().where) ? writing_ : reading_).add(std::move(use));
  }
}

void memory_uses::clear() noexcept {
  writing_.clear();
  reading_.clear();
}

void memory_uses::uses_by_length::add(map::node_type&& use) noexcept {
  const int order = std::bit_width(extent_bytes(use.mapped().where));
  by_length_[order].insert(std::move(use));
  orders_ |= bit_of(order);
  ++size_;
}

void memory_uses::uses_by_length::drop_covered(const argument& a) noexcept {
  visit_near(a, [&, this](int order, map::const_iterator use) {
    if (!covers(a, use->second.where)) return;
    by_length_[order].erase(use);
    --size_;
  });
}

void memory_uses::uses_by_length::clear() noexcept {
  for (map& all : by_length_) all.clear();
  orders_ = 0;
  size_ = 0;
}

}  // namespace lev
