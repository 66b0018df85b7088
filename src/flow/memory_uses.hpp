// memory_uses: which tasks use which memory, and so which of them a later task must follow. For one
// thread at a time; allocates.
//
// A *region* is memory that tasks have named alike, with the task that has written it last and
// those that have read it since. A program names the same blocks again and again, so the regions of
// a task mostly exist. They are kept by their begin, separately for each order of magnitude of
// their length. So the regions that may meet some memory lie close together, even if one task uses
// an array and others a block of it each. Regions that no task has written are kept apart, because
// many of them may meet, and a task that reads does not look at them. A region that meets no other
// one is found by its address alone.
//
//   uses.look_up(arguments, count);   the regions that a task names, and those that they meet
//   uses.visit_conflicts(visit);      the tasks that it follows
//   uses.add(task);                   and now its uses are noted, too
#pragma once

#include "base/numbers.hpp"
#include "task/arguments.hpp"

#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace lev {

// Whether `a` and `b` name the same bytes in the same way.
inline bool lie_alike(const argument& a, const argument& b) noexcept {
  return a.address == b.address && a.row_bytes == b.row_bytes && a.rows == b.rows &&
         a.stride_bytes == b.stride_bytes;
}

// Whether each task that conflicts with `b` conflicts with one that writes `a`. A no may be wrong.
inline bool covers(const argument& a, const argument& b) noexcept {
  const bool is_within = a.address <= b.address && b.address - a.address <= extent_bytes(a) &&
                         extent_bytes(b) <= extent_bytes(a) - (b.address - a.address);
  return (is_within && is_contiguous(a)) || lie_alike(a, b);
}

class memory_uses {
 public:
  // look_up() finds the regions of a task's arguments, or notes new ones. Precondition: validate()
  // has passed them. Throws std::bad_alloc; then the task may not be added.
  void look_up(const argument* arguments, unsigned count);

  // visit_conflicts() calls visit(task) for each task that conflicts with what was looked up, for
  // some more than once.
  template <class Visit>
  void visit_conflicts(Visit&& visit) const {
    for (const meeting& m : meetings_) {
      if (m.with->writer != nobody) visit(m.with->writer);
      if (!m.writes) continue;
      for (std::uint32_t i = m.with->first_reader; i != nobody; i = readers_[i].next)
        visit(readers_[i].task);
    }
  }

  // add() takes the task that uses what was looked up, and follows all those that conflict with it.
  // It forgets which of them have used what the task's writes cover: a later task that conflicts
  // with one of them follows this task, and so that one.
  void add(std::uint32_t task) noexcept;

  // drop() forgets the uses by tasks for which is_gone(task) is true. A region without users is
  // kept until the second drop() in a row that finds it so: most are used again.
  template <class Gone>
  void drop(Gone&& is_gone) noexcept {
    // The task that was looked up may yet be added.
    for (const named_region& n : named_) n.which->is_idle = false;
    for (const meeting& m : meetings_) m.with->is_idle = false;
    const auto drop_users = [&](region& r) {
      if (r.writer != nobody && is_gone(r.writer)) r.writer = nobody;
      drop_readers(r, is_gone);
    };
    if (written_.drop(drop_users) + read_.drop(drop_users) != 0) recent_.fill(nullptr);
  }
  // forget_all() is a drop() of all uses.
  void forget_all() noexcept {
    named_.clear();
    meetings_.clear();
    drop([](std::uint32_t) { return true; });
  }
  std::size_t regions() const noexcept { return written_.count() + read_.count(); }

 private:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};  // no task has this number
  static constexpr unsigned recent_bits = 10;

  struct reader {
    std::uint32_t task;
    std::uint32_t next;  // of the same region, or of those that are free
  };

  struct region {
    argument where;  // of the first use: only where it lies counts
    std::uint32_t writer = nobody;
    std::uint32_t first_reader = nobody;
    bool was_written = false;
    bool is_alone = false;  // meets no other region, or, if it was not written, none that was
    bool is_idle = false;   // had no users at the last drop(), and was not looked up since
  };

  class regions_by_length {
   public:
    using map = std::multimap<std::uint64_t, region>;

    // Calls visit(region) for each that begins where it may meet `a`.
    template <class Visit>
    void visit_near(const argument& a, Visit&& visit) {
      const std::uint64_t end = a.address + extent_bytes(a);
      for (std::uint64_t left = orders_; left != 0; left &= left - 1) {
        length_group& all = groups_[std::countr_zero(left)];
        const std::uint64_t before = a.address < all.longest ? 0 : a.address - all.longest;
        auto next = all.regions.upper_bound(before);
        for (; next != all.regions.end() && next->first < end; ++next) visit(next->second);
      }
    }
    // Calls drop_users(region) for each. Returns how many are not there any more.
    template <class DropUsers>
    std::size_t drop(DropUsers& drop_users) noexcept {
      std::size_t dropped = 0;
      for (std::uint64_t left = orders_; left != 0; left &= left - 1) {
        const int order = std::countr_zero(left);
        map& all = groups_[order].regions;
        for (auto next = all.begin(); next != all.end();) {
          region& r = next->second;
          drop_users(r);
          const bool has_users = r.writer != nobody || r.first_reader != nobody;
          const bool is_useless = std::exchange(r.is_idle, !has_users) && !has_users;
          dropped += is_useless;
          next = is_useless ? all.erase(next) : std::next(next);
        }
        if (all.empty()) close_group(order);
      }
      return dropped;
    }
    region* find(const argument& a) noexcept;  // null: there is none that lies alike
    region& add(const argument& a);            // throws std::bad_alloc
    map::node_type take(const region& r) noexcept;
    void put(map::node_type&& node) noexcept;
    std::size_t count() const noexcept;

   private:
    struct length_group {
      map regions;
      std::uint64_t longest = 0;  // in bytes, of those that are or were there
    };
    static unsigned order_of(const argument& a) noexcept {
      return static_cast<unsigned>(std::bit_width(extent_bytes(a))) - 1;
    }
    length_group& group_for(const argument& a) noexcept;
    void close_group(int order) noexcept {
      groups_[order].longest = 0;
      orders_ &= ~(std::uint64_t{1} << order);
    }

    length_group groups_[64];   // by the order of magnitude of the length in bytes
    std::uint64_t orders_ = 0;  // of groups that may not be empty, as bits
  };

  struct named_region {
    region* which;
    bool is_written;
  };
  struct meeting {  // of a region of the task with one that other tasks may have used
    region* with;
    bool writes;
    bool covers;
  };

  // Leaves out the readers for which is_gone(task) is true.
  template <class Gone>
  void drop_readers(region& r, Gone&& is_gone) noexcept {
    std::uint32_t* link = &r.first_reader;
    while (*link != nobody) {
      const std::uint32_t i = *link;
      if (!is_gone(readers_[i].task)) {
        link = &readers_[i].next;
        continue;
      }
      *link = readers_[i].next;
      readers_[i].next = std::exchange(free_reader_, i);
      ++free_readers_;
    }
  }
  void keep_free_readers(unsigned count);
  void add_reader(region& r, std::uint32_t task) noexcept;

  // recent_of() is the region last found for memory that begins there, or elsewhere; null: none.
  region*& recent_of(const argument& a) noexcept {
    return recent_[a.address * 0x9e37'79b9'7f4a'7c15 >> (64 - recent_bits)];
  }
  region& search(const argument& a);
  region* note_meetings(const argument& a);
  region& region_of(const argument& a, region* found);

  regions_by_length written_;  // by some task
  regions_by_length read_;     // by tasks only that do not write
  std::array<region*, 1 << recent_bits> recent_{};
  std::vector<reader> readers_;
  std::uint32_t free_reader_ = nobody;  // the first of those that are free
  std::size_t free_readers_ = 0;
  // What the look-up of a task has found.
  std::vector<named_region> named_;
  std::vector<meeting> meetings_;
};

}  // namespace lev
