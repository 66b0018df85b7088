// ready_queue: the tasks that may start. One ring of slot numbers; where many participants take,
// several, so that threads which submit at the same time do not wait for each other's lines. A
// participant queues all its tasks at one ring, its home, and they are taken there in order of
// arrival.
//
// A taker stays with a ring while it has tasks, but not for long, so that no ring is passed over. A
// thread that submits and helps begins at home.
//
// Model test: tests/model/doorbell_model.cpp, with sleepers that look at two rings.
#pragma once

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "queue/index_ring.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lev {

template <class Env = real_env>
class ready_queue {
 public:
  using ring = index_ring<Env>;
  static constexpr std::uint32_t rings_max = 8;

  // Where a participant queues, and where it takes. Each has its own.
  struct place {
    ring* home = nullptr;      // the ring of the tasks that it queues
    std::uint32_t first = 0;   // the number of that ring
    std::uint32_t taking = 0;  // the number of the ring that it takes from, or took from last
    std::uint32_t visit = 0;   // the ring that it visits next, whatever the others have
    std::uint32_t looks = 0;   // how often it has asked for a ring
    // The ring and the position behind the last task that it took, and up to where it may take the
    // next ones there one by one while no other participant takes any (take_alone()).
    ring* last = nullptr;
    std::uint32_t next = 0;
    std::uint32_t alone_to = 0;
  };

  // Rings for so many takers: one for each two was measured with sixteen (flow/README.md), and one
  // for four is a guess. An idle participant looks at all of them.
  static constexpr std::uint32_t rings_for(std::uint32_t takers) noexcept {
    return takers <= 4 ? 1 : smaller(std::bit_ceil((takers + 1) / 2), rings_max);
  }

  // `cells` is an array of `rings` times `capacity` cells; see index_ring::open().
  void open(typename ring::cell* cells, std::uint32_t capacity, std::uint32_t rings) noexcept {
    LEV_ASSERT(rings != 0 && rings <= rings_max);
    count_ = rings;
    for (std::uint32_t i = 0; i < rings; ++i)
      rings_[i].open(cells + std::size_t{capacity} * i, capacity);
  }

  // place_of() is the place of the participant with that number among its kind.
  place place_of(std::uint32_t number) noexcept {
    const std::uint32_t own = number % count_;
    return {.home = &rings_[own], .first = own, .taking = own, .visit = own};
  }

  // The ring of tasks that no participant queues: those of a pass.
  ring& first() noexcept { return rings_[0]; }

  // The ring that a taker is to take from: one that has tasks, if there is one.
  ring& nearest(place& p, bool begins_at_home) noexcept {
    return count_ == 1 ? rings_[0] : nearest_of_many(p, begins_at_home);
  }

  // each() calls `look` with every ring, until it says true.
  template <class Look>
  bool each(const Look& look) noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (look(rings_[i])) return true;
    }
    return false;
  }

  // See index_ring::looks_empty(): the sleeper's last look. A push is seen at its ring, whichever
  // the others are, so the handshake is that of each ring.
  bool looks_empty() const noexcept {
    return rings_[0].looks_empty() && (count_ == 1 || others_look_empty());
  }
  // How many tasks are in all rings, about.
  std::uint32_t size() const noexcept {
    const std::uint32_t in_first = rings_[0].size();
    return count_ == 1 ? in_first : in_first + in_others();
  }

 private:
  [[gnu::noinline]] bool others_look_empty() const noexcept {
    for (std::uint32_t i = 1; i < count_; ++i) {
      if (!rings_[i].looks_empty()) return false;
    }
    return true;
  }
  [[gnu::noinline]] std::uint32_t in_others() const noexcept {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 1; i < count_; ++i) sum += rings_[i].size();
    return sum;
  }
  // Every sixteenth look begins at another ring, each in turn. (Fewer looks in a row were not
  // tried.)
  [[gnu::noinline]] ring& nearest_of_many(place& p, bool begins_at_home) noexcept {
    constexpr std::uint32_t looks_in_a_row = 16;
    if (++p.looks % looks_in_a_row == 0) {
      p.taking = p.visit = next(p.visit);
    } else if (begins_at_home) {
      p.taking = p.first;
    }
    for (std::uint32_t i = 0; i < count_ && rings_[p.taking].looks_empty(); ++i)
      p.taking = next(p.taking);
    return rings_[p.taking];
  }
  std::uint32_t next(std::uint32_t number) const noexcept {
    return number + 1 == count_ ? 0 : number + 1;
  }

  std::uint32_t count_ = 1;
  ring rings_[rings_max];
};

}  // namespace lev
