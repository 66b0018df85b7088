// arena: which bytes of a local store are in use. First fit over the few blocks that tasks in
// flight hold; pure bookkeeping, no memory is touched.
#pragma once

#include "base/assert.hpp"
#include "base/numbers.hpp"

#include <cstddef>
#include <cstdint>

namespace lev {

class arena {
 public:
  static constexpr std::size_t alignment = 128;  // a whole transfer line of the Cell's copy engine
  static constexpr std::uint32_t blocks_max = 32;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void open(std::size_t bytes) noexcept {
    bytes_ = bytes;
    count_ = 0;
  }

  // allocate() returns the offset of `bytes` free bytes, or none. It is a multiple of `aligned`, a
  // power of two.
  std::size_t allocate(std::size_t bytes, std::size_t aligned = alignment) noexcept {
    bytes = round_up(bytes, alignment);
    aligned = larger(aligned, alignment);
    if (count_ == blocks_max) return none;
    std::size_t offset = 0;
    std::uint32_t place = 0;
    while (place < count_ &&
           (blocks_[place].begin < offset || blocks_[place].begin - offset < bytes))
      offset = round_up(blocks_[place++].end, aligned);
    if (place == count_ && (bytes > bytes_ || offset > bytes_ - bytes)) return none;
    for (std::uint32_t i = count_; i > place; --i) blocks_[i] = blocks_[i - 1];
    blocks_[place] = {offset, offset + bytes};
    ++count_;
    return offset;
  }

  // release() gives back what allocate() returned.
  void release(std::size_t offset) noexcept {
    std::uint32_t place = 0;
    while (place < count_ && blocks_[place].begin != offset) ++place;
    LEV_ASSERT(place < count_);
    --count_;
    for (std::uint32_t i = place; i < count_; ++i) blocks_[i] = blocks_[i + 1];
  }

  std::uint32_t blocks() const noexcept { return count_; }

 private:
  struct block {
    std::size_t begin;
    std::size_t end;
  };
  std::size_t bytes_ = 0;
  std::uint32_t count_ = 0;
  block blocks_[blocks_max]{};
};

}  // namespace lev
