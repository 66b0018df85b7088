// Shared memory: arrays at the same address in worker processes and the host, so that a task on
// `processes` uses them in place instead of copying them through its worker's local store. On
// machines that share the host's memory they are arrays like any other.
//
//   lev::shared_array<float> x(1 << 20);
//   runtime.submit(fill_procedure, x).wait();
//
// A block has the same address in the host and in every worker process, so pointers into it may be
// stored in it. docs/how-to/choose-staging.md says which arguments are used in place.
#ifndef LEVERET_SHARED_HPP
#define LEVERET_SHARED_HPP

#include <leveret/status.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace lev {

constexpr std::size_t shared_alignment = 128;

// shared_allocate() returns `bytes` bytes of shared memory, zeroed and aligned to 128 bytes; null
// when there is none left, or `bytes` is 0. Thread safe. Memory is committed before it is handed
// out, so a shortage shows here and not as a fault later. A request for more than the computer and
// the control group have left is refused, before any process is killed for it. Cost: for memory
// never used, about a microsecond and the system's clearing of it; for memory used before, the
// clearing.
void* shared_allocate(std::size_t bytes) noexcept;

// shared_allocate_for_overwrite() is the same without the clearing: the bytes may be anything.
void* shared_allocate_for_overwrite(std::size_t bytes) noexcept;

// shared_shortage() says why the last of these calls on this thread gave null, and what to do; ""
// when it did not, or 0 bytes were requested. Valid until the thread's next call.
const char* shared_shortage() noexcept;

// shared_free() gives back what shared_allocate() returned; null does nothing. No task may still
// use it. Thread safe. In a forked child or a worker, blocks of the parent or host stay theirs.
void shared_free(void* block) noexcept;

// is_shared() tells whether all of [data, data + bytes) lies in shared memory. Thread safe, a few
// instructions.
bool is_shared(const void* data, std::size_t bytes) noexcept;

// shared_copy() is memcpy() for a large block that another process reads next. Where the processes'
// cores have no cache in common it bypasses theirs: an ordinary store would first fetch each line
// from the other process's. Null is allowed for no bytes. Thread safe; the blocks must not overlap.
void shared_copy(void* to, const void* from, std::size_t bytes) noexcept;

// An array of `size` zeroed elements in shared memory. Movable. Throws lev::error (out_of_memory).
template <class T>
class shared_array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "shared memory holds trivially copyable elements");
  static_assert(alignof(T) <= shared_alignment,
                "shared memory is aligned to 128 bytes; align in it by hand what needs more");

 public:
  explicit shared_array(std::size_t size) : data_(allocate(size)), size_(size) {}
  ~shared_array() { shared_free(data_); }
  shared_array(shared_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  shared_array& operator=(shared_array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  shared_array(const shared_array&) = delete;
  shared_array& operator=(const shared_array&) = delete;

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + size_; }

 private:
  static T* allocate(std::size_t size) {
    if (size == 0) return nullptr;
    if (size > ~std::size_t{0} / sizeof(T))
      detail::throw_error(status::out_of_memory,
                          "shared_array: more elements than memory can hold");
    void* block = shared_allocate(size * sizeof(T));
    if (block == nullptr) detail::throw_error(status::out_of_memory, shared_shortage());
    return static_cast<T*>(block);
  }

  T* data_;
  std::size_t size_;
};

}  // namespace lev

#endif
