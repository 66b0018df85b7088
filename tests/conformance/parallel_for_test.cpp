// Conformance: parallel_for(), alone, nested, inside tasks, and with bodies that throw.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

using parallel_for_test = machine_test;
LEV_ON_LOCAL_MACHINES(parallel_for_test);

using visit_counts = std::vector<std::atomic<int>>;

void expect_once(const visit_counts& v) {
  for (std::size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], 1) << "index " << i;
}

LEV_TEST(parallel_for_test, visits_every_index_once) {
  runtime& r = open();
  for (const std::size_t n : {0u, 1u, 2u, 100u, 10'000u}) {
    for (const std::uint32_t grain : {0u, 1u, 13u, 100'000u}) {
      visit_counts v(n);
      const auto body = [&v](range piece) {
        for (std::uint64_t i = piece.begin; i < piece.end; ++i) ++v[i];
      };
      r.parallel_for({0, n}, body, grain);
      expect_once(v);
    }
  }
}

// In a task; elsewhere it is a task, as each loop is on a machine with virtual time.
LEV_TEST(parallel_for_test, of_one_piece_is_part_of_the_task_that_calls_it) {
  runtime& r = open();
  std::atomic<unsigned> visited{0};
  const auto loops = [&](range) {
    for (const std::uint32_t n : {1u, 5u, 64u})
      r.parallel_for({0, n}, [&](range piece) { visited += piece.end - piece.begin; }, 64);
    r.parallel_for({7, 8}, [&](range) { ++visited; });
    EXPECT_THROW(r.parallel_for({0, 1}, [](range) { throw std::range_error("mine"); }),
                 std::range_error);
  };
  r.parallel_for({0, 1}, loops);
  EXPECT_EQ(visited, 71u);
  EXPECT_EQ(r.count().submitted, is_sim() ? 6u : 1u);
}

// Each loop waits for its halves; most wait on a worker that has no context left.
LEV_TEST(parallel_for_test, in_halves_of_halves) {
  config c = settings();
  c.contexts = 2;
  runtime& r = open(c);
  std::atomic<unsigned> leaves{0};
  const std::function<void(unsigned)> halve = [&](unsigned levels) {
    if (levels == 0) return static_cast<void>(++leaves);
    r.parallel_for(
        {0, 2},
        [&](range piece) {
          for (; piece.begin != piece.end; ++piece.begin) halve(levels - 1);
        },
        1);
  };
  halve(11);
  EXPECT_EQ(leaves, 2048u);
}

LEV_TEST(parallel_for_test, a_range_may_begin_anywhere) {
  constexpr std::uint64_t begin = 0xffffffffffff0000u;
  runtime& r = open();
  std::atomic<std::uint64_t> sum{0};
  r.parallel_for({begin, begin + 1000}, [&sum](range piece) {
    for (std::uint64_t i = piece.begin; i < piece.end; ++i) sum += i - begin;
  });
  EXPECT_EQ(sum, 999u * 1000 / 2);
}

// Also where the loop is run by its caller: in a task that is as deep as it may be.
LEV_TEST(parallel_for_test, over_nothing_calls_no_body_and_backwards_is_refused) {
  config c = settings();
  c.nest_max = 1;
  runtime& r = open(c);
  counter n = 0;
  std::atomic<unsigned> refused{0};
  const auto count = [&n](range) { ++n; };
  const auto loops = [&](range) {
    r.parallel_for({7, 7}, count);
    r.parallel_for({0, 0}, count, 1);
    try {
      r.parallel_for({9, 3}, count);
    } catch (const error& e) {
      refused += e.code() == status::bad_range;
    }
  };
  loops({});
  r.parallel_for({0, 1}, loops);
  EXPECT_EQ(n, 0);
  EXPECT_EQ(refused, 2u);
}

LEV_TEST(parallel_for_test, one_inside_the_other) {
  runtime& r = open();
  static constexpr std::uint64_t rows = 40;
  static constexpr std::uint64_t columns = 50;
  visit_counts v(rows * columns);
  r.parallel_for({0, rows}, [&](range outer) {
    for (std::uint64_t y = outer.begin; y < outer.end; ++y) {
      r.parallel_for({0, columns}, [&v, y](range inner) {
        for (std::uint64_t x = inner.begin; x < inner.end; ++x) ++v[y * columns + x];
      });
    }
  });
  expect_once(v);
}

LEV_TEST(parallel_for_test, three_deep) {
  runtime& r = open();
  counter n = 0;
  const auto each = [&r](std::uint64_t count, auto&& body) {
    r.parallel_for({0, count}, [&body](range p) {
      for (std::uint64_t i = p.begin; i < p.end; ++i) body();
    });
  };
  each(8, [&] { each(8, [&] { each(8, [&] { ++n; }); }); });
  EXPECT_EQ(n, 512);
}

LEV_TEST(parallel_for_test, an_exception_comes_back_after_all_pieces) {
  runtime& r = open();
  for (int i = 0; i < 20; ++i) {
    counter n = 0;
    const auto body = [&n](range piece) {
      for (std::uint64_t k = piece.begin; k < piece.end; ++k) ++n;
      if (piece.begin <= 500 && 500 < piece.end) throw std::out_of_range("at 500");
    };
    EXPECT_THROW(r.parallel_for({0, 1000}, body, 1), std::out_of_range);
    EXPECT_EQ(n, 1000);
  }
}

LEV_TEST(parallel_for_test, an_inner_exception_passes_through_the_outer_loop) {
  runtime& r = open();
  const auto outer = [&r](range) {
    r.parallel_for({0, 10}, [](range) { throw std::domain_error("inner"); });
  };
  EXPECT_THROW(r.parallel_for({0, 10}, outer), std::domain_error);
  expect_ok(r.submit(nothing));
}

LEV_TEST(parallel_for_test, the_body_may_be_a_temporary_or_const) {
  runtime& r = open();
  counter n = 0;
  const auto body = [&n](range piece) { n += static_cast<int>(piece.size()); };
  r.parallel_for({0, 100}, body);
  r.parallel_for({0, 100}, [&n](range piece) mutable { n += static_cast<int>(piece.size()); });
  EXPECT_EQ(n, 200);
}

LEV_TEST(parallel_for_test, several_threads_at_once) {
  if (is_sim()) GTEST_SKIP() << "one host thread";
  runtime& r = open();
  std::vector<std::thread> hosts;
  for (int t = 0; t < 3; ++t) {
    hosts.emplace_back([&r] {
      for (int i = 0; i < 20; ++i) {
        counter n = 0;
        r.parallel_for({0, 300}, [&n](range p) { n += static_cast<int>(p.size()); }, 1);
        ASSERT_EQ(n, 300);
      }
    });
  }
  for (std::thread& t : hosts) t.join();
}

LEV_TEST(parallel_for_test, works_with_two_tickets) {
  config c = settings();
  c.tickets = 2;
  runtime& r = open(c);
  counter n = 0;
  r.parallel_for({0, 1000}, [&n](range p) { n += static_cast<int>(p.size()); }, 1);
  EXPECT_EQ(n, 1000);
}

using parallel_for_threads_test = machine_test;
LEV_ON_THREADS(parallel_for_threads_test);

// The other host's tasks are complete, so no end of a task will ever give a ticket back.
LEV_TEST(parallel_for_threads_test, runs_where_another_host_holds_all_tickets) {
  for (const when_full full : {when_full::help, when_full::wait, when_full::fail}) {
    config c = settings();
    c.tickets = 2;
    c.full = full;
    runtime r(c);
    std::atomic<bool> are_held = false, is_done = false;
    std::thread other([&] {
      ticket held[2];
      for (ticket& t : held) t = r.submit(nothing);
      while (!held[0].done() || !held[1].done()) std::this_thread::yield();
      are_held = true;
      are_held.notify_one();
      is_done.wait(false);
    });
    are_held.wait(false);
    counter n = 0;
    r.parallel_for({0, 1000}, [&n](range p) { n += static_cast<int>(p.size()); }, 1);
    is_done = true;
    is_done.notify_one();
    other.join();
    EXPECT_EQ(n, 1000);
  }
}

using parallel_for_remote_test = machine_test;
LEV_ON_PROCESSES(parallel_for_remote_test);

// A body refers to the host's memory.
LEV_TEST(parallel_for_remote_test, is_refused_and_calls_no_body) {
  runtime& r = open();
  counter n = 0;
  for (const std::uint64_t count : {0u, 1u, 1000u}) {
    expect_refused(status::not_supported, "parallel_for",
                   [&] { r.parallel_for({0, count}, [&n](range) { ++n; }); });
  }
  EXPECT_EQ(r.count().submitted, 0u);
  expect_ok(r.submit(nothing));
  EXPECT_EQ(n, 0);
}

}  // namespace
}  // namespace lev::test
