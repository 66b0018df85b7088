// Tests of lev_interleave, the C API of interleave().
#include <gtest/gtest.h>
#include <leveret/leveret.h>

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct cells {
  std::vector<int> runs;
  std::size_t with_strand = 0;
};

void count_item(size_t i, lev_strand* strand, void* argument) {
  auto& all = *static_cast<cells*>(argument);
  const void* fetched = lev_strand_fetch(strand, &all.runs[i]);
  lev_strand_yield(strand);
  ++*const_cast<int*>(static_cast<const int*>(fetched));
  all.with_strand += strand != nullptr;
}

TEST(interleave_c, runs_every_item_once) {
  for (const unsigned n : {0u, 1u, 2u, 16u, 64u}) {
    cells all{std::vector<int>(1000, 0)};
    ASSERT_EQ(lev_interleave(n, 1000, count_item, &all), LEV_OK);
    EXPECT_EQ(all.runs, std::vector<int>(1000, 1)) << "n = " << n;
    if (n != LEV_STRANDS_AUTOMATIC) {
      EXPECT_EQ(all.with_strand, n == 1 ? 0u : 1000u);
    }
  }
}

TEST(interleave_c, no_items) {
  EXPECT_EQ(lev_interleave(16, 0, count_item, nullptr), LEV_OK);
}

void note_turn(size_t i, lev_strand* strand, void* argument) {
  auto& seen = *static_cast<std::string*>(argument);
  seen += static_cast<char>('a' + i);
  lev_strand_yield(strand);
  seen += static_cast<char>('a' + i);
}

TEST(interleave_c, items_take_turns) {
  std::string seen;
  ASSERT_EQ(lev_interleave(3, 3, note_turn, &seen), LEV_OK);
  EXPECT_EQ(seen, "abcabc");
}

TEST(interleave_c, bad_input) {
  EXPECT_EQ(lev_interleave(16, 1, nullptr, nullptr), LEV_BAD_ARGUMENT);
  EXPECT_NE(std::string(lev_last_message()).find("item"), std::string::npos);
  cells all{std::vector<int>(1, 0)};
  EXPECT_EQ(lev_interleave(65, 1, count_item, &all), LEV_TOO_BIG);
  EXPECT_EQ(all.runs[0], 0);
}

void fail_item(size_t i, lev_strand* strand, void* is_short) {
  lev_strand_yield(strand);
  if (i == 3 && is_short != nullptr) throw std::bad_alloc();
  if (i == 3) throw std::runtime_error("item 3");
}

TEST(interleave_c, what_an_item_throws_is_a_status) {
  for (const unsigned n : {0u, 1u, 4u}) {
    EXPECT_EQ(lev_interleave(n, 10, fail_item, nullptr), LEV_TASK_FAILED);
    EXPECT_STREQ(lev_last_message(), "item 3");
    // LEV_OUT_OF_MEMORY would say that no item was started.
    char is_short = 0;
    EXPECT_EQ(lev_interleave(n, 10, fail_item, &is_short), LEV_TASK_FAILED);
  }
}

}  // namespace
