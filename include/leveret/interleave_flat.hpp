// interleave() for kernels that are one flat loop, as C++20 coroutines: no stacks, and the compiler
// saves only what lives across a fetch.
//
//   lev::flat walk(const node* n, std::uint64_t& sum) {
//     for (; n != nullptr; n = n->next) sum += (co_await lev::fetch(n))->value;
//   }
//   lev::interleave_flat(16, roots.size(), [&](std::size_t i) { return walk(roots[i], sums[i]); });
//
// A co_await is possible in the coroutine itself only, not in what it calls: for that there is
// interleave().
#ifndef LEVERET_INTERLEAVE_FLAT_HPP
#define LEVERET_INTERLEAVE_FLAT_HPP

#include <leveret/interleave.hpp>

#include <coroutine>
#include <exception>
#include <new>
#include <utility>

namespace lev {

namespace detail {

// Frames of ended items, kept for the next ones of the same size: at most one call's items in
// flight. One for each thread.
class frame_store {
 public:
  frame_store() = default;
  ~frame_store() {
    while (free_ != nullptr) ::operator delete(std::exchange(free_, free_->next));
  }
  frame_store(const frame_store&) = delete;
  frame_store& operator=(const frame_store&) = delete;

  void* take(std::size_t bytes) {
    if (free_ != nullptr && bytes == bytes_) {
      --count_;
      return std::exchange(free_, free_->next);
    }
    return ::operator new(bytes < sizeof(frame) ? sizeof(frame) : bytes);
  }
  void give_back(void* place, std::size_t bytes) noexcept {
    if (free_ == nullptr) bytes_ = bytes;
    if (bytes != bytes_ || count_ == strand_count_max) return ::operator delete(place);
    free_ = ::new (place) frame{free_};
    ++count_;
  }

  static frame_store& of_thread() {
    static thread_local frame_store store;
    return store;
  }

 private:
  struct frame {
    frame* next;
  };
  frame* free_ = nullptr;
  std::size_t bytes_ = 0;
  unsigned count_ = 0;
};

}  // namespace detail

// One item as a coroutine. It starts when interleave_flat() gives it its first turn.
class [[nodiscard]] flat {
 public:
  struct promise_type {
    static void* operator new(std::size_t bytes) {
      return detail::frame_store::of_thread().take(bytes);
    }
    static void operator delete(void* place, std::size_t bytes) noexcept {
      detail::frame_store::of_thread().give_back(place, bytes);
    }
    flat get_return_object() noexcept {
      return flat(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { failure = std::current_exception(); }

    std::exception_ptr failure;
    bool is_alone = false;
  };

  flat() noexcept = default;
  flat(flat&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  flat& operator=(flat&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~flat() {
    if (frame_) frame_.destroy();
  }

  // turn() runs to the next fetch; false when the item has ended with this turn.
  bool turn() const {
    frame_.resume();
    return !frame_.done();
  }
  promise_type& promise() const noexcept { return frame_.promise(); }

 private:
  explicit flat(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

// co_await fetch(p) asks for the memory at p, as strand::fetch() does, and gives p after the other
// items in flight had their turns.
template <class T>
class fetch {
 public:
  explicit fetch(T* p) noexcept : p_(p) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<flat::promise_type> item) const noexcept {
    if (item.promise().is_alone) return false;
    detail::prefetch_object(p_);
    return true;
  }
  T* await_resume() const noexcept { return p_; }

 private:
  T* p_;
};

namespace detail {

// The items in flight of one call.
template <class Start>
class flat_ring {
 public:
  explicit flat_ring(Start& start) noexcept : start_(start) {}

  // run() returns when all items have ended; after a failure no further one is started.
  void run(unsigned width, cursor& items) {
    unsigned used = 0;
    while (used < width && begin(used, items, width == 1)) ++used;
    for (unsigned at = 0; used > 0;) {
      if (!flights_[at].turn()) {
        note(flights_[at].promise().failure, items);
        flights_[at] = flat();
        if (!begin(at, items, width == 1)) {
          std::swap(flights_[at], flights_[--used]);
          if (at == used) at = 0;
          continue;
        }
      }
      if (++at >= used) at = 0;
    }
    if (failure_ != nullptr) std::rethrow_exception(std::move(failure_));
  }

 private:
  bool begin(unsigned at, cursor& items, bool is_alone) noexcept {
    if (items.next >= items.end) return false;
    try {
      flights_[at] = start_(items.next++);
      flights_[at].promise().is_alone = is_alone;
      return true;
    } catch (...) {
      note(std::current_exception(), items);
      return false;
    }
  }
  void note(std::exception_ptr failure, cursor& items) noexcept {
    if (failure == nullptr) return;
    items.next = items.end;
    if (failure_ == nullptr) failure_ = std::move(failure);
  }

  Start& start_;
  std::exception_ptr failure_;
  flat flights_[strand_count_max];
};

}  // namespace detail

// interleave_flat() is interleave() for items that are coroutines: start(i) makes item i. n, errors
// and thread safety are those of interleave(). Cost: a switch takes about 11 core cycles; a frame
// is kept for the next item, so that at most n are allocated, once.
template <class Start>
void interleave_flat(unsigned n, std::size_t count, Start&& start) {
  if (n > strand_count_max) detail::refuse_width();
  const auto run = [&](unsigned width, detail::cursor items) {
    detail::flat_ring<std::remove_reference_t<Start>>(start).run(width, items);
    return true;
  };
  if (n == strands_automatic) {
    static thread_local detail::tuner found;
    detail::drive(found, count, run);
  } else {
    run(n, detail::cursor{0, count});
  }
}

}  // namespace lev

#endif
