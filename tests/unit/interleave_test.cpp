// Tests of lev::interleave: which items run when, what fn throws, nesting, threads, bad input.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <leveret/interleave.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "context/ring.hpp"
#include "support/refused.hpp"

namespace lev {
namespace {

constexpr unsigned all_widths[] = {strands_automatic, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 63, 64};

// Linked lists of different lengths, all in one array.
struct list_node {
  const list_node* next;
  std::uint64_t value;
};

struct lists {
  explicit lists(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) total_nodes += i % 50;
    nodes.resize(total_nodes);
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const list_node* head = nullptr;
      std::uint64_t sum = 0;
      for (std::size_t n = 0; n < i % 50; ++n) {
        // 7919 is prime and longer than no array here divides: every node once.
        list_node& node = nodes[at++ * 7919 % total_nodes];
        node = {head, i + n};
        head = &node;
        sum += i + n;
      }
      heads.push_back(head);
      sums.push_back(sum);
    }
  }
  std::size_t total_nodes = 0;
  std::vector<list_node> nodes;
  std::vector<const list_node*> heads;
  std::vector<std::uint64_t> sums;
};

template <class Strand>
std::uint64_t sum_of(const list_node* node, Strand& s) {
  std::uint64_t sum = 0;
  for (; node != nullptr; node = node->next) sum += s.fetch(node)->value;
  return sum;
}

TEST(interleave, every_width_runs_every_item_once) {
  const lists data(1000);
  for (const unsigned n : all_widths) {
    std::vector<std::uint64_t> sums(1000, 0);
    interleave(n, 1000, [&](std::size_t i, auto& s) { sums[i] += sum_of(data.heads[i], s); });
    EXPECT_EQ(sums, data.sums) << "n = " << n;
    std::fill(sums.begin(), sums.end(), 0);
    interleave(n, 1000, [&](std::size_t i, strand& s) { sums[i] += sum_of(data.heads[i], s); });
    EXPECT_EQ(sums, data.sums) << "n = " << n << ", strands only";
  }
}

TEST(interleave, fewer_items_than_strands) {
  for (const unsigned n : all_widths) {
    for (std::size_t count = 0; count < 5; ++count) {
      std::vector<int> runs(count, 0);
      interleave(n, count, [&](std::size_t i, strand& s) {
        s.yield();
        ++runs[i];
        s.yield();
      });
      EXPECT_EQ(runs, std::vector<int>(count, 1)) << "n = " << n;
    }
  }
}

TEST(interleave, items_take_turns_in_order) {
  std::string seen;
  interleave(3, 4, [&](std::size_t i, strand& s) {
    for (int step = 0; step < 3; ++step) {
      seen += static_cast<char>('a' + i);
      s.yield();
    }
  });
  EXPECT_EQ(seen, "abcabcabcddd");
}

TEST(interleave, an_item_that_ends_makes_room_for_the_next) {
  std::size_t in_flight = 0, most = 0;
  interleave(5, 100, [&](std::size_t i, strand& s) {
    most = std::max(most, ++in_flight);
    for (std::size_t step = 0; step < i % 7; ++step) s.yield();
    --in_flight;
  });
  EXPECT_EQ(most, 5u);
  EXPECT_EQ(in_flight, 0u);
}

// With n = 1, and where fn takes auto&, the items see lev::direct: no strand exists at all.
TEST(interleave, one_at_a_time_is_direct) {
  std::vector<std::size_t> seen;
  interleave(1, 4, [&](std::size_t i, auto& s) {
    static_assert(std::is_same_v<decltype(s), direct&> || std::is_same_v<decltype(s), strand&>);
    if (std::is_same_v<decltype(s), direct&>) seen.push_back(i);
    s.yield();
  });
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(interleave, fetch_returns_what_it_was_given) {
  std::array<char, 4096> bytes{};
  int number = 0;
  interleave(4, 8, [&](std::size_t, auto& s) {
    EXPECT_EQ(s.fetch(&number), &number);
    EXPECT_EQ(s.fetch(&bytes), &bytes);
    EXPECT_EQ(s.fetch(bytes.data(), bytes.size()), bytes.data());
    EXPECT_EQ(s.fetch(bytes.data(), 0), bytes.data());
    EXPECT_EQ(s.fetch(static_cast<const void*>(bytes.data())), bytes.data());
    EXPECT_EQ(s.fetch(static_cast<int*>(nullptr)), nullptr);
    EXPECT_EQ(s.fetch(reinterpret_cast<int*>(~std::uintptr_t{7})),
              reinterpret_cast<int*>(~std::uintptr_t{7}));
  });
}

// 4096 bytes are 64 lines: 8 requests of 8 lines, with a turn of the others after each.
TEST(interleave, a_long_fetch_gives_way_for_every_eight_lines) {
  std::array<char, 4096> bytes{};
  std::string seen;
  interleave(2, 2, [&](std::size_t i, strand& s) {
    if (i == 0) {
      s.fetch(bytes.data(), bytes.size());
      seen += 'a';
    } else {
      for (int turn = 0; turn < 12; ++turn) {
        seen += 'b';
        s.yield();
      }
    }
  });
  EXPECT_EQ(seen, "bbbbbbbbabbbb");
}

[[gnu::noinline]] std::size_t descend(std::size_t depth, strand& s) {
  volatile char frame[128] = {};
  frame[depth % 128] = 1;
  if (depth == 0) return 0;
  s.yield();
  const std::size_t below = descend(depth - 1, s);
  s.yield();
  return below + static_cast<std::size_t>(frame[depth % 128]);
}

TEST(interleave, fetches_from_deep_recursion) {
  std::vector<std::size_t> depths(40);
  interleave(16, depths.size(), [&](std::size_t i, strand& s) { depths[i] = descend(i * 10, s); });
  for (std::size_t i = 0; i < depths.size(); ++i) EXPECT_EQ(depths[i], i * 10);
}

TEST(interleave, long_runs_of_sixteen) {
  std::uint64_t total = 0;
  interleave(16, 64, [&](std::size_t i, strand& s) {
    std::uint64_t own = i;
    for (int turn = 0; turn < 20'000; ++turn) {
      own = own * 6364136223846793005u + 1;
      s.yield();
    }
    total += own;
  });
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    std::uint64_t own = i;
    for (int turn = 0; turn < 20'000; ++turn) own = own * 6364136223846793005u + 1;
    expected += own;
  }
  EXPECT_EQ(total, expected);
}

TEST(interleave, floating_point_values_live_across_a_fetch) {
  std::vector<double> results(100);
  interleave(16, results.size(), [&](std::size_t i, strand& s) {
    double x = static_cast<double>(i), y = 1;
    for (int turn = 0; turn < 50; ++turn) {
      s.yield();
      y = y * 0.5 + x;
    }
    results[i] = y;
  });
  for (std::size_t i = 0; i < results.size(); ++i) {
    double y = 1;
    for (int turn = 0; turn < 50; ++turn) y = y * 0.5 + static_cast<double>(i);
    EXPECT_EQ(results[i], y);
  }
}

TEST(interleave, the_first_exception_arrives_when_the_others_have_ended) {
  for (const unsigned n : all_widths) {
    std::size_t started = 0, ended = 0;
    try {
      interleave(n, 10'000, [&](std::size_t i, auto& s) {
        ++started;
        const auto resource = std::make_unique<int>(1);
        for (int turn = 0; turn < 3; ++turn) s.yield();
        if (i == 20) throw std::runtime_error("item 20");
        if (i > 20) throw std::logic_error("later");
        s.yield();
        ended += static_cast<std::size_t>(*resource);
      });
      ADD_FAILURE() << "nothing thrown, n = " << n;
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "item 20");
    }
    EXPECT_EQ(ended, 20u) << "n = " << n;
    EXPECT_LE(started, 21u + 2 * std::max(n, 32u)) << "n = " << n;
    // The thread works on as before.
    std::size_t later = 0;
    interleave(n, 100, [&](std::size_t i, auto& s) { later += s.fetch(&i) == &i; });
    EXPECT_EQ(later, 100u);
  }
}

// Each item handles an exception of its own while the others do: none may see another's.
TEST(interleave, gives_way_inside_a_catch_block) {
  std::size_t right = 0;
  interleave(8, 200, [&](std::size_t i, strand& s) {
    try {
      if (i % 3 != 0) throw i;
      s.yield();
    } catch (const std::size_t& mine) {
      for (std::size_t turn = 0; turn < i % 5; ++turn) s.yield();
      try {
        throw;
      } catch (const std::size_t& again) {
        s.yield();
        right += mine == i && again == i;
      }
    }
  });
  EXPECT_EQ(right, 200u - 67u);
}

struct yields_when_destroyed {
  strand& s;
  int& seen;
  ~yields_when_destroyed() {
    seen += std::uncaught_exceptions();
    s.yield();
    seen += std::uncaught_exceptions();
  }
};

TEST(interleave, gives_way_while_an_exception_is_on_its_way) {
  int seen = 0, caught = 0;
  interleave(8, 100, [&](std::size_t i, strand& s) {
    try {
      const yields_when_destroyed one{s, seen};
      if (i % 2 == 0) throw 1;
    } catch (int) {
      ++caught;
    }
  });
  EXPECT_EQ(caught, 50);
  EXPECT_EQ(seen, 100);
}

// Called from a catch block, whose exception is still there afterwards.
TEST(interleave, the_callers_exception_stays_its_own) {
  try {
    throw 42;
  } catch (int) {
    int seen = 0;
    interleave(4, 10, [&](std::size_t, strand& s) {
      s.yield();
      seen += std::current_exception() == nullptr;
    });
    EXPECT_EQ(seen, 10);
    EXPECT_THROW(throw, int);
  }
}

TEST(interleave, an_item_may_interleave) {
  for (const unsigned outer : {1u, 4u, 16u}) {
    for (const unsigned inner : {strands_automatic, 1u, 2u, 16u}) {
      std::vector<std::size_t> sums(50, 0);
      interleave(outer, sums.size(), [&](std::size_t i, auto& s) {
        s.yield();
        interleave(inner, i, [&](std::size_t k, auto& t) {
          t.yield();
          sums[i] += k;
        });
        s.yield();
      });
      for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], i * (i - 1) / 2);
    }
  }
}

TEST(interleave, an_exception_crosses_two_levels) {
  EXPECT_THROW(interleave(4, 10,
                          [&](std::size_t i, strand& s) {
                            interleave(4, 10, [&](std::size_t k, strand& t) {
                              t.yield();
                              if (i == 3 && k == 5) throw std::runtime_error("inner");
                            });
                            s.yield();
                          }),
               std::runtime_error);
}

TEST(interleave, threads_do_not_meet) {
  std::vector<std::size_t> sums(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t& sum : sums) {
    threads.emplace_back([&sum] {
      for (int again = 0; again < 20; ++again) {
        interleave(16, 500, [&](std::size_t i, strand& s) {
          s.yield();
          sum += i;
        });
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::size_t sum : sums) EXPECT_EQ(sum, 20u * 499 * 500 / 2);
}

// The first thread_local of a thread is destroyed last: when the stacks that were kept are gone.
struct interleaves_at_thread_exit {
  std::size_t* sum = nullptr;
  ~interleaves_at_thread_exit() {
    interleave(4, 10, [this](std::size_t i, strand& s) {
      s.yield();
      *sum += i;
    });
  }
};

TEST(interleave, works_after_the_threads_stacks_are_gone) {
  std::size_t sum = 0;
  std::thread([&sum] {
    static thread_local interleaves_at_thread_exit last;
    last.sum = &sum;
    interleave(4, 10, [&](std::size_t i, strand& s) {
      s.yield();
      sum += i;
    });
  }).join();
  EXPECT_EQ(sum, 90u);
}

TEST(interleave, const_callables_and_those_with_state) {
  const auto constant = [](std::size_t, auto& s) { s.yield(); };
  interleave(4, 10, constant);
  std::size_t calls = 0;
  auto counting = [calls = std::size_t{0}, &out = calls](std::size_t, auto&) mutable {
    out = ++calls;
  };
  interleave(4, 10, counting);
  EXPECT_EQ(calls, 10u);
}

TEST(interleave, refuses_more_than_64) {
  for (const unsigned n : {65u, 1000u, ~0u}) {
    test::expect_refused(status::too_big, "64", [&] {
      interleave(n, 1, [](std::size_t, auto&) { ADD_FAILURE() << "an item ran"; });
    });
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// No address space, on a thread that has two stacks: a larger n is refused before an item ran,
// strands_automatic goes on with one at a time. (Without a first call the C library could end the
// process: it needs memory to note that the thread's stacks are to be unmapped at its end.)
int interleave_without_memory() {
  interleave(2, 2, [](std::size_t, strand& s) { s.yield(); });
  const rlimit none{1 << 20, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &none);
  std::size_t ran = 0;
  const auto fn = [&](std::size_t, auto& s) {
    s.yield();
    ++ran;
  };
  try {
    interleave(16, 100, fn);
    return 1;
  } catch (const error& e) {
    if (e.code() != status::out_of_memory || ran != 0) return 2;
  }
  interleave(strands_automatic, 100, fn);
  return ran == 100 ? 0 : 3;
}

TEST(interleave, without_memory_for_stacks) {
  const auto child = [] {
    int result = 4;
    std::thread([&result] { result = interleave_without_memory(); }).join();
    std::_Exit(result);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}
#endif

// Nested calls come back to the same stacks: what is kept does not grow from call to call.
TEST(interleave, stacks_are_kept_and_used_again) {
  strand_stack_pool pool;
  std::array<strand_stack*, 8> first{}, second{};
  ASSERT_TRUE(pool.take(8, first.data()));
  EXPECT_EQ(pool.idle_count(), 0u);
  ASSERT_TRUE(pool.take(4, second.data()));
  pool.give_back(4, second.data());
  pool.give_back(8, first.data());
  EXPECT_EQ(pool.idle_count(), 12u);
  std::array<strand_stack*, 8> again{};
  ASSERT_TRUE(pool.take(8, again.data()));
  EXPECT_EQ(again, first);
  pool.give_back(8, again.data());
}

}  // namespace
}  // namespace lev
