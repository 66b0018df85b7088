// A stack for a context: a mapped region with a guard below, committed page by page as it is used.
//
//     guard (no access) | usable, grows down ... top() | colour offset
//                       ^ bottom()                                    ^ bottom() + size_bytes()
//
// The tops of stacks are coloured. Stacks whose tops lie at the same offset of a page compete for
// the same sets of the first-level cache, and every switch pays for it: 23 to 27 cycles between 16
// or more, in place of 19 (README.md).
#pragma once

#include <cstddef>
#include <utility>

namespace lev {

class stack {
 public:
  // A null stack.
  stack() = default;
  ~stack() { unmap(); }

  // By exchange.
  stack(stack&& other) noexcept { *this = std::move(other); }
  stack& operator=(stack&& other) noexcept {
    std::swap(bottom_, other.bottom_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(colour_bytes_, other.colour_bytes_);
    return *this;
  }

  // Maps a stack of at least `usable_bytes`, rounded up to pages. Returns a null stack when the
  // system gives no memory (too large, address space or number of mappings exhausted).
  // Cost: three system calls; no page is touched.
  [[nodiscard]] static stack map(std::size_t usable_bytes) noexcept;

  explicit operator bool() const { return bottom_ != nullptr; }

  // The lowest usable address. One byte below it is the guard.
  void* bottom() const { return bottom_; }

  // From the bottom to the end of the mapping, the colour offset included: the extent of this stack
  // for a sanitizer.
  std::size_t size_bytes() const { return size_bytes_; }

  // Where the first frame goes: 64-byte aligned, at most `colour_span_bytes` below the end.
  void* top() const { return static_cast<char*>(bottom_) + usable_bytes(); }
  std::size_t usable_bytes() const { return size_bytes_ - colour_bytes_; }

 private:
  void unmap() noexcept;

  void* bottom_ = nullptr;
  std::size_t size_bytes_ = 0;
  std::size_t colour_bytes_ = 0;
};

}  // namespace lev
