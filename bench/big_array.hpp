// A large array of numbers in huge pages where the system has them, or in small ones, touched once
// so that no page fault is measured.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace bench {

enum class pages { huge, small };

// scatter() is a permutation of [0, count), count a power of two, without any pattern that a
// prefetcher knows: each step can be undone, so no two indices meet.
inline std::size_t scatter(std::size_t index, std::size_t count) noexcept {
  std::size_t i = index;
  i = (i * 0x9e3779b97f4a7c15u) & (count - 1);
  i ^= i >> 9;
  i = (i * 0xd1342543de82ef95u) & (count - 1);
  i ^= i >> 11;
  return (i * 0xaf251af3b0f025b5u) & (count - 1);
}

template <class T>
class big_array {
 public:
  explicit big_array(std::size_t count, pages size = pages::huge) : count_(count) {
    void* place = mmap(nullptr, bytes() + huge_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    mapping_ = place;
    const auto address = reinterpret_cast<std::size_t>(place);
    data_ = reinterpret_cast<T*>((address + huge_bytes - 1) / huge_bytes * huge_bytes);
    madvise(data_, bytes(), size == pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    std::memset(static_cast<void*>(data_), 0, bytes());
  }
  ~big_array() { munmap(mapping_, bytes() + huge_bytes); }
  big_array(big_array&&) = delete;

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return count_; }
  std::size_t bytes() const noexcept { return count_ * sizeof(T); }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  static constexpr std::size_t huge_bytes = std::size_t{2} << 20;
  void* mapping_ = nullptr;
  T* data_ = nullptr;
  std::size_t count_;
};

}  // namespace bench
