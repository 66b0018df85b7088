// interleave() for kernels that are one flat loop, as C++20 coroutines: no stacks, and the compiler
// saves only variables that live across a fetch.
//
//   lev::flat walk(lev::items& left, const heads_of_lists& heads, std::uint64_t& sum) {
//     for (const std::size_t i : left) {
//       for (const node* n = heads[i]; n != nullptr; n = n->next) {
//         co_await lev::fetch(n);  // asks for the node, and lets the others go on
//         sum += n->value;
//       }
//     }
//   }
//   lev::interleave_flat(16, heads.size(),
//                        [&](lev::items& left) { return walk(left, heads, sum); });
//
// Each of the 16 takes an item, and then another: an item costs a few instructions to begin and to
// end. If each item is a coroutine of its own, the function takes an index in place of `items`.
// Again 16 are in flight; items as short as a look-up in a hash table cost two to three times as
// much.
//
// A co_await is possible only in the coroutine itself, not in functions that it calls: for that
// there is interleave().
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
// flight. One for each thread. It has no destructor: that of another thread_local object may run
// items when the thread's frames are gone, and then finds a closed store, which keeps none.
class frame_store {
 public:
  constexpr frame_store() noexcept = default;
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
    if (free_ == nullptr) bytes_ = is_closed_ ? 0 : bytes;
    if (bytes != bytes_ || count_ == strand_count_max) return ::operator delete(place);
    free_ = ::new (place) frame{free_};
    ++count_;
  }

  void close() noexcept {
    while (free_ != nullptr) ::operator delete(std::exchange(free_, free_->next));
    count_ = 0;
    is_closed_ = true;
  }

  static frame_store& of_thread() {
    static constinit thread_local frame_store store;
    if (!store.is_of_thread_) close_at_end(store);
    return store;
  }

 private:
  struct frame {
    frame* next;
  };
  static void close_at_end(frame_store& store) {
    struct closer {
      frame_store& all;
      ~closer() { all.close(); }
    };
    [[maybe_unused]] static thread_local const closer end{store};
    store.is_of_thread_ = true;
  }
  frame* free_ = nullptr;
  std::size_t bytes_ = 0;
  unsigned count_ = 0;
  bool is_closed_ = false;
  bool is_of_thread_ = false;
};

}  // namespace detail

// The items of a call that have not begun yet. A loop over them takes one at a time; the loops of
// all coroutines in flight share them.
class items {
 public:
  struct last {};
  class iterator {
   public:
    explicit iterator(detail::cursor& left) noexcept : left_(&left) { ++*this; }
    std::size_t operator*() const noexcept { return index_; }
    iterator& operator++() noexcept {
      index_ = left_->next < left_->end ? left_->next++ : left_->end;
      return *this;
    }
    bool operator!=(last) const noexcept { return index_ != left_->end; }

   private:
    detail::cursor* left_;
    std::size_t index_ = 0;
  };

  explicit items(detail::cursor& left) noexcept : left_(left) {}
  items(const items&) = delete;
  items& operator=(const items&) = delete;
  iterator begin() noexcept { return iterator(left_); }
  last end() const noexcept { return {}; }

 private:
  detail::cursor& left_;
};

// The result of fetch(): the memory is on its way. Awaiting it gives the others their turns.
struct [[nodiscard]] fetched {};

// fetch() asks for the memory at p, as strand::fetch() does. In a coroutine that is lev::flat,
// `co_await fetch(p)` goes on when the others in flight have had their turns. p may be any value.
template <class T>
inline fetched fetch(T* p) noexcept {
  detail::prefetch_object(p);
  return {};
}

namespace detail {
class flat_ring;
}

// A coroutine that runs one item, or one after another. It starts when interleave_flat() gives it
// its first turn, and where it fetches it jumps to the next one in flight, as a table of states by
// hand does.
class [[nodiscard]] flat {
 public:
  class promise_type;
  using handle = std::coroutine_handle<promise_type>;

  flat() noexcept = default;
  flat(flat&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  flat& operator=(flat&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~flat() {
    if (frame_) frame_.destroy();
  }

 private:
  friend class detail::flat_ring;
  explicit flat(handle frame) noexcept : frame_(frame) {}
  handle frame_;
};

class flat::promise_type {
 public:
  static void* operator new(std::size_t bytes) {
    return detail::frame_store::of_thread().take(bytes);
  }
  static void operator delete(void* place, std::size_t bytes) noexcept {
    detail::frame_store::of_thread().give_back(place, bytes);
  }

  // A core runs ahead over as many turns as its store queue holds. That has 64 stores on Zen 4, so
  // each one here counts, and only the next coroutine's address is kept across a turn (README of
  // the room context). A single coroutine has no next one.
  struct turns {
    std::coroutine_handle<> next;
    bool await_ready() const noexcept { return next == nullptr; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept { return next; }
    void await_resume() const noexcept {}
  };
  struct end {
    bool await_ready() const noexcept { return false; }
    void await_suspend(handle ended) const noexcept;
    void await_resume() const noexcept {}
  };

  turns await_transform(fetched) const noexcept { return {next_}; }
  flat get_return_object() noexcept { return flat(handle::from_promise(*this)); }
  std::suspend_always initial_suspend() noexcept { return {}; }
  end final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept;

 private:
  friend class detail::flat_ring;

  std::coroutine_handle<> next_;  // of the last one: back to the call; null: it is alone
  unsigned at_ = 0;               // place in the ring
  detail::flat_ring* ring_ = nullptr;
};

namespace detail {

// The coroutines in flight of one call. Each goes on with the one behind it; after the last one,
// and when one has ended, control comes back to run(). So the stack does not grow with the number
// of turns even if a compiler that does not optimise turns the jumps into calls.
class flat_ring {
 public:
  explicit flat_ring(cursor& left) noexcept : left_(left) {}

  // run() returns when all have ended; after a failure no further one is started. start(flight)
  // makes one, and returns false when none is left to make.
  template <class Start>
  void run(unsigned width, Start&& start) {
    while (used_ < width && begin(start, used_)) ++used_;
    for (unsigned i = 0; i < used_; ++i) link(i);
    for (unsigned at = 0; used_ > 0;) {
      ended_ = none;
      flights_[at].frame_.resume();
      at = ended_ == none ? 0 : follow(start, ended_);
    }
    if (failure_ != nullptr) std::rethrow_exception(std::move(failure_));
  }
  void note_end(unsigned at) noexcept { ended_ = at; }
  void note_failure() noexcept {
    left_.next = left_.end;
    if (failure_ == nullptr) failure_ = std::current_exception();
  }

 private:
  template <class Start>
  bool begin(Start& start, unsigned at) noexcept {
    flights_[at] = flat();
#ifdef __cpp_exceptions
    try {
      return is_begun(start, at);
    } catch (...) {
      note_failure();
      return false;
    }
#else
    return is_begun(start, at);
#endif
  }
  template <class Start>
  bool is_begun(Start& start, unsigned at) {
    if (!start(flights_[at])) return false;
    if (flights_[at].frame_) return true;
    note_idlers();
    return false;
  }
  void note_idlers() noexcept {
    left_.next = left_.end;
    if (failure_ == nullptr) failure_ = idlers_failure();
  }
  flat::promise_type& promise_of(unsigned at) noexcept { return flights_[at].frame_.promise(); }
  void link(unsigned at) noexcept {
    flat::promise_type& one = promise_of(at);
    one.ring_ = this;
    one.at_ = at;
    one.next_ = {};
    if (used_ > 1) one.next_ = std::noop_coroutine();
    if (at + 1 < used_) one.next_ = flights_[at + 1].frame_;
    if (at != 0) promise_of(at - 1).next_ = flights_[at].frame_;
  }
  // A new coroutine takes the place of the ended one, or else the last one does. Returns the one
  // whose turn it is.
  template <class Start>
  unsigned follow(Start& start, unsigned at) noexcept {
    note_progress();
    if (begin(start, at)) return link(at), at;
    if (at != --used_) std::swap(flights_[at], flights_[used_]);
    if (used_ == 0) return 0;
    link(used_ - 1);
    if (at == used_) return 0;
    link(at);
    return at;
  }

  // Coroutines that end and take no item would be followed by others for ever.
  void note_progress() noexcept {
    if (left_.next != left_before_) idlers_ = 0;
    left_before_ = left_.next;
    if (idlers_++ <= strand_count_max || left_.next == left_.end) return;
    note_idlers();
  }

  static constexpr unsigned none = ~0u;
  cursor& left_;
  std::size_t left_before_ = 0;  // items left when one last ended
  unsigned idlers_ = 0;          // coroutines that have ended since an item was taken
  unsigned used_ = 0;
  unsigned ended_ = none;
  std::exception_ptr failure_;
  flat flights_[strand_count_max];
};

template <class Start>
void run_flat(unsigned width, cursor left, Start& start) {
  flat_ring ring(left);
  if (left.end - left.next < width) width = static_cast<unsigned>(left.end - left.next);
  if constexpr (std::is_invocable_v<Start&, std::size_t>) {
    ring.run(width, [&](flat& flight) {
      if (left.next >= left.end) return false;
      flight = start(left.next++);
      return true;
    });
  } else {
    items all(left);
    ring.run(width, [&](flat& flight) {
      if (left.next >= left.end) return false;
      flight = start(all);
      return true;
    });
  }
}

}  // namespace detail

inline void flat::promise_type::end::await_suspend(handle ended) const noexcept {
  promise_type& self = ended.promise();
  self.ring_->note_end(self.at_);
}
inline void flat::promise_type::unhandled_exception() noexcept {
  ring_->note_failure();
}

// interleave_flat() is interleave() for coroutines: start(lev::items&) makes one that runs items,
// as many as are in flight; start(i) makes item i. n, errors and thread safety are those of
// interleave(). Errors, too: bad_argument for an empty `flat`, or if one coroutine after the other
// ends without having taken an item while there are some. Cost: a switch takes about 11 core
// cycles, with half the instructions of a switch of interleave(). Frames are kept for the next
// call, so that at most n are allocated, once.
template <class Start>
void interleave_flat(unsigned n, std::size_t count, Start&& start) {
  if (n > strand_count_max) detail::refuse_width();
  const auto run = [&](unsigned width, detail::cursor left) {
    detail::run_flat(width, left, start);
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
