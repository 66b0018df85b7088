// See memory_uses.hpp.
#include "flow/memory_uses.hpp"

#include "base/assert.hpp"

namespace lev {

void memory_uses::look_up(const argument* arguments, unsigned count) {
  named_.clear();
  meetings_.clear();
  keep_free_readers(count);
  for (unsigned i = 0; i < count; ++i) {
    const argument& a = arguments[i];
    if (!has_address(a) || is_empty(a)) continue;
    region* own = recent_of(a);
    const bool is_known = own != nullptr && own->is_alone && lie_alike(a, own->where);
    if (is_known && (own->was_written || !is_output(a))) {
      meetings_.push_back({own, is_output(a), is_output(a)});
    } else {
      own = &search(a);
    }
    own->is_idle = false;
    named_.push_back({own, is_output(a)});
  }
}

// So that add() need not allocate.
void memory_uses::keep_free_readers(unsigned count) {
  for (; free_readers_ < count; ++free_readers_) {
    readers_.push_back({nobody, free_reader_});
    free_reader_ = static_cast<std::uint32_t>(readers_.size() - 1);
  }
}

void memory_uses::add_reader(region& r, std::uint32_t task) noexcept {
  LEV_DCHECK(free_readers_ != 0);
  --free_readers_;
  const std::uint32_t i = std::exchange(free_reader_, readers_[free_reader_].next);
  readers_[i] = {task, std::exchange(r.first_reader, i)};
}

memory_uses::region& memory_uses::search(const argument& a) {
  const std::size_t first = meetings_.size();
  region& own = region_of(a, note_meetings(a));
  bool is_alone = true;
  for (std::size_t i = first; i < meetings_.size(); ++i) {
    if (meetings_[i].with == &own) continue;
    meetings_[i].with->is_alone = false;
    is_alone = false;
  }
  // A task that reads a region which was written has not looked at all its neighbours.
  if (is_output(a) || !own.was_written) own.is_alone = is_alone;
  recent_of(a) = &own;
  return own;
}

// Returns the region that lies alike, if it is among those that `a` meets.
memory_uses::region* memory_uses::note_meetings(const argument& a) {
  const bool writes = is_output(a);
  region* alike = nullptr;
  const auto note = [&](region& r) {
    if (lie_alike(a, r.where)) {
      alike = &r;
    } else if (!do_overlap(a, r.where)) {
      return;
    }
    meetings_.push_back({&r, writes, writes && (alike == &r || covers(a, r.where))});
  };
  written_.visit_near(a, note);
  if (writes) read_.visit_near(a, note);
  return alike;
}

// `found`, which may be null, lies alike and was met.
memory_uses::region& memory_uses::region_of(const argument& a, region* found) {
  const bool writes = is_output(a);
  if (found == nullptr && !writes) found = read_.find(a);
  if (found == nullptr) return (writes ? written_ : read_).add(a);
  if (writes && !found->was_written) written_.put(read_.take(*found));
  found->was_written |= writes;
  return *found;
}

void memory_uses::add(std::uint32_t task) noexcept {
  LEV_DCHECK(task != nobody);
  for (const meeting& m : meetings_) {
    if (!m.covers) continue;
    m.with->writer = nobody;
    drop_readers(*m.with, [](std::uint32_t) { return true; });
  }
  for (const named_region& n : named_) {
    if (n.is_written) {
      n.which->writer = task;
    } else {
      add_reader(*n.which, task);
    }
  }
  named_.clear();
  meetings_.clear();
}

memory_uses::region* memory_uses::regions_by_length::find(const argument& a) noexcept {
  auto [next, end] = groups_[order_of(a)].regions.equal_range(a.address);
  while (next != end && !lie_alike(next->second.where, a)) ++next;
  return next == end ? nullptr : &next->second;
}

memory_uses::regions_by_length::length_group& memory_uses::regions_by_length::group_for(
    const argument& a) noexcept {
  const unsigned order = order_of(a);
  orders_ |= std::uint64_t{1} << order;
  groups_[order].longest = larger(groups_[order].longest, extent_bytes(a));
  return groups_[order];
}

memory_uses::region& memory_uses::regions_by_length::add(const argument& a) {
  return group_for(a).regions.emplace(a.address, region{a, nobody, nobody, is_output(a)})->second;
}

memory_uses::regions_by_length::map::node_type memory_uses::regions_by_length::take(
    const region& r) noexcept {
  map& all = groups_[order_of(r.where)].regions;
  auto at = all.lower_bound(r.where.address);
  while (&at->second != &r) ++at;
  return all.extract(at);
}

void memory_uses::regions_by_length::put(map::node_type&& node) noexcept {
  group_for(node.mapped().where).regions.insert(std::move(node));
}

std::size_t memory_uses::regions_by_length::count() const noexcept {
  std::size_t count = 0;
  for (const length_group& g : groups_) count += g.regions.size();
  return count;
}

}  // namespace lev
