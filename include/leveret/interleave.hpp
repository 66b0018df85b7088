// Hides memory latency: keeps many items of a loop in flight on the calling thread, so that others
// go on while one waits for memory.
//
//   lev::interleave(lev::strands_automatic, keys.size(), [&](std::size_t i, auto& s) {
//     const node* n = roots[i];
//     while (n != nullptr) n = s.fetch(n)->next;  // gives way while the node is on its way
//   });
//
// Each item in flight has a stack of its own (a strand), so fn may call any function and fetch at
// any depth. It pays where addresses depend on data just read and the data is far larger than the
// caches; docs/how-to/hide-memory-latency.md says when it does not.
#ifndef LEVERET_INTERLEAVE_HPP
#define LEVERET_INTERLEAVE_HPP

#include <leveret/callable.hpp>
#include <leveret/status.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>

namespace lev {

// The number of items in flight is found while running.
inline constexpr unsigned strands_automatic = 0;
// The largest number of items in flight.
inline constexpr unsigned strand_count_max = 64;
// The stack of each item in flight, committed page by page as it is used.
inline constexpr std::size_t strand_stack_bytes = std::size_t{256} << 10;

namespace detail {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t burst_lines_max = 8;

template <class T>
const char* bytes_at(T* p) noexcept {
  return static_cast<const char*>(const_cast<const void*>(static_cast<const volatile void*>(p)));
}

// prefetch_lines() asks for the lines of [p, p + bytes), at most `burst_lines_max` of them.
inline void prefetch_lines(const char* p, std::size_t bytes) noexcept {
  std::size_t offset = 0;
  for (std::size_t line = 0; line < burst_lines_max && offset < bytes; ++line) {
    __builtin_prefetch(p + offset);
    offset += line_bytes;
  }
  // The object may begin in the middle of a line.
  if (bytes > 1 && offset >= bytes) __builtin_prefetch(p + bytes - 1);
}

// prefetch_object() is prefetch_lines() of an object: requests without a loop, and only one if one
// line holds the object.
template <class T>
inline void prefetch_object(const T* p) noexcept {
  if constexpr (std::is_void_v<T>) {
    __builtin_prefetch(bytes_at(p));
  } else {
    const char* const first = bytes_at(p);
    constexpr std::size_t lines = (sizeof(T) + line_bytes - 1) / line_bytes;
#pragma GCC unroll 8
    for (std::size_t line = 0; line < (lines < burst_lines_max ? lines : burst_lines_max); ++line) {
      __builtin_prefetch(first + line * line_bytes);
    }
    constexpr bool fits = alignof(T) >= line_bytes || sizeof(T) == alignof(T);
    if constexpr (!fits && lines < burst_lines_max) __builtin_prefetch(first + sizeof(T) - 1);
  }
}

}  // namespace detail

// One of the items in flight. It belongs to the call of fn that got it: use it on its thread, until
// it returns, and not inside a nested interleave.
class strand {
 public:
  strand(const strand&) = delete;
  strand& operator=(const strand&) = delete;

  // Lets the other items in flight go on. May be called inside a catch block or a destructor, never
  // while holding a lock that another item may want. Cost: 12 to 15 core cycles.
  void yield() noexcept { give_way_(this); }

  // Asks for the memory at p and lets the others go on meanwhile; returns p. For an object: its
  // lines, at most 8. p may be any value: an address that is not mapped is asked for in vain.
  template <class T>
  T* fetch(T* p) noexcept {
    detail::prefetch_object(p);
    yield();
    return p;
  }

  // The same for `bytes` at p. More than 8 lines take several turns.
  template <class T>
  T* fetch(T* p, std::size_t bytes) noexcept {
    constexpr std::size_t burst_bytes = detail::burst_lines_max * detail::line_bytes;
    const char* from = detail::bytes_at(p);
    for (; bytes > burst_bytes; bytes -= burst_bytes, from += burst_bytes) {
      detail::prefetch_lines(from, burst_bytes);
      yield();
    }
    detail::prefetch_lines(from, bytes);
    yield();
    return p;
  }

 protected:
  using give_way_function = void (*)(strand*);
  explicit strand(give_way_function give_way) noexcept : give_way_(give_way) {}
  ~strand() = default;

  // The C API's lev_strand has this layout, so that a library need not be linked to fetch.
  void* stack_pointer_ = nullptr;
  give_way_function give_way_;
};

// What fn gets as `s` when items run one after another: fetch() and yield() do nothing.
class direct {
 public:
  void yield() noexcept {}
  template <class T>
  T* fetch(T* p) noexcept {
    return p;
  }
  template <class T>
  T* fetch(T* p, std::size_t) noexcept {
    return p;
  }
};

namespace detail {

// The items of a call that have not started yet.
struct cursor {
  std::size_t next;
  std::size_t end;
};

// Runs items until the cursor is at its end; the strands of a ring share it.
using run_items = void (*)(void* fn, cursor& items, strand& s);

// run_ring() runs the items with `width` of them in flight, and rethrows the first exception.
// False, and nothing was run, when no stacks could be mapped. Precondition: 2 <= width, and at most
// strand_count_max.
bool run_ring(unsigned width, cursor& items, run_items run, void* fn);

// run_alone() runs the items one after another on the caller's stack.
void run_alone(cursor& items, run_items run, void* fn);

[[noreturn]] void refuse_width();
[[noreturn]] void refuse_stacks();
// What interleave_flat() throws if its coroutines take no items.
std::exception_ptr idlers_failure() noexcept;

// Finds out how many items in flight are best; src/context/tuner.cpp says how. Not thread-safe.
class tuner {
 public:
  struct plan {
    unsigned width;
    std::size_t items;
  };

  // next() says how to run the next items; at least one is left.
  plan next(std::size_t items_left) noexcept;
  // took() notes how long the plan took.
  void took(std::uint64_t ns) noexcept;
  // give_up() makes 1 the answer from now on.
  void give_up() noexcept { stage_ = stage::fixed; }

  static std::uint64_t now_ns() noexcept;

  static constexpr unsigned widths[] = {1, 16, 24, 48};
  static constexpr unsigned width_count = 4;

 private:
  enum class stage : std::uint8_t { trying, keeping, retrying, fixed };

  void start_trial(unsigned which) noexcept;
  void forget() noexcept;
  void end_first_trial(double ns) noexcept;
  void choose() noexcept;
  void keep(double ns_per_item, double ns) noexcept;
  double trial_loss_ns(unsigned which) const noexcept;
  std::size_t trial_goal(unsigned which) const noexcept;

  double item_ns_[width_count] = {};    // 0: not known
  double credit_ns_[width_count] = {};  // what may be spent on trials of each
  double drift_ns_ = 0;                 // time since the last trial that was made out of turn
  std::size_t trial_items_ = 0;         // 0: not known yet
  std::size_t keep_items_ = 0;
  std::size_t planned_items_ = 0;
  std::size_t done_items_ = 0;  // of the current trial, which may take several plans
  double done_ns_ = 0;
  std::uint8_t current_ = 2;  // index into widths
  std::uint8_t best_ = 2;
  std::uint8_t turn_ = 0;
  std::uint8_t odd_chunks_ = 0;
  stage stage_ = stage::trying;
};

template <class Fn>
void run_items_of(void* fn, cursor& items, strand& s) {
  while (items.next < items.end) {
    const std::size_t i = items.next++;
    callable_at<Fn>(fn)(i, s);
  }
}

// One compiled copy, for n = 1 and for automatic: the latter's own was 10 % slower (hash-probe).
template <class Fn>
[[gnu::noinline]] void run_one_by_one(Fn& fn, cursor items) {
  if constexpr (std::is_invocable_v<Fn&, std::size_t, direct&>) {
    direct s;
    for (std::size_t i = items.next; i < items.end; ++i) fn(i, s);
  } else {
    run_alone(items, run_items_of<Fn>, address_of_callable(fn));
  }
}

// drive() cuts `count` items into the pieces that the tuner wants. run(width, items) runs a piece,
// and returns false when there was no memory for it.
template <class Run>
void drive(tuner& t, std::size_t count, Run&& run) {
  for (std::size_t begin = 0; begin < count;) {
    const tuner::plan p = t.next(count - begin);
    cursor items{begin, begin + p.items};
    const std::uint64_t start_ns = tuner::now_ns();
    if (run(p.width, items)) {
      t.took(tuner::now_ns() - start_ns);
      begin += p.items;
    } else {
      t.give_up();
    }
  }
}

template <class Fn>
void interleave_automatic(tuner& t, std::size_t count, Fn& fn) {
  drive(t, count, [&](unsigned width, cursor items) {
    if (width > 1) return run_ring(width, items, run_items_of<Fn>, address_of_callable(fn));
    run_one_by_one(fn, items);
    return true;
  });
}

}  // namespace detail

// interleave() calls fn(i, s) for each i in [0, count), with n calls in flight at a time, and
// returns when all have returned. Items start in order; s.fetch() goes on with the next item in
// flight, round robin.
//   n    1 to strand_count_max; 1: one item after another. strands_automatic: found by trying 1,
//        16, 24 and 48 between items, now and then again; the result is kept for the next call with
//        the same type of fn on this thread. For items that take less than a millisecond.
//   fn   takes a lev::strand&, or auto&. With auto& it is compiled a second time for lev::direct&,
//        so that n = 1 is the plain loop. It may call interleave() again; the outer items then
//        wait.
// Errors: throws lev::error with too_big when n is above strand_count_max, out_of_memory when no
// stacks can be mapped (strands_automatic then goes on with one item at a time). The first
// exception of fn is rethrown after all items in flight have ended; no further item is started.
// Precondition: an item that changes the floating-point rounding mode changes it back before it
// gives way, does not end the thread, and does not block until another item acts.
// Thread safety: each call is its own, and uses the calling thread only.
// Cost: about 0.5 us to start with 16 in flight. Stacks are mapped at a thread's first call and
// kept until it ends.
template <class Fn>
void interleave(unsigned n, std::size_t count, Fn&& fn) {
  using function = std::remove_reference_t<Fn>;
  if (n > strand_count_max) detail::refuse_width();
  if (n == strands_automatic) {
    static thread_local detail::tuner found;
    detail::interleave_automatic(found, count, fn);
    return;
  }
  detail::cursor items{0, count};
  if (n == 1 || count < 2) {
    detail::run_one_by_one(fn, items);
  } else if (!detail::run_ring(n, items, detail::run_items_of<function>,
                               detail::address_of_callable(fn))) {
    detail::refuse_stacks();
  }
}

}  // namespace lev

#endif
