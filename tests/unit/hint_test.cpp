// Tests of the hints of where a task's data lies: which of its arguments are to be prefetched.
#include <gtest/gtest.h>

#include <cstdint>

#include "worker/enqueue.hpp"

namespace lev {
namespace {

constexpr std::uint32_t all_three = 0b111;

// A slot whose arguments lie at 0x1000, 0x2000 and 0x3000, of 16, 32 and 48 bytes.
void fill(slot& s) {
  for (unsigned i = 0; i < near_arguments; ++i) {
    s.arguments[i] = argument{};
    s.arguments[i].what = kind::in;
    s.arguments[i].address = (i + 1) * 0x1000u;
    s.arguments[i].row_bytes = (i + 1) * 16u;
  }
}

void expect_place(const task_hint& h, unsigned i) {
  EXPECT_EQ(h.places[i].address, (i + 1) * 0x1000u);
  EXPECT_EQ(h.places[i].bytes, (i + 1) * 16u);
}

TEST(task_hint, has_the_places_of_all_arguments_that_name_memory) {
  slot s;
  fill(s);
  for (std::uint32_t which = 1; which <= all_three; ++which) {
    task_hint h;
    note_places(s, h, which);
    EXPECT_EQ(h.which, which);
    for (unsigned i = 0; i < near_arguments; ++i) {
      if ((which >> i & 1) != 0) expect_place(h, i);
    }
  }
}

TEST(task_hint, leaves_out_what_is_far_and_no_other) {
  slot s;
  for (std::uint32_t far_ones = 0; far_ones <= all_three; ++far_ones) {
    fill(s);
    for (unsigned i = 0; i < near_arguments; ++i) {
      if ((far_ones >> i & 1) != 0) s.arguments[i].flags = argument_far;
    }
    for (std::uint32_t which = 0; which <= all_three; ++which) {
      task_hint h;
      note_places(s, h, which);
      EXPECT_EQ(h.which, which & ~far_ones) << far_ones;
    }
  }
}

TEST(task_hint, is_empty_for_a_task_without_memory_in_a_place_that_had_one) {
  slot s;
  fill(s);
  task_hint h;
  note_places(s, h, all_three);
  note_places(s, h, 0);
  EXPECT_EQ(h.which, 0u);
}

}  // namespace
}  // namespace lev
