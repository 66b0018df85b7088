// memory_uses: which tasks use which memory, and so which of them a later task must follow. For one
// thread at a time; allocates.
//
// Uses are kept by where they begin, separately for each order of magnitude of their length: so
// those that may meet some memory lie close together, even if one task uses an array and others a
// block of it each. Those that write are kept apart from those that only read: of what is read
// again and again there are many, and a task that reads it, too, does not look at them.
#ifndef LEVERET_FLOW_MEMORY_USES_HPP
#define LEVERET_FLOW_MEMORY_USES_HPP

#include "base/numbers.hpp"
#include "task/arguments.hpp"

#include <bit>
#include <iterator>
#include <map>

namespace lev {

// A use of memory by a task, whose number the owner chooses.
struct memory_use {
  argument where;
  std::uint32_t task = 0;
};

// Whether one of two tasks must follow the other. Precondition: validate() has passed both.
inline bool do_conflict(const argument& a, const argument& b) noexcept {
  return (is_output(a) || is_output(b)) && do_overlap(a, b);
}

// Whether each task that conflicts with `b` conflicts with one that writes `a`. A no may be wrong.
inline bool covers(const argument& a, const argument& b) noexcept {
  const bool is_within = a.address <= b.address && b.address - a.address <= extent_bytes(a) &&
                         extent_bytes(b) <= extent_bytes(a) - (b.address - a.address);
  const bool is_same = a.row_bytes == b.row_bytes && a.rows == b.rows &&
                       a.stride_bytes == b.stride_bytes && a.address == b.address;
  return is_same || (is_within && is_contiguous(a));
}

class memory_uses {
 public:
  using map = std::multimap<std::uint64_t, memory_use>;

  // list_of() makes the argument of add(), which then cannot fail: the memory that a task's
  // arguments name. Precondition: validate() has passed them. Throws std::bad_alloc.
  static map list_of(const argument* arguments, unsigned count);

  // visit_conflicts() calls visit(task) for the task of each use that conflicts with `a`, some more
  // than once.
  template <class Visit>
  void visit_conflicts(const argument& a, Visit&& visit) const {
    const auto look = [&](int, map::const_iterator use) {
      if (do_conflict(a, use->second.where)) visit(use->second.task);
    };
    writing_.visit_near(a, look);
    if (is_output(a)) reading_.visit_near(a, look);
  }

  // add() takes the uses of a task that follows all those that conflict with it. It forgets uses
  // that the task's writes cover: a later task that conflicts with one of them follows this task,
  // and so that one.
  void add(map&& list, std::uint32_t task) noexcept;

  // drop() forgets the uses of tasks for which is_gone(task) is true.
  template <class Gone>
  void drop(Gone&& is_gone) {
    writing_.drop(is_gone);
    reading_.drop(is_gone);
  }
  void clear() noexcept;
  std::size_t size() const noexcept { return writing_.size() + reading_.size(); }

 private:
  class uses_by_length {
   public:
    // Calls visit(order, iterator) for each use that begins where it may meet `a`.
    template <class Visit>
    void visit_near(const argument& a, Visit&& visit) const {
      const std::uint64_t end = a.address + extent_bytes(a);
      for (std::uint64_t left = orders_; left != 0; left &= left - 1) {
        const int order = std::countr_zero(left) + 1;
        const map& all = by_length_[order];
        const std::uint64_t longest = ~std::uint64_t{0} >> (64 - order);
        auto use = all.upper_bound(a.address < longest ? 0 : a.address - longest);
        while (use != all.end() && use->first < end) visit(order, use++);
      }
    }
    template <class Gone>
    void drop(Gone&& is_gone) {
      for (std::uint64_t left = orders_; left != 0; left &= left - 1) {
        const int order = std::countr_zero(left) + 1;
        map& all = by_length_[order];
        size_ -= std::erase_if(all, [&](const auto& use) { return is_gone(use.second.task); });
        if (all.empty()) orders_ &= ~bit_of(order);
      }
    }
    void add(map::node_type&& use) noexcept;
    void drop_covered(const argument& a) noexcept;
    void clear() noexcept;
    std::size_t size() const noexcept { return size_; }

   private:
    static constexpr std::uint64_t bit_of(int order) noexcept {
      return std::uint64_t{1} << (order - 1);
    }

    map by_length_[65];         // by bit_width of the length in bytes
    std::uint64_t orders_ = 0;  // those that may not be empty, as bits
    std::size_t size_ = 0;
  };

  uses_by_length writing_;
  uses_by_length reading_;
};

}  // namespace lev

#endif
