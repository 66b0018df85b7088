// Procedures that several tests use.
#pragma once

#include <leveret/leveret.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/shared.hpp"

namespace lev::test {

// A host object that a task may touch: how tests watch what tasks do. Works where tasks share the
// host's address space; a shared<T> is reached from everywhere.
template <class T>
struct ref {
  ref(T* object) : to(object) {}
  ref(const shared<T>* object) : to(object->get()) {}
  T* to;
};
template <class T>
ref(T*) -> ref<T>;
template <class T>
ref(shared<T>*) -> ref<T>;

// Lets so much time pass: for others to go to sleep, which no state shows.
inline void spend(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// A counter in shared memory: tasks in worker processes reach it, too.
class counter {
 public:
  counter(int value = 0)
      : block_(shared_allocate(sizeof(std::atomic<int>))),
        to_(new (block_) std::atomic<int>(value)) {}
  ~counter() { shared_free(block_); }
  counter(counter&&) = delete;
  int operator=(int value) { return *to_ = value; }
  operator int() const { return *to_; }
  int load() const { return to_->load(); }
  void store(int value) { to_->store(value); }
  int operator++() { return ++*to_; }
  int operator+=(int n) { return *to_ += n; }
  int fetch_add(int n) { return to_->fetch_add(n); }
  int exchange(int n) { return to_->exchange(n); }
  std::atomic<int>* address() const { return to_; }

 private:
  void* block_;
  std::atomic<int>* to_;
};
template <>
struct ref<counter> {
  ref(counter* c) : to(c->address()) {}
  std::atomic<int>* to;
};

inline const auto nothing = define("test.nothing", [] {});

inline const auto count_one = define("test.count_one", [](ref<counter> n) { ++*n.to; });

inline const auto increment = define("test.increment", [](inout<std::uint64_t> x) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) ++x.row(r)[i];
  }
});

inline const auto store = define("test.store", [](std::uint64_t value, out<std::uint64_t> x) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) x.row(r)[i] = value;
  }
});

inline const auto square =
    define("test.square", [](std::int64_t x, result<std::int64_t> y) { y = x * x; });

inline const auto throw_error = define("test.throw_error", [](int number) {
  throw std::runtime_error("failed with " + std::to_string(number));
});

}  // namespace lev::test
