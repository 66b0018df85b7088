// Shared memory: what is asked of the system, what is given back, and what a block contains.
#include <gtest/gtest.h>
#include <leveret/shared.hpp>

#include "share/committed.hpp"
#include "share/faults.hpp"
#include "share/own_files.hpp"
#include "share/zone.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace lev {
namespace {

using range = committed_chunks::range;
constexpr std::size_t chunk = committed_chunks::chunk_bytes;
constexpr std::size_t large_bytes = 8 << 20;  // from here on freed memory goes back to the system

bool operator==(const range& a, const range& b) {
  return a.begin == b.begin && a.end == b.end;
}

TEST(committed_chunks, nothing_is_committed_at_first) {
  const committed_chunks c;
  EXPECT_TRUE(c.first_missing({0, 5}) == (range{0, 5}));
  EXPECT_TRUE(c.first_missing({200, 1000}) == (range{200, 1000}));
  EXPECT_TRUE(c.first_missing({3, 3}).is_empty());
}

TEST(committed_chunks, bytes_lie_in_chunks) {
  EXPECT_TRUE(committed_chunks::around(0, 1) == (range{0, 1}));
  EXPECT_TRUE(committed_chunks::around(chunk - 1, chunk + 1) == (range{0, 2}));
  EXPECT_TRUE(committed_chunks::within(1, 3 * chunk) == (range{1, 3}));
  EXPECT_TRUE(committed_chunks::within(1, chunk).is_empty());
  EXPECT_TRUE(committed_chunks::within(chunk, 2 * chunk - 1).is_empty());
}

// The same as a vector of bits, asked at random.
TEST(committed_chunks, finds_what_is_missing) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr std::size_t size = 300;
  committed_chunks c;
  std::vector<bool> expected(size);
  for (int step = 0; step < 2000; ++step) {
    range r{random() % size, random() % size};
    if (r.begin > r.end) std::swap(r.begin, r.end);
    const bool is_set = random() % 2 == 0;
    is_set ? c.set(r) : c.clear(r);
    for (std::size_t i = r.begin; i < r.end; ++i) expected[i] = is_set;
    const range all{random() % size / 2, size};
    const auto at = [&](std::size_t i) {
      return expected.begin() + static_cast<std::ptrdiff_t>(i);
    };
    const auto begin = std::find(at(all.begin), at(all.end), false);
    const auto end = std::find(begin, at(all.end), true);
    const range found = c.first_missing(all);
    ASSERT_EQ(found.begin, static_cast<std::size_t>(begin - expected.begin()));
    ASSERT_EQ(found.end, static_cast<std::size_t>(end - expected.begin()));
  }
}

struct freeing {
  void operator()(char* p) const { shared_free(p); }
};
using owned_block = std::unique_ptr<char, freeing>;
owned_block take(std::size_t bytes) {
  return owned_block(static_cast<char*>(shared_allocate(bytes)));
}
owned_block take_dirty(std::size_t bytes) {
  owned_block b(static_cast<char*>(shared_allocate_for_overwrite(bytes)));
  if (b != nullptr) std::memset(b.get(), 0xa5, bytes);
  return b;
}
bool is_zero(const owned_block& b, std::size_t bytes) {
  return std::all_of(b.get(), b.get() + bytes, [](char c) { return c == 0; });
}
std::size_t committed_bytes() {
  struct stat about;
  return fstat(open_zone()->heap_file, &about) == 0
             ? static_cast<std::size_t>(about.st_blocks) * 512
             : 0;
}

// Counts how often the system is asked for memory, and may have it refuse.
class watched {
 public:
  explicit watched(std::uint32_t allowed = fault_plan::never) {
    plan_.point = fault_name("host.fallocate").index;
    plan_.action = fault_action::fail;
    plan_.passes.store(allowed, memory_order_relaxed);
    arm_faults(&plan_, nullptr);
  }
  ~watched() { arm_faults(nullptr, nullptr); }
  std::uint32_t asked() const { return plan_.hits[plan_.point].load(memory_order_relaxed); }

 private:
  fault_plan plan_;
};

TEST(shared_memory, a_block_that_was_used_before_is_zero_again_and_asks_for_nothing) {
  const std::size_t bytes = large_bytes - 5 * chunk;
  take_dirty(bytes);
  const watched w;
  const owned_block again = take(bytes);
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(is_zero(again, bytes));
  EXPECT_EQ(w.asked(), 0u);
}

TEST(shared_memory, a_block_is_zero_where_it_is_partly_new) {
  take_dirty(3 * chunk + 128);
  const owned_block more = take(large_bytes);  // begins where that was
  ASSERT_NE(more, nullptr);
  EXPECT_TRUE(is_zero(more, large_bytes));
}

TEST(shared_memory, a_large_block_goes_back_to_the_system_and_is_asked_for_again) {
  const owned_block before = take(chunk / 2);  // so that the large one does not begin with a chunk
  owned_block b = take_dirty(large_bytes);
  const std::size_t with = committed_bytes();
  b.reset();
  EXPECT_LE(committed_bytes() + large_bytes - 2 * chunk, with);
  EXPECT_TRUE(before == nullptr || is_zero(before, chunk / 2));
  const watched w;
  b = take(large_bytes);
  EXPECT_GE(w.asked(), 1u);
  EXPECT_GE(committed_bytes(), with);
  EXPECT_TRUE(is_zero(b, large_bytes));
}

TEST(shared_memory, a_shortage_shows_at_once_and_leaves_nothing_behind) {
  // Large blocks go back to the system and the small ones between them do not, so that the whole is
  // asked for in parts.
  constexpr std::uint32_t parts = 4;
  std::vector<owned_block> all;
  for (std::uint32_t i = 0; i < parts; ++i) {
    all.push_back(take_dirty(large_bytes));
    all.push_back(take_dirty(chunk * 4));
  }
  all.clear();
  const std::size_t before = committed_bytes();
  const std::size_t bytes = parts * large_bytes;
  for (std::uint32_t allowed = 0; allowed < parts; ++allowed) {
    const watched w(allowed);
    EXPECT_EQ(take(bytes), nullptr);
    EXPECT_EQ(committed_bytes(), before) << allowed;
  }
  const owned_block b = take(bytes);
  ASSERT_NE(b, nullptr);
  EXPECT_TRUE(is_zero(b, bytes));
}

TEST(shared_memory, small_blocks_share_what_is_committed) {
  const owned_block first = take(128);
  const watched w;
  std::vector<owned_block> all;
  for (std::size_t i = 0; i < chunk / 128; ++i) all.push_back(take(128));
  EXPECT_LE(w.asked(), 2u);
}

std::int64_t own_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Whoever finds the heap taken sleeps until the system has answered, and burns no core meanwhile.
TEST(shared_memory, waits_asleep_for_who_asks_the_system) {
  constexpr std::uint32_t point = fault_name("host.fallocate").index;
  for (int round = 0; round < 5; ++round) {
    fault_plan plan;
    plan.point = point;
    plan.action = fault_action::delay;
    arm_faults(&plan, nullptr);
    std::atomic<bool> is_over{false};
    std::thread asks([&] {
      EXPECT_NE(take(2 * large_bytes), nullptr);
      is_over = true;
    });
    while (plan.hits[point].load() == 0 && !is_over) std::this_thread::yield();
    const std::int64_t before_ns = own_cpu_ns();
    EXPECT_FALSE(is_shared(&plan, 1));
    EXPECT_LT(own_cpu_ns() - before_ns, fault_plan::delay_ms * 1'000'000 / 2);
    asks.join();
    arm_faults(nullptr, nullptr);
  }
}

// As a profiler's: the system gives up what takes longer than from one signal to the next.
TEST(shared_memory, a_large_block_is_to_be_had_under_a_timer) {
  struct sigaction handled{};
  struct sigaction before;
  handled.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &handled, &before), 0);
  const itimerval often{{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, nullptr);
  const owned_block b(static_cast<char*>(shared_allocate_for_overwrite(16 * large_bytes)));
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_NE(b, nullptr) << shared_shortage();
}

// Other processes of the user have the addresses behind those of this one.
TEST(shared_memory, what_the_system_refuses_uses_up_no_addresses) {
  constexpr std::size_t bytes = 4096;
  constexpr std::size_t no_system_has = std::size_t{1} << 57;
  const int file = make_memory_file("places", bytes);
  void* before = map_near(file, bytes);
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(map_near(file, no_system_has), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* after = map_near(file, bytes);
  ASSERT_NE(after, nullptr);
  EXPECT_LT(static_cast<char*>(after) - static_cast<char*>(before), 1 << 30);
  munmap(before, bytes);
  munmap(after, bytes);
  close(file);
}

using shared_memory_death_test = testing::Test;

// A child of fork() is a process with blocks of its own, as is the one that such a test ends in.
TEST(shared_memory_death_test, freeing_what_is_no_block_tells_the_user_so) {
  const auto free_other = [](std::size_t beyond) {
    const owned_block own = take(128);
    int other = 0;
    shared_free(beyond == 0 ? static_cast<void*>(&other) : own.get() + beyond);
  };
  EXPECT_DEATH(free_other(0), "^leveret: shared_free\\(\\) was given what is no block");
  EXPECT_DEATH(free_other(64), "free each block once");
}

TEST(shared_memory_death_test, a_parents_block_is_left_to_the_parent) {
  const owned_block parents = take(128);
  parents.get()[0] = 7;
  const auto free_parents = [&](bool has_own) {
    owned_block own = has_own ? take(128) : owned_block();
    shared_free(parents.get());
    std::_Exit(parents.get()[0]);
  };
  EXPECT_EXIT(free_parents(false), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(free_parents(true), testing::ExitedWithCode(7), "");
}

// In a worker process, where the host's heap is mapped.
TEST(shared_memory_death_test, a_hosts_block_is_left_to_the_host) {
  const auto free_hosts = [] {
    constexpr std::uintptr_t begin = std::uintptr_t{1} << 40;
    adopt_zone(begin, begin + chunk);
    const owned_block own = take(128);
    shared_free(reinterpret_cast<void*>(begin));
    std::_Exit(own == nullptr ? 1 : 7);
  };
  EXPECT_EXIT(free_hosts(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace lev
