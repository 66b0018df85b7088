// Callables that a program may pass where Leveret calls it back: functions, also by name and
// noexcept, and lambdas of every kind. Columns that are temporary spans, volatile memory, no
// exceptions.
#include <gtest/gtest.h>
#include <leveret/interleave_flat.hpp>
#include <leveret/leveret.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/no_exceptions.h"
#include "api/strange_names.h"

namespace {

int assigned = 0;

void assign(int x, lev::result<int> y) noexcept {
  y = x;
}

void make_nothing(std::size_t, lev::descriptor& d) noexcept;
const auto touch = lev::define("callables.touch", [](int by) noexcept {
  __atomic_fetch_add(&assigned, by, __ATOMIC_RELAXED);
});
void make_nothing(std::size_t, lev::descriptor& d) noexcept {
  d = lev::pack(touch, 1);
}
void add_all(lev::range r) {
  __atomic_fetch_add(&assigned, static_cast<int>(r.size()), __ATOMIC_RELAXED);
}
void add_one(std::size_t, lev::strand& s) {
  s.yield();
  ++assigned;
}
lev::flat add_flat(lev::items& all) {
  for (const std::size_t i : all) {
    co_await lev::fetch(&i);
    ++assigned;
  }
}

class callables : public testing::Test {
 protected:
  void SetUp() override { assigned = 0; }
};

TEST_F(callables, a_bulk_is_made_by_a_function) {
  lev::runtime r;
  r.submit_bulk(10, make_nothing).wait();
  r.submit_bulk(10, &make_nothing).wait();
  r.submit_bulk(lev::from_any_thread, 10, make_nothing).wait();
  EXPECT_EQ(assigned, 30);
}

TEST_F(callables, a_function_is_the_body_of_a_loop) {
  lev::runtime r;
  r.parallel_for({0, 10}, add_all);
  r.parallel_for({0, 10}, &add_all);
  EXPECT_EQ(assigned, 20);
}

TEST_F(callables, items_are_a_function) {
  lev::interleave(4, 10, add_one);
  lev::interleave(1, 10, add_one);
  lev::interleave(lev::strands_automatic, 10, &add_one);
  lev::interleave_flat(4, 10, add_flat);
  EXPECT_EQ(assigned, 40);
}

TEST_F(callables, lambdas_of_every_kind_are_procedures) {
  const auto plain = lev::define("callables.plain", [](lev::result<int> y) { y = 1; });
  const auto silent = lev::define("callables.noexcept", [](lev::result<int> y) noexcept { y = 2; });
  const auto changing = lev::define("callables.mutable", [](lev::result<int> y) mutable { y = 3; });
  const auto both =
      lev::define("callables.both", [](lev::result<int> y) mutable noexcept { y = 4; });
  const auto function = lev::define("callables.function", assign);
  lev::runtime r;
  int got[5] = {};
  r.submit(plain, got[0]).wait();
  r.submit(silent, got[1]).wait();
  r.submit(changing, got[2]).wait();
  r.submit(both, got[3]).wait();
  r.submit(function, 5, got[4]).wait();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(got[i], i + 1);
}

template <class Container>
concept makes_a_column = requires(Container&& c) { lev::each(std::forward<Container>(c)); };
static_assert(makes_a_column<std::vector<int>&> && makes_a_column<std::span<int>>);
static_assert(!makes_a_column<std::vector<int>>, "its elements would be gone");

TEST_F(callables, columns_are_temporary_spans) {
  const auto copy = lev::define("callables.copy", assign);
  const std::array<int, 3> from = {4, 5, 6};
  std::array<int, 3> to = {};
  lev::runtime r;
  r.submit_bulk(3, copy, lev::each(std::span<const int>(from)), lev::each(std::span(to))).wait();
  EXPECT_EQ(to, from);
}

TEST_F(callables, objects_keep_their_state_and_their_address_operator) {
  struct odd {
    std::unique_ptr<int> sum = std::make_unique<int>(0);
    odd* operator&() = delete;
    void operator()(lev::range r) { *sum += static_cast<int>(r.size()); }
  };
  odd body;
  lev::config c;
  c.machine = "sim";
  lev::runtime r(c);
  r.parallel_for({0, 10}, body);
  EXPECT_EQ(*body.sum, 10);
}

// Its address is not what its operator says.
struct elusive {
  int value = 0;
  elusive* operator&() const { return nullptr; }
};

TEST_F(callables, values_and_results_have_their_own_address_operator) {
  const auto copy =
      lev::define("callables.elusive", [](elusive x, lev::result<elusive> y) { y = x; });
  lev::runtime r;
  elusive y;
  r.submit(copy, elusive{7}, y).wait();
  EXPECT_EQ(y.value, 7);
  const std::array<elusive, 2> from = {elusive{1}, elusive{2}};
  std::array<elusive, 2> to;
  r.submit_bulk(2, copy, lev::each(from), lev::each(to)).wait();
  EXPECT_EQ(to[1].value, 2);
}

// A span is a value like any other, though it has an element_type.
TEST_F(callables, columns_have_spans_as_values) {
  const auto sum = lev::define("callables.sum", [](std::span<const int> x, lev::result<int> y) {
    int all = 0;
    for (const int each : x) all += each;
    y = all;
  });
  const std::array<int, 5> numbers = {1, 2, 3, 4, 5};
  const std::array<std::span<const int>, 2> from = {std::span(numbers).first(2),
                                                    std::span(numbers).last(3)};
  std::array<int, 2> to = {};
  lev::runtime r;
  r.submit_bulk(2, sum, lev::each(from), lev::each(to)).wait();
  EXPECT_EQ(to[0], 3);
  EXPECT_EQ(to[1], 12);
}

TEST_F(callables, volatile_memory_is_fetched) {
  volatile int word = 7;
  const volatile int* seen = nullptr;
  lev::interleave(2, 2, [&](std::size_t, lev::strand& s) {
    seen = s.fetch(&word);
    seen = s.fetch(&word, sizeof word);
  });
  EXPECT_EQ(*seen, 7);
}

TEST(strange_names, of_the_program_are_not_called) {
  EXPECT_EQ(lev_sum_of_strange_names(), 22);
}

TEST(no_exceptions, a_program_compiled_without_exceptions_works) {
  EXPECT_EQ(lev_sum_without_exceptions(), 45);
}

}  // namespace
