// Things that must not change without notice: the bytes of a descriptor, the numbers of statuses
// and kinds, and the limits. Other processes, other languages and stored traces rely on them.
#include <gtest/gtest.h>
#include <leveret/leveret.h>
#include <leveret/leveret.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

extern "C" int lev_layout_is_checked(void);

namespace {

static_assert(sizeof(lev::argument) == 32 && alignof(lev::argument) == 8);
static_assert(offsetof(lev::argument, address) == 0);
static_assert(offsetof(lev::argument, row_bytes) == 8);
static_assert(offsetof(lev::argument, stride_bytes) == 16);
static_assert(offsetof(lev::argument, rows) == 24);
static_assert(offsetof(lev::argument, unit_bytes) == 28);
static_assert(offsetof(lev::argument, what) == 30);
static_assert(offsetof(lev::argument, flags) == 31);

static_assert(sizeof(lev::descriptor) == 592 && alignof(lev::descriptor) == 8);
static_assert(offsetof(lev::descriptor, procedure) == 0);
static_assert(offsetof(lev::descriptor, argument_count) == 2);
static_assert(offsetof(lev::descriptor, flags) == 3);
static_assert(offsetof(lev::descriptor, grain) == 4);
static_assert(offsetof(lev::descriptor, priority) == 8);
static_assert(offsetof(lev::descriptor, key) == 12);
static_assert(offsetof(lev::descriptor, arguments) == 16);
static_assert(std::is_trivially_copyable_v<lev::descriptor>);
static_assert(std::is_standard_layout_v<lev::descriptor>);

std::string hex(const void* at, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", static_cast<const unsigned char*>(at)[i]);
    text += two;
    if (i % 8 == 7) text += i % 32 == 15 || i + 1 == bytes ? "\n" : " ";
  }
  return text;
}

struct twelve {
  std::uint32_t at[3];
};

// A packed task, byte by byte.
TEST(layout, bytes_of_a_descriptor) {
  using signature =
      void(std::uint16_t, twelve, lev::range, lev::in<std::uint32_t>, lev::inout<std::uint16_t>);
  const lev::procedure<signature> p{0x0123};
  auto* memory = reinterpret_cast<std::uint32_t*>(0x1122334455667700);
  auto* matrix = reinterpret_cast<std::uint16_t*>(0x8877665544332200);
  lev::descriptor d = lev::pack(p, 0xbeef, twelve{{1, 2, 3}}, lev::range{5, 0x100},
                                lev::view(memory, 9), lev::sliced(lev::strided(matrix, 3, 7, 16)));
  d.grain = 0x0a0b0c0d;
  d.priority = -2;
  d.key = 0x77;
  const char* expected =
      "230105000d0c0b0a feffffff77000000\n"
      "efbe000000000000 0000000000000000 0000000000000000 0100000002000100\n"
      "0100000002000000 0300000000000000 0000000000000000 010000000c000100\n"
      "0500000000000000 0001000000000000 0000000000000000 0100000001000601\n"
      "0077665544332211 2400000000000000 2400000000000000 0100000004000300\n"
      "0022334455667788 0e00000000000000 2000000000000000 0300000002000503\n";
  EXPECT_EQ(hex(&d, 16 + 5 * 32), expected);
}

TEST(layout, a_result_names_its_place) {
  const lev::procedure<void(lev::result<double>)> p{1};
  double place = 0;
  const lev::descriptor d = lev::pack(p, place);
  EXPECT_EQ(d.arguments[0].address, reinterpret_cast<std::uintptr_t>(&place));
  EXPECT_EQ(d.arguments[0].row_bytes, 8u);
  EXPECT_EQ(d.arguments[0].unit_bytes, 8u);
  EXPECT_EQ(d.arguments[0].rows, 1u);
  EXPECT_EQ(d.arguments[0].what, lev::kind::result);
}

TEST(layout, c_structs_are_the_same) {
  EXPECT_EQ(lev_layout_is_checked(), 1);
  EXPECT_EQ(sizeof(lev_argument), sizeof(lev::argument));
  const int value = 0x01020304;
  const lev_argument a = lev_value(&value, sizeof value);
  lev::argument b = lev::pack(lev::procedure<void(int)>{1}, value).arguments[0];
  EXPECT_EQ(hex(&a, sizeof a), hex(&b, sizeof b));
  const lev_argument m = lev_strided(LEV_OUT, &value, 2, 3, 1, 4);
  const auto* at = reinterpret_cast<std::uint16_t*>(const_cast<int*>(&value));
  b = lev::pack(lev::procedure<void(lev::out<std::uint16_t>)>{1},
                lev::strided(const_cast<std::uint16_t*>(at), 3, 1, 2))
          .arguments[0];
  EXPECT_EQ(hex(&m, sizeof m), hex(&b, sizeof b));
}

TEST(layout, numbers_of_statuses) {
  static const char* const names[] = {"ok",
                                      "pending",
                                      "would_block",
                                      "timed_out",
                                      "cancelled",
                                      "task_failed",
                                      "dependency_failed",
                                      "bad_procedure",
                                      "bad_argument",
                                      "bad_argument_count",
                                      "too_big",
                                      "bad_address",
                                      "bad_range",
                                      "overlap",
                                      "stale_ticket",
                                      "bad_ticket",
                                      "closed",
                                      "would_deadlock",
                                      "dice_loop",
                                      "unavailable",
                                      "exists",
                                      "bad_config",
                                      "out_of_memory",
                                      "too_deep",
                                      "not_supported",
                                      "bad_filter",
                                      "poison",
                                      "worker_died",
                                      "overran",
                                      "pool_down",
                                      "not_in_task",
                                      "too_many_contexts",
                                      "too_late"};
  for (int i = 0; i < static_cast<int>(sizeof names / sizeof names[0]); ++i) {
    EXPECT_STREQ(lev::status_name(static_cast<lev::status>(i)), names[i]);
    EXPECT_STREQ(lev_status_name(static_cast<lev_status>(i)), names[i]);
  }
  EXPECT_STREQ(lev_status_name(static_cast<lev_status>(256)), "unknown");  // and not "ok"
}

TEST(layout, numbers_of_kinds_and_limits) {
  EXPECT_EQ(static_cast<int>(lev::kind::value), LEV_VALUE);
  EXPECT_EQ(static_cast<int>(lev::kind::result), LEV_RESULT);
  EXPECT_EQ(static_cast<int>(lev::kind::in), LEV_IN);
  EXPECT_EQ(static_cast<int>(lev::kind::out), LEV_OUT);
  EXPECT_EQ(static_cast<int>(lev::kind::inout), LEV_INOUT);
  EXPECT_EQ(static_cast<int>(lev::kind::range), LEV_RANGE);
  EXPECT_EQ(lev::argument_count_max, 18u);
  EXPECT_EQ(lev::value_bytes_max, 16u);
  EXPECT_EQ(lev::options::after_max, 32u);
  EXPECT_EQ(lev::mutexes_per_task_max, 4u);
  EXPECT_EQ(lev::filter_count_max, 8u);
}

TEST(layout, the_version_is_that_of_the_headers) {
  const std::string expected = std::to_string(LEV_VERSION_MAJOR) + "." +
                               std::to_string(LEV_VERSION_MINOR) + "." +
                               std::to_string(LEV_VERSION_PATCH);
  EXPECT_EQ(lev::version(), expected);
  EXPECT_EQ(lev_version(), expected);
}

}  // namespace
