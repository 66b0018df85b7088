// The word of what a participant has to see to: its comparisons, whatever lay there before.
#include "worker/asides.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <new>

namespace lev {
namespace {

TEST(asides, are_none_in_memory_that_was_used_before) {
  alignas(asides) unsigned char place[sizeof(asides)];
  std::memset(place, 0xff, sizeof place);
  const asides& fresh = *new (place) asides;
  EXPECT_FALSE(is_any(fresh) || is_turn_due(fresh) || is_any_due(fresh));
}

struct concern {
  void (*set)(asides&);
  bool turn;   // is_turn_due()
  bool above;  // is_any_due()
};

TEST(asides, concern_the_next_task_or_one_on_top) {
  constexpr concern concerns[] = {
      {[](asides& a) { a.ended_pieces = 1; }, false, true},
      {[](asides& a) { a.ended_pieces = 1u << 31; }, false, true},
      {[](asides& a) { a.is_mailbox_open = true; }, true, true},
      {[](asides& a) { a.was_last_poller = true; }, true, true},
      {[](asides& a) { a.other_contexts = 1; }, true, false},
      {[](asides& a) { a.pieces_in_a_row = 255; }, true, false},
      {[](asides& a) { a.has_failing = true; }, false, true},
      {[](asides& a) { a.has_own_mode = true; }, false, true},
  };
  for (const concern& c : concerns) {
    asides a;
    c.set(a);
    EXPECT_TRUE(is_any(a));
    EXPECT_EQ(is_turn_due(a), c.turn);
    EXPECT_EQ(is_any_due(a), c.above);
  }
}

}  // namespace
}  // namespace lev
