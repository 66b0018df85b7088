// item_costs: the recent time of an item of a sliced task, and the grain that follows: pieces that
// are short against their overhead make a task slower, not faster. For tasks that leave the grain
// to Leveret.
//
// Paper: Jack Rabbit dices by a count of waiting tasks (Figure 4.6); measuring items is ours.
#pragma once

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "base/random.hpp"
#include "sync/env.hpp"
#include "task/procedure_table.hpp"

#include <cstdint>

namespace lev {

class item_costs {
 public:
  // A procedure is known by its id. Loops and bulks share one that is Leveret's, and are known by
  // the value before the range: the address of their body, or the procedure that each task calls.
  static std::uint32_t place_of(procedure_id procedure, const argument* arguments,
                                unsigned count) noexcept {
    return place_of(procedure, count < 2 ? nullptr : &arguments[count - 2]);
  }
  static std::uint32_t place_of(procedure_id procedure, const argument* before) noexcept {
    const bool is_shared = procedure_at(procedure).is_own && before != nullptr;
    LEV_DCHECK(!is_shared || before->what == kind::value);
    const std::uint64_t which = is_shared ? mix64(before->address) : 0;
    return static_cast<std::uint32_t>(procedure ^ which) & (places - 1);
  }

  // Called before the first task where a piece costs that many times what it costs among threads.
  void set_scale(std::uint64_t times) noexcept {
    LEV_DCHECK(times != 0);
    piece_ns_ = piece_ns * times;
  }

  // Any thread calls it, after `items` items took `took_ns`. Notes of several threads at once may
  // be lost: this is an estimate. The mean follows slowly, and an interruption counts for little: a
  // time far above the mean is believed when it comes twice in a row. (A task that seems short runs
  // as one piece, so each gives one note.) Such a time is the new peak at once.
  void note(std::uint32_t place, std::uint64_t items, std::uint64_t took_ns) noexcept {
    LEV_DCHECK(place < places);
    cost& c = costs_[place];
    const std::uint64_t now =
        smaller(took_ns, longest_ns) * units_per_ns / larger<std::uint64_t>(items, 1);
    const std::uint64_t noted = c.mean.load(memory_order_relaxed);
    const std::uint64_t mean = noted & ~was_far;
    const bool is_known = mean != 0;
    const bool is_far = is_known && now > mean * 4;
    // Not written for a small change: every participant reads the line before it cuts a piece.
    if (is_known && noted == mean && now + mean / 8 >= mean && now <= mean + mean / 8) return;
    if (is_far && now > c.peak.load(memory_order_relaxed)) c.peak.store(now, memory_order_relaxed);
    const std::uint64_t believed = is_far && noted == mean ? mean * 4 : now;
    const std::uint64_t next = is_known ? (mean * 7 + believed) / 8 : now;
    c.mean.store((larger(next, least) & ~was_far) | (is_far ? was_far : 0), memory_order_relaxed);
  }

  // time_ns() is what `items` will take, about; 0: not known.
  std::uint64_t time_ns(std::uint32_t place, std::uint64_t items) const noexcept {
    LEV_DCHECK(place < places);
    const std::uint64_t mean = costs_[place].mean.load(memory_order_relaxed);
    std::uint64_t units = 0;
    return checked_multiply(mean, items, &units) ? units / units_per_ns : longest_ns;
  }

  // The smallest piece for a task of `items`, to be run by `takers` (README.md, "The grain is
  // measured"). If costs are unknown, or items are long enough alone, each taker gets `pieces_max`
  // pieces, so that the last ones are short. The caller asks once for each task.
  std::uint64_t grain(std::uint32_t place, std::uint64_t items, std::uint32_t takers) noexcept {
    LEV_DCHECK(place < places && takers != 0);
    const std::uint64_t fine = items / (std::uint64_t{takers} * pieces_max);
    const std::uint64_t mean = costs_[place].mean.load(memory_order_relaxed);
    if (mean == 0) return fine;
    const std::uint64_t coarse = items / (std::uint64_t{takers} * pieces_min);
    const std::uint64_t long_enough = piece_ns_ * units_per_ns / mean;
    if (long_enough >= items) return grain_by_peak(costs_[place], items, coarse);
    return larger(larger(fine, long_enough / (piece_ns / piece_ns_min)),
                  smaller(long_enough, coarse));
  }

 private:
  static constexpr std::uint32_t places = 1024;
  static constexpr std::uint64_t units_per_ns = 1024;
  static constexpr std::uint64_t longest_ns = std::uint64_t{1} << 40;
  // A piece costs 0.1 to 0.2 us to cut, queue and count.
  static constexpr std::uint64_t piece_ns = 5'000;
  static constexpr std::uint64_t piece_ns_min = 1'000;
  static constexpr std::uint64_t pieces_min = 8;
  // 1/512 of a taker's share is below the noise (bench imbalance).
  static constexpr std::uint64_t pieces_max = 512;
  // A loop of 1.7 ms among loops of 0.1 us takes 0.85 ms less where two takers share it, and the
  // short ones that follow take 0.15 to 0.25 ms more in all, until it is forgotten (AMD EPYC).
  static constexpr std::uint64_t forgotten = 16;
  static_assert((places & (places - 1)) == 0 && pieces_min < pieces_max);
  // The products above fit.
  static_assert(longest_ns <= ~std::uint64_t{0} / units_per_ns / 8);

  static constexpr std::uint64_t was_far = 1;  // the last time noted was far above the mean
  static constexpr std::uint64_t least = 2;    // so that it is known

  struct cost {
    // Written by participants that ran a piece, read by submitters: units per item, 0 unknown,
    // where the last bit is `was_far`. Publishes nothing.
    atomic<std::uint64_t> mean{0};
    // Written by participants that ran a piece, and by submitters, read by both: units per item of
    // the last one that was far above the mean, less what was forgotten. Publishes nothing.
    atomic<std::uint64_t> peak{0};
  };

  // For a task that is short by the mean. Each one that is cut for the peak's sake makes the peak
  // lower: a short loop is cut in vain some 80 times after an interruption of 1 ms.
  std::uint64_t grain_by_peak(cost& c, std::uint64_t items, std::uint64_t coarse) const noexcept {
    const std::uint64_t peak = c.peak.load(memory_order_relaxed);
    const std::uint64_t long_enough = piece_ns_ * units_per_ns / larger(peak, least);
    if (long_enough >= items) return items;
    c.peak.store(peak - peak / forgotten, memory_order_relaxed);
    return larger(coarse, long_enough / (piece_ns / piece_ns_min));
  }

  std::uint64_t piece_ns_ = piece_ns;
  cost costs_[places];
};

}  // namespace lev
