// Conformance: values of every size, results, ranges, and as many arguments as there may be.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using arguments_test = machine_test;
LEV_ON_EVERY_MACHINE(arguments_test);

template <std::size_t Size>
struct bytes {
  unsigned char at[Size];
  bool operator==(const bytes&) const = default;
};

template <std::size_t Size>
const auto echo = define(("args.echo" + std::to_string(Size)).c_str(),
                         +[](bytes<Size> value, result<bytes<Size>> out) { out = value; });

template <std::size_t Size>
void echo_bytes(runtime& r) {
  bytes<Size> value;
  for (std::size_t i = 0; i < Size; ++i) value.at[i] = static_cast<unsigned char>(0xf0 + i);
  bytes<Size> guarded[3] = {};
  r.submit(echo<Size>, value, guarded[1]).wait();
  EXPECT_EQ(guarded[1], value) << Size << " bytes";
  EXPECT_EQ(guarded[0], bytes<Size>{}) << "bytes before the result";
  EXPECT_EQ(guarded[2], bytes<Size>{}) << "bytes behind the result";
}

template <std::size_t... Size>
void echo_all(runtime& r, std::index_sequence<Size...>) {
  (echo_bytes<Size + 1>(r), ...);
}

LEV_TEST(arguments_test, values_and_results_of_every_size) {
  echo_all(open(), std::make_index_sequence<value_bytes_max>());
}

const auto mixed_values = define(
    "args.mixed_values",
    [](bool a, char b, float c, double d, std::int16_t e, long double f, result<double> sum) {
      sum = (a ? 1 : 0) + b + static_cast<double>(c) + d + e + static_cast<double>(f);
    });

LEV_TEST(arguments_test, values_are_converted_to_the_parameter) {
  double sum = 0;
  open().submit(mixed_values, 1, 2, 3, 4, 5, 6, sum).wait();
  EXPECT_EQ(sum, 21.0);
}

using word = std::int32_t;
const auto eighteen = define(
    "args.eighteen", [](in<word> a, in<word> b, in<word> c, in<word> d, in<word> e, in<word> f,
                        in<word> g, in<word> h, in<word> i, in<word> j, in<word> k, in<word> l,
                        in<word> m, in<word> n, in<word> o, in<word> p, in<word> q, out<word> sum) {
      const in<word>* all[] = {&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l, &m, &n, &o, &p, &q};
      for (std::size_t x = 0; x < sum.size(); ++x) {
        sum[x] = 0;
        for (const in<word>* one : all) sum[x] += (*one)[x];
      }
    });

LEV_TEST(arguments_test, eighteen_arguments) {
  std::array<std::vector<word>, 18> v;
  for (std::size_t i = 0; i < 18; ++i) v[i].assign(9, static_cast<word>(1 << i));
  open()
      .submit(eighteen, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11],
              v[12], v[13], v[14], v[15], v[16], v[17])
      .wait();
  EXPECT_EQ(v[17], std::vector<word>(9, (1 << 17) - 1));
}

LEV_TEST(arguments_test, no_argument_at_all) {
  expect_ok(open().submit(nothing));
}

const auto size_of_range = define("args.size_of_range", [](range r, ref<counter> n) {
  n.to->fetch_add(static_cast<int>(r.size()));
});

LEV_TEST(arguments_test, a_range_arrives_whole_or_in_pieces) {
  counter n = 0;
  open().submit(size_of_range, range{100, 1100}, ref{&n}).wait();
  EXPECT_EQ(n, 1000);
}

LEV_TEST(arguments_test, several_results) {
  static const auto two = define("args.two_results", [](int a, result<int> b, result<char> c) {
    b = a + 1;
    c = static_cast<char>(a + 2);
  });
  int b = 0;
  char c = 0;
  open().submit(two, 40, b, c).wait();
  EXPECT_EQ(b, 41);
  EXPECT_EQ(c, 42);
}

int load_here(int x) {
  return x;
}
void declared_at_namespace_scope(int x, result<int> y) {
  y = load_here(x) + 1;
}
LEV_PROCEDURE(declared_at_namespace_scope);

LEV_TEST(arguments_test, a_function_registered_by_the_macro) {
  int y = 0;
  open().submit<declared_at_namespace_scope>(4, y).wait();
  EXPECT_EQ(y, 5);
  EXPECT_NE(lookup("declared_at_namespace_scope"), 0);
}

LEV_TEST(arguments_test, a_descriptor_packed_once_runs_many_times) {
  runtime& r = open();
  std::vector<std::uint64_t> x(8, 0);
  const descriptor d = pack(increment, x);
  for (int i = 0; i < 10; ++i) expect_ok(r.submit(d));
  EXPECT_EQ(x, std::vector<std::uint64_t>(8, 10));
}

LEV_TEST(arguments_test, thousands_of_tasks_keep_their_own_arguments) {
  runtime& r = open();
  constexpr std::int64_t count = 3000;
  std::vector<std::int64_t> results(count);
  std::vector<ticket> tickets;
  for (std::int64_t i = 0; i < count; ++i) {
    if (tickets.size() == 500) {
      ASSERT_EQ(wait_all(tickets.data(), tickets.size(), wait_limit_ns()).code, status::ok);
      tickets.clear();
    }
    tickets.push_back(r.submit(square, i, results[static_cast<std::size_t>(i)]));
  }
  ASSERT_EQ(wait_all(tickets.data(), tickets.size(), wait_limit_ns()).code, status::ok);
  for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(results[static_cast<std::size_t>(i)], i * i);
}

}  // namespace
}  // namespace lev::test
