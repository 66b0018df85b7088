// bulk_census: the bulks that are counted as submitted and are held open by their submitters, and
// how many of these submitters go on. Those in a task count with their task, which runs. One that
// makes tasks may hold some that nobody knows of yet: a batch that is not sent, or the next one.
// One that waits for a slot holds none; but one in a task of another runtime always goes on here.
#pragma once

#include "base/assert.hpp"
#include "sync/env.hpp"

#include <cstdint>

namespace lev::detail {

class bulk_census {
 public:
  // Two equal looks: nothing has changed in between.
  struct look {
    std::uint64_t word;
    std::uint32_t open() const noexcept { return word & count_max; }
    std::uint32_t going_on() const noexcept { return word >> count_bits & count_max; }
    bool operator==(const look&) const noexcept = default;
  };

  // A thread that sees the change sees what the submitter did before: pairs with see().
  void open() noexcept { add(one_open + one_going_on); }
  void close() noexcept {
    LEV_DCHECK(see().open() != 0 && see().going_on() != 0);
    add(0 - one_open - one_going_on);
  }
  void begin_wait(std::uint32_t bulks) noexcept {
    LEV_DCHECK(see().going_on() >= bulks);
    add(0 - bulks * one_going_on);
  }
  void end_wait(std::uint32_t bulks) noexcept { add(bulks * one_going_on); }

  look see() const noexcept {
    return {word_.load(memory_order_seq_cst)};  // pairs with the changes above
  }

 private:
  // Bits of a count. There are some bulks for each host: less than a million.
  static constexpr unsigned count_bits = 20;
  static constexpr std::uint64_t count_max = (1u << count_bits) - 1;
  static constexpr std::uint64_t one_open = 1;
  static constexpr std::uint64_t one_going_on = std::uint64_t{1} << count_bits;
  static constexpr std::uint64_t one_change = std::uint64_t{1} << 2 * count_bits;

  // Sequentially consistent: of two that begin to wait, the later one sees both. Pairs with see().
  void add(std::uint64_t step) noexcept {
    if (step != 0) word_.fetch_add(one_change + step, memory_order_seq_cst);
  }

  // Written by bulk submits, read while the runtime closes. From the lowest bit: open, going on,
  // and a count of changes, which wraps around.
  atomic<std::uint64_t> word_{0};
};

}  // namespace lev::detail
