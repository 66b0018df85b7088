// Mapping and colouring of stacks; see stack.hpp.
#include "context/stack.hpp"

#include "context/overflow.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <limits>

namespace lev {
namespace {

// 16 colours of 256 bytes cover one page, and a switch touches one or two lines of 64 bytes. A ring
// of 16 contexts costs 19 cycles per switch with them and 26 without (README of this room).
constexpr std::size_t colour_count = 16;
constexpr std::size_t colour_step_bytes = 256;
constexpr std::size_t colour_span_bytes = colour_count * colour_step_bytes;

// GCC's -fstack-clash-protection assumes a guard of 64 KiB on AArch64 and of one page on x86-64.
// A guard is address space only, so the larger one is used everywhere.
constexpr std::size_t guard_bytes_min = 64 * 1024;

std::size_t system_page_bytes() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t rounded_to_pages(std::size_t bytes) {
  return (bytes + system_page_bytes() - 1) / system_page_bytes() * system_page_bytes();
}

std::size_t guard_bytes() {
  return rounded_to_pages(guard_bytes_min);
}

// Colours go round per thread: contexts that one thread opens, and so mostly runs, differ as far as
// they can, without a counter shared by threads. (Hashing the address instead puts up to 5 of 16
// stacks on one colour, as stacks of one size lie at equal distances.)
std::size_t next_colour_bytes() {
  thread_local std::size_t opened_count = 0;
  return opened_count++ % colour_count * colour_step_bytes;
}

}  // namespace

stack stack::map(std::size_t usable_bytes) noexcept {
  const std::size_t extra_bytes = guard_bytes() + colour_span_bytes + system_page_bytes();
  if (usable_bytes > std::numeric_limits<std::size_t>::max() - extra_bytes) return {};
  const std::size_t size_bytes = rounded_to_pages(usable_bytes + colour_span_bytes);
  const std::size_t region_bytes = guard_bytes() + size_bytes;
  void* region = mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (region == MAP_FAILED) return {};
  if (mprotect(region, guard_bytes(), PROT_NONE) != 0) {
    munmap(region, region_bytes);
    return {};
  }
  stack result;
  result.bottom_ = static_cast<char*>(region) + guard_bytes();
  result.size_bytes_ = size_bytes;
  result.colour_bytes_ = next_colour_bytes();
  // A huge page would commit 2 MiB for the first frame. Kernels without huge pages refuse: no harm.
  (void)madvise(result.bottom_, size_bytes, MADV_NOHUGEPAGE);
  prepare_for_overflow();
  return result;
}

void stack::unmap() noexcept {
  if (bottom_ != nullptr)
    munmap(static_cast<char*>(bottom_) - guard_bytes(), guard_bytes() + size_bytes_);
}

}  // namespace lev
