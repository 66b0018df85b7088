// Bad input at submit: the rows of README.md that a descriptor can express; 0 is for those that
// have no number there. Each is refused with its status and a message that names the argument;
// nothing is lost or leaked, and the runtime goes on.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using words = std::vector<std::uint64_t>;

// Never to be run: every task of this file is refused.
const auto takes_all = define("bad_input.takes_all",
                              [](int, result<int>, in<std::uint64_t>, out<std::uint64_t>,
                                 inout<std::uint64_t>) { ADD_FAILURE() << "a refused task ran"; });

// A row changes one thing of a good task of takes_all.
struct setting {
  int result = 0;
  words in = words(64, 1);
  words out = words(64, 2);
  words inout = words(64, 3);
  options o;
  descriptor d;

  setting() : d(pack(takes_all, 7, result, in, out, inout)) {}
  argument& value() { return d.arguments[0]; }
  argument& result_argument() { return d.arguments[1]; }
  argument& input() { return d.arguments[2]; }
  argument& output() { return d.arguments[3]; }
  argument& both() { return d.arguments[4]; }
};

argument memory_of(kind what, words& at, std::uint64_t row_words, std::uint32_t rows,
                   std::int64_t stride_bytes) {
  argument a;
  a.what = what;
  a.address = reinterpret_cast<std::uintptr_t>(at.data());
  a.row_bytes = row_words * sizeof(std::uint64_t);
  a.unit_bytes = sizeof(std::uint64_t);
  a.rows = rows;
  a.stride_bytes = stride_bytes;
  return a;
}

struct row {
  int number;
  const char* name;
  void (*spoil)(setting&);
  status code;
  int argument;
  const char* says;
};

void PrintTo(const row& r, std::ostream* out) {
  *out << "row " << r.number << ", " << r.name;
}

constexpr std::uint64_t most = ~std::uint64_t{0};
constexpr auto odd_kind = static_cast<kind>(9);

const row rows[] = {
    {1, "id_beyond_the_table", [](setting& s) { s.d.procedure = 0xffff; }, status::bad_procedure,
     -1, "65535"},
    {2, "unregistered_id", [](setting& s) { s.d.procedure = 1000; }, status::bad_procedure, -1,
     "1000"},
    {2, "id_zero", [](setting& s) { s.d.procedure = 0; }, status::bad_procedure, -1,
     "LEV_PROCEDURE(function)"},
    {4, "nineteen_arguments", [](setting& s) { s.d.argument_count = 19; }, status::too_big, -1,
     "19"},
    {4, "255_arguments", [](setting& s) { s.d.argument_count = 255; }, status::too_big, -1, "18"},
    {5, "one_too_few", [](setting& s) { s.d.argument_count = 4; }, status::bad_argument_count, -1,
     "takes 5"},
    {5, "none", [](setting& s) { s.d.argument_count = 0; }, status::bad_argument_count, -1,
     "passes 0"},
    {5, "kinds_swapped", [](setting& s) { std::swap(s.d.arguments[2], s.d.arguments[3]); },
     status::bad_argument, 2, "declares in"},
    {6, "value_of_17_bytes", [](setting& s) { s.value().unit_bytes = 17; }, status::too_big, 0,
     "16 bytes"},
    {6, "result_of_17_bytes",
     [](setting& s) { s.result_argument().unit_bytes = s.result_argument().row_bytes = 17; },
     status::too_big, 1, "16 bytes"},
    {7, "null_in", [](setting& s) { s.input().address = 0; }, status::bad_address, 2, "null"},
    {7, "null_out", [](setting& s) { s.output().address = 0; }, status::bad_address, 3, "null"},
    {7, "null_inout", [](setting& s) { s.both().address = 0; }, status::bad_address, 4,
     "512 bytes"},
    {7, "null_result", [](setting& s) { s.result_argument().address = 0; }, status::bad_address, 1,
     "result"},
    {7, "result_of_two_rows", [](setting& s) { s.result_argument().rows = 2; }, status::bad_address,
     1, "one variable"},
    {9, "length_wraps", [](setting& s) { s.input().address = most - 8; }, status::bad_range, 2,
     "argument 2"},
    {9, "all_of_memory", [](setting& s) { s.input().row_bytes = most - 7; }, status::bad_range, 2,
     "argument 2"},
    {13, "not_a_multiple", [](setting& s) { s.output().row_bytes = 511; }, status::bad_argument, 3,
     "multiple"},
    {13, "elements_of_nothing", [](setting& s) { s.output().unit_bytes = 0; }, status::bad_argument,
     3, "argument 3"},
    {14, "rows_of_out_overlap",
     [](setting& s) { s.output() = memory_of(kind::out, s.out, 8, 4, 56); }, status::overlap, 3,
     "stride"},
    {14, "stride_zero_on_inout",
     [](setting& s) { s.both() = memory_of(kind::inout, s.inout, 8, 4, 0); }, status::overlap, 4,
     "stride"},
    {15, "negative_stride", [](setting& s) { s.input() = memory_of(kind::in, s.in, 8, 4, -64); },
     status::bad_range, 2, "negative"},
    {15, "rows_times_stride_wraps",
     [](setting& s) { s.input() = memory_of(kind::in, s.in, 8, 1u << 30, INT64_MAX); },
     status::bad_range, 2, "stride"},
    {15, "two_rows_in_one_address_space",
     [](setting& s) { s.input() = memory_of(kind::in, s.in, 8, 2, INT64_MAX); }, status::bad_range,
     2, "stride"},
    {15, "a_stride_whose_bytes_wrap",
     [](setting& s) {
       const std::ptrdiff_t stride = std::ptrdiff_t{1} << 61;  // as bytes it would be 0
       s.input() = detail::memory_argument(kind::in, strided(s.in.data(), 2, 8, stride));
     },
     status::bad_range, 2, "stride"},
    {15, "a_stride_back_whose_bytes_wrap",
     [](setting& s) {
       s.input() = detail::memory_argument(kind::in, strided(s.in.data(), 2, 8, PTRDIFF_MIN));
     },
     status::bad_range, 2, "negative"},
    {15, "rows_times_bytes_wraps",
     [](setting& s) {
       s.input() = memory_of(kind::in, s.in, 8, 3, 0);
       s.input().row_bytes = 0x5555555555555558;
     },
     status::bad_range, 2, "argument 2"},
    {15, "too_many_rows",
     [](setting& s) { s.input() = memory_of(kind::in, s.in, 8, 0xffffffff, 0); }, status::too_big,
     2, "rows"},
    {17, "kind_zero", [](setting& s) { s.input().what = static_cast<kind>(0); },
     status::bad_argument, 2, "kind"},
    {17, "kind_beyond_the_last", [](setting& s) { s.both().what = odd_kind; }, status::bad_argument,
     4, "kind"},
    {18, "unknown_flag_bits", [](setting& s) { s.input().flags = 0x80; }, status::bad_argument, 2,
     "flag"},
    {0, "a_packed_value", [](setting& s) { s.value().flags = argument_packed; },
     status::bad_argument, 0, "packed"},
    {0, "packed_far_memory", [](setting& s) { s.input().flags = argument_packed | argument_far; },
     status::bad_argument, 2, "packed"},
    {18, "flags_of_the_task", [](setting& s) { s.d.flags = 1; }, status::bad_argument, -1, "flag"},
    {18, "a_sliced_value", [](setting& s) { s.value().flags = argument_sliced; },
     status::bad_argument, 0, "slice"},
    {18, "a_sliced_result", [](setting& s) { s.result_argument().flags = argument_sliced; },
     status::bad_argument, 1, "slice"},
    {19, "two_outputs_overlap", [](setting& s) { s.output().address = s.both().address + 504; },
     status::overlap, 3, "argument 4"},
    {19, "result_inside_an_output",
     [](setting& s) { s.result_argument().address = s.output().address + 100; }, status::overlap, 1,
     "argument 3"},
    {20, "in_overlaps_out", [](setting& s) { s.input().address = s.output().address - 8; },
     status::overlap, 3, "argument 2"},
    {20, "in_is_the_inout", [](setting& s) { s.input() = s.both(), s.input().what = kind::in; },
     status::overlap, 4, "argument 2"},
    {0, "an_output_that_is_not_sliced", [](setting& s) { s.input().flags = argument_sliced; },
     status::bad_argument, 1, "sliced"},
    {0, "slices_of_different_numbers",
     [](setting& s) {
       s.input().flags = s.output().flags = s.both().flags = argument_sliced;
       s.output().row_bytes = s.output().stride_bytes = 256;
     },
     status::bad_argument, 3, "32 slices"},
    {0, "five_mutexes", [](setting& s) { s.o.locks(0, 0, 0, 0, 0); }, status::too_big, -1, "5"},
    {0, "a_mutex_that_was_not_made", [](setting& s) { s.o.locks(77); }, status::bad_argument, -1,
     "77"},
};

class submit_rows : public testing::TestWithParam<row> {
 protected:
  static void check(const char* machine, staging s) {
    config c;
    c.machine = machine;
    c.workers = 2;
    c.tickets = 64;
    c.staging = s;
    runtime r(c);
    refuse_once(r);
    if (HasFatalFailure()) return;
    words x(8, 1);
    r.submit(increment, x).wait();
    EXPECT_EQ(x, words(8, 2));
    EXPECT_EQ(r.count().submitted, 1u) << "a refused task was counted";
    EXPECT_EQ(r.close(10'000'000'000), status::ok);
    expect_nothing_leaked(r);
  }
  static void refuse_once(runtime& r) {
    const row& bad = GetParam();
    setting s;
    bad.spoil(s);
    refusal why;
    ticket t = r.try_submit(s.d, &s.o, &why);
    ASSERT_FALSE(t) << "it was accepted and " << status_name(t.wait_outcome().code);
    EXPECT_EQ(why.code, bad.code) << status_name(why.code) << ": " << why.message;
    EXPECT_EQ(why.argument, bad.argument) << why.message;
    const std::string message = why.message;
    EXPECT_NE(message.find(bad.says), std::string::npos) << message;
    if (bad.argument >= 0) {
      const std::string name = "argument " + std::to_string(bad.argument);
      EXPECT_NE(message.find(name), std::string::npos) << message;
    }
    EXPECT_FALSE(r.try_submit(s.d, &s.o, nullptr));
    try {
      r.submit(s.d, &s.o);
      ADD_FAILURE() << "submit() did not throw";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), bad.code);
      EXPECT_EQ(e.argument(), bad.argument);
      EXPECT_EQ(message, e.what());
    }
    EXPECT_EQ(s.out, words(64, 2));
    EXPECT_EQ(s.inout, words(64, 3));
  }
};

TEST_P(submit_rows, is_refused) {
  start_alarm();
  check("threads", staging::automatic);
  check("threads", staging::copy);
  check("sim", staging::automatic);
}

INSTANTIATE_TEST_SUITE_P(on, submit_rows, testing::ValuesIn(rows), [](const auto& each) {
  return "row_" + std::to_string(each.param.number) + "_" + each.param.name;
});

}  // namespace
}  // namespace lev::test
