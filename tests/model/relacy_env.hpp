// The environment in which protocols run under Relacy, a checker for the C++ memory model (D.
// Vyukov, Debian: relacy-dev).
//
// Every operation on an atomic is a step at which another thread may go on, and a load may return
// any value that the memory orders allow. `env` is what src/sync/env.hpp asks for; `sleeper` is a
// futex, so that a lost wake-up shows as a deadlock; `plain` is a variable that is no atomic, so
// that a missing order shows as a data race.
//
// Relacy does not show reads of values that are stored later (load buffering), more than two
// stores back, and the rule of C++20 that ended release sequences at the same thread's relaxed
// stores.
//
// Planted faults are chosen while the program runs. A weaker order: `order_of()` knows every place
// where an operation stands and weakens the one that is named. A wrong step: a patch of mutants/
// puts fault("name") into a copy of the header.
#pragma once

#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <source_location>

// Relacy redefines words of the language for its own tests.
#pragma push_macro("assert")
#pragma push_macro("errno")
#include <relacy/relacy.hpp>
#pragma pop_macro("assert")
#pragma pop_macro("errno")
#undef $
#undef calloc
#undef delete
#undef free
#undef malloc
#undef memory_order_acq_rel
#undef memory_order_acquire
#undef memory_order_consume
#undef memory_order_relaxed
#undef memory_order_release
#undef memory_order_seq_cst
#undef new
#undef realloc

namespace model {

using where = std::source_location;
inline rl::debug_info info(const where& w) {
  return {w.function_name(), w.file_name(), static_cast<unsigned>(w.line())};
}

// require() ends the schedule as failed.
inline void require(bool condition, const char* what, where w = where::current()) {
  if (!condition) rl::ctx().fail_test(what, rl::test_result_user_assert_failed, info(w));
}

// Orders that may be weakened

enum class kind_of_order : std::uint8_t { load, store, change };

// One place in the code where an operation has an order stronger than relaxed.
struct site {
  where at;
  kind_of_order kind = kind_of_order::load;
  std::memory_order order = std::memory_order_relaxed;
  bool is_genuine = false;  // met while no fault was planted
};

struct weakening {
  const site* place = nullptr;
  std::memory_order to = std::memory_order_relaxed;
};
inline weakening weakened;

constexpr unsigned sites_max = 512;
inline site sites[sites_max];
inline bool has_site[sites_max];

inline std::uint32_t planted_id = 0;  // of the wrong step that is planted; 0: none

inline bool is_same_text(const char* a, const char* b) {
  return a == b || std::strcmp(a, b) == 0;
}

// The entry of a place; entered when it is met for the first time.
inline site& site_of(const where& w, kind_of_order kind, std::memory_order order) {
  unsigned i = (w.line() * 31 + w.column()) % sites_max;
  for (;; i = (i + 1) % sites_max) {
    site& s = sites[i];
    if (!has_site[i]) {
      has_site[i] = true;
      return s = {w, kind, order, planted_id == 0};
    }
    const bool is_there = s.at.line() == w.line() && s.at.column() == w.column() && s.kind == kind;
    if (is_there && is_same_text(s.at.file_name(), w.file_name())) return s;
  }
}

inline rl::memory_order relacy_order(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return rl::mo_relaxed;
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return rl::mo_acquire;
    case std::memory_order_release:
      return rl::mo_release;
    case std::memory_order_acq_rel:
      return rl::mo_acq_rel;
    default:
      return rl::mo_seq_cst;
  }
}

inline rl::memory_order order_of(std::memory_order order, kind_of_order kind, const where& w) {
  if (order == std::memory_order_relaxed) return rl::mo_relaxed;
  const site& s = site_of(w, kind, order);
  return relacy_order(&s == weakened.place ? weakened.to : order);
}

// The order of a compare-exchange that fails: what is asked for, without what the other order does
// not have.
inline rl::memory_order order_of_failure(rl::memory_order success, rl::memory_order failure) {
  if (success == rl::mo_relaxed || success == rl::mo_release) return rl::mo_relaxed;
  if (failure == rl::mo_release) return rl::mo_relaxed;
  if (failure == rl::mo_acq_rel) return rl::mo_acquire;
  return failure == rl::mo_seq_cst && success != rl::mo_seq_cst ? rl::mo_acquire : failure;
}

template <class T>
class atomic {
 public:
  using order = std::memory_order;

  atomic(T value = T()) : value_(value) {}

  T load(order o = order::seq_cst, where w = where::current()) const {
    return value_.load(order_of(o, kind_of_order::load, w), info(w));
  }
  void store(T value, order o = order::seq_cst, where w = where::current()) {
    value_.store(value, order_of(o, kind_of_order::store, w), info(w));
  }
  T exchange(T value, order o = order::seq_cst, where w = where::current()) {
    return value_.exchange(value, order_of(o, kind_of_order::change, w), info(w));
  }
  bool compare_exchange_strong(T& expected, T value, order o = order::seq_cst,
                               where w = where::current()) {
    const rl::memory_order success = order_of(o, kind_of_order::change, w);
    return value_.compare_exchange_strong(expected, value, success, info(w),
                                          order_of_failure(success, success), info(w));
  }
  bool compare_exchange_strong(T& expected, T value, order o, order failure,
                               where w = where::current()) {
    const rl::memory_order success = order_of(o, kind_of_order::change, w);
    const rl::memory_order failed = order_of(failure, kind_of_order::load, w);
    return value_.compare_exchange_strong(expected, value, success, info(w),
                                          order_of_failure(success, failed), info(w));
  }
  T fetch_add(T value, order o = order::seq_cst, where w = where::current()) {
    return value_.fetch_add(value, order_of(o, kind_of_order::change, w), info(w));
  }
  T fetch_sub(T value, order o = order::seq_cst, where w = where::current()) {
    return value_.fetch_sub(value, order_of(o, kind_of_order::change, w), info(w));
  }
  T fetch_or(T value, order o = order::seq_cst, where w = where::current()) {
    return value_.fetch_or(value, order_of(o, kind_of_order::change, w), info(w));
  }
  T fetch_and(T value, order o = order::seq_cst, where w = where::current()) {
    return value_.fetch_and(value, order_of(o, kind_of_order::change, w), info(w));
  }

  // The newest value, as the kernel sees it under the lock of its hash bucket. No step.
  T newest() const { return value_.debug_value(); }

 private:
  rl::atomic<T> value_;
};

// A variable that is no atomic. Copying it is a read and a write.
template <class T>
class plain {
 public:
  plain(T value = T()) : value_(value) {}
  operator T() const { return get(); }
  plain(const plain& other) : value_(other.get()) {}
  plain& operator=(const plain& other) {
    set(other.get());
    return *this;
  }
  T get(where w = where::current()) const { return value_(info(w)).load(); }
  void set(T value, where w = where::current()) { value_(info(w)).store(value); }

 private:
  rl::var<T> value_;
};

// Wrong steps that may be planted

consteval std::uint32_t fault_id(const char* name) {
  std::uint32_t hash = 2166136261u;
  for (; *name != 0; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return hash;
}
struct fault_name {
  consteval fault_name(const char* text) : name(text), id(fault_id(text)) {}
  const char* name;
  std::uint32_t id;
};
inline bool fault(fault_name f) {
  return f.id == planted_id;
}

// The environment

inline bool asymmetric_fences = false;  // chosen by each scenario

struct env {
  template <class T>
  using atomic = model::atomic<T>;

  // The kernel makes every thread of the process execute a full fence.
  static void heavy_fence() noexcept {
    if (!asymmetric_fences) return;
    rl::ctx().sched();
    rl::ctx().rl_global_fence();
  }
  static bool asymmetric() noexcept { return asymmetric_fences; }
  static void pause(where w = where::current()) noexcept { rl::yield(1, info(w)); }
};

// A futex: threads sleep on words. Nobody is woken for no reason, so that a lost wake-up is a
// deadlock, unless the deadline is not `never`: then time may be up at any step.
class sleeper {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void wait_word(atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t deadline) {
    rl::ctx().sched();
    if (word.newest() != expected) return;
    asleep_[count_++] = {&word, rl::ctx().current_thread()};
    const rl::unpark_reason why =
        rl::ctx().park_current_thread(deadline != never, false, false, info(where::current()));
    if (why != rl::unpark_reason_normal) remove(rl::ctx().current_thread());
  }
  void wake_word(atomic<std::uint32_t>& word) {
    rl::ctx().sched();
    for (unsigned i = 0; i < count_; ++i) {
      if (asleep_[i].word != &word) continue;
      const int thread = asleep_[i].thread;
      remove(thread);
      rl::ctx().unpark_thread(thread, false, info(where::current()));
      return;
    }
  }

 private:
  void remove(int thread) {
    for (unsigned i = 0; i < count_; ++i) {
      if (asleep_[i].thread == thread) asleep_[i--] = asleep_[--count_];
    }
  }
  struct entry {
    const void* word;
    int thread;
  };
  entry asleep_[8];
  unsigned count_ = 0;
};

// Relacy places scenarios without regard to their alignment.
template <class T>
class boxed {
 public:
  boxed() : place_(new (aligned()) T) {}
  ~boxed() { place_->~T(); }
  boxed(boxed&&) = delete;
  T* operator->() { return place_; }
  T& operator*() { return *place_; }

 private:
  void* aligned() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_);
    return reinterpret_cast<void*>((address + alignof(T) - 1) / alignof(T) * alignof(T));
  }
  unsigned char bytes_[sizeof(T) + alignof(T)];
  T* place_;
};

}  // namespace model
