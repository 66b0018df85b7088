// committed: the parts of the heap for which the system has given memory. It is asked only once for
// each: asking for pages that are there already costs 35 us for each MiB.
//
// One bit for each chunk, up to the last chunk that was ever used: 128 KiB for 64 GiB.
#pragma once

#include "base/numbers.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lev {

class committed_chunks {
 public:
  static constexpr std::size_t chunk_bytes = 64 << 10;

  // Chunks [begin, end) of the heap, counted from 0.
  struct range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t begin_byte() const noexcept { return begin * chunk_bytes; }
    std::size_t bytes() const noexcept { return (end - begin) * chunk_bytes; }
    bool is_empty() const noexcept { return begin == end; }
  };

  // Chunks that hold any of the bytes [first, last), and chunks that hold nothing else.
  static range around(std::size_t first, std::size_t last) noexcept {
    return {first / chunk_bytes, (last + chunk_bytes - 1) / chunk_bytes};
  }
  static range within(std::size_t first, std::size_t last) noexcept {
    const range r{(first + chunk_bytes - 1) / chunk_bytes, last / chunk_bytes};
    return r.begin < r.end ? r : range{r.begin, r.begin};
  }

  // The first chunks in a row of `all` that are not committed; empty when all of them are.
  range first_missing(range all) const noexcept {
    const std::size_t begin = next(all, false);
    return {begin, next({begin, all.end}, true)};
  }

  // set() throws std::bad_alloc, and has changed nothing then; clear() does not.
  void set(range r) {
    if (words_.size() * 64 < r.end) words_.resize((r.end + 63) / 64);
    for (std::size_t i = r.begin; i < r.end; ++i) words_[i / 64] |= bit(i);
  }
  void clear(range r) noexcept {
    const std::size_t end = smaller(r.end, words_.size() * 64);
    for (std::size_t i = r.begin; i < end; ++i) words_[i / 64] &= ~bit(i);
  }
  void clear() noexcept { words_.clear(); }

 private:
  static std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << (i % 64); }

  // The first chunk of `r` that is committed, or is not; r.end when there is none.
  std::size_t next(range r, bool is_committed) const noexcept {
    for (std::size_t i = r.begin; i < r.end; i = (i / 64 + 1) * 64) {
      const std::uint64_t word = i / 64 < words_.size() ? words_[i / 64] : 0;
      const std::uint64_t found = (is_committed ? word : ~word) >> (i % 64);
      if (found != 0) return smaller(r.end, i + static_cast<std::size_t>(std::countr_zero(found)));
    }
    return r.end;
  }

  std::vector<std::uint64_t> words_;
};

}  // namespace lev
