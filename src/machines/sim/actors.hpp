// actors: workers and host of a simulated machine, and the order of their turns.
//
// Actors that will go on by themselves, at a known time, are in a heap: by time, then by a number
// that each draws from its own source. Sleepers without a deadline are not in it. Actors that wait
// for a word are in a list of its bucket.
//
// Memory is taken once, by open(). Nothing that runs depends on an address: the order of the
// buckets is only the order in which words are found.
#pragma once

#include <bit>
#include <memory>
#include <new>

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "base/random.hpp"
#include "context/context.hpp"
#include "machines/sim/prices.hpp"

namespace lev::sim {

constexpr std::uint32_t tags = 512;  // of the pipeline and of tasks; a Cell has 32
constexpr cycle_count never = ~cycle_count{0};

struct actor {
  context own;
  random_source random;
  cycle_count time = 0;           // when it goes on; asleep: its deadline, or never
  std::uint64_t order = 0;        // among equal times
  const void* word = nullptr;     // asleep: the word it waits for
  actor* next_sleeper = nullptr;  // in its word's bucket
  void* bound = nullptr;          // current_actor() while it runs
  std::uint32_t index = 0;
  std::uint32_t place = 0;  // in the heap, from 1; 0: not in it
  bool is_finished = false;
  cycle_count engine_done = 0;  // all its copies
  cycle_count tag_done[tags] = {};
};

class actors {
 public:
  // Makes `count` actors, all with time 0 and in no order yet. False when memory is short.
  [[nodiscard]] bool open(std::uint32_t count, std::uint64_t seed) noexcept {
    const std::uint32_t buckets = std::bit_ceil(count);
    all_.reset(new (std::nothrow) actor[count]);
    heap_.reset(new (std::nothrow) actor*[count + 1]);
    buckets_.reset(new (std::nothrow) actor*[buckets]);
    if (all_ == nullptr || heap_ == nullptr || buckets_ == nullptr) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      all_[i].index = i;
      all_[i].random = random_source(mix64(seed) + i);
    }
    for (std::uint32_t i = 0; i < buckets; ++i) buckets_[i] = nullptr;
    count_ = count;
    bucket_mask_ = buckets - 1;
    return true;
  }

  std::uint32_t count() const noexcept { return count_; }
  actor& operator[](std::uint32_t i) noexcept { return all_[i]; }
  bool is_empty() const noexcept { return size_ == 0; }
  const actor& first() const noexcept { return *heap_[1]; }

  static bool before(const actor& a, const actor& b) noexcept {
    return a.time != b.time ? a.time < b.time : a.order < b.order;
  }

  void insert(actor& a) noexcept {
    LEV_DCHECK(a.place == 0 && size_ < count_);
    rise(a, ++size_);
  }
  actor& pop() noexcept {
    actor& a = *heap_[1];
    remove(a);
    return a;
  }
  void remove(actor& a) noexcept {
    LEV_DCHECK(a.place != 0 && heap_[a.place] == &a);
    const std::uint32_t hole = std::exchange(a.place, 0);
    actor& last = *heap_[size_--];
    if (&last == &a) return;
    if (hole > 1 && before(last, *heap_[hole / 2]))
      rise(last, hole);
    else
      sink(last, hole);
  }
  // `a`, which runs, changes places with the first one.
  actor& exchange_first(actor& a) noexcept {
    actor& first = *heap_[1];
    first.place = 0;
    sink(a, 1);
    return first;
  }

  void begin_sleep(actor& a, const void* word) noexcept {
    a.word = word;
    actor*& head = bucket(word);
    a.next_sleeper = head;
    head = &a;
  }
  void end_sleep(actor& a) noexcept {
    if (a.word == nullptr) return;
    actor** at = &bucket(a.word);
    while (*at != &a) at = &(*at)->next_sleeper;
    *at = a.next_sleeper;
    a.word = nullptr;
  }
  // The sleepers of a word go on at `at`, or at their deadlines if those are earlier.
  void wake(const void* word, cycle_count at) noexcept {
    for (actor** link = &bucket(word); *link != nullptr;) {
      actor& a = **link;
      if (a.word != word) {
        link = &a.next_sleeper;
        continue;
      }
      *link = a.next_sleeper;
      a.word = nullptr;
      if (a.time <= at) continue;
      if (a.place != 0) remove(a);
      a.time = at;
      insert(a);
    }
  }

 private:
  actor*& bucket(const void* word) noexcept {
    return buckets_[mix64(reinterpret_cast<std::uintptr_t>(word)) & bucket_mask_];
  }
  void put(actor& a, std::uint32_t place) noexcept {
    heap_[place] = &a;
    a.place = place;
  }
  void rise(actor& a, std::uint32_t hole) noexcept {
    for (; hole > 1 && before(a, *heap_[hole / 2]); hole /= 2) put(*heap_[hole / 2], hole);
    put(a, hole);
  }
  void sink(actor& a, std::uint32_t hole) noexcept {
    for (std::uint32_t child; (child = 2 * hole) <= size_; hole = child) {
      if (child < size_ && before(*heap_[child + 1], *heap_[child])) ++child;
      if (!before(*heap_[child], a)) break;
      put(*heap_[child], hole);
    }
    put(a, hole);
  }

  std::unique_ptr<actor[]> all_;
  std::unique_ptr<actor*[]> heap_;     // from 1
  std::unique_ptr<actor*[]> buckets_;  // of sleepers
  std::uint32_t count_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t bucket_mask_ = 0;
};

}  // namespace lev::sim
