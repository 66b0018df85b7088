// Tests of mailbox by one thread: leases, letters, and the number of the last letter, which wraps
// after 65,536.
#include <gtest/gtest.h>

#include <cstdint>

#include "queue/mailbox.hpp"

namespace lev {
namespace {

struct note {
  std::uint64_t text;
};

TEST(mailbox, a_letter_is_received_once) {
  mailbox<note> box;
  std::uint32_t seen = 0;
  EXPECT_EQ(box.try_receive(&seen), nullptr);
  ASSERT_TRUE(box.try_lease(3));
  EXPECT_TRUE(box.letter_announced(seen));
  EXPECT_FALSE(box.has_letter(seen));
  box.deliver({42});
  EXPECT_TRUE(box.has_letter(seen));
  const note* got = box.try_receive(&seen);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->text, 42u);
  EXPECT_EQ(box.try_receive(&seen), nullptr);
  EXPECT_FALSE(box.letter_announced(seen));
  box.release_lease();
}

TEST(mailbox, is_leased_to_one_holder_until_released) {
  mailbox<note> box;
  ASSERT_TRUE(box.try_lease(1));
  EXPECT_FALSE(box.try_lease(2));
  box.deliver({1});
  EXPECT_FALSE(box.try_lease(2));
  box.release_lease();
  EXPECT_TRUE(box.try_lease(2));
}

TEST(mailbox, a_retracted_lease_leaves_no_announcement) {
  mailbox<note> box;
  std::uint32_t seen = 0;
  ASSERT_TRUE(box.try_lease(1));
  box.retract();
  EXPECT_FALSE(box.letter_announced(seen));
  EXPECT_EQ(box.try_receive(&seen), nullptr);
  ASSERT_TRUE(box.try_lease(2));
  box.deliver({7});
  const note* got = box.try_receive(&seen);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->text, 7u);
}

TEST(mailbox, numbers_of_letters_wrap) {
  mailbox<note> box;
  std::uint32_t seen = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    ASSERT_FALSE(box.letter_announced(seen)) << i;
    ASSERT_TRUE(box.try_lease(1 + static_cast<std::uint32_t>(i % 0xffff)));
    if (i % 7 == 0) {
      box.retract();
      continue;
    }
    ASSERT_TRUE(box.letter_announced(seen));
    box.deliver({i});
    const note* got = box.try_receive(&seen);
    ASSERT_NE(got, nullptr) << i;
    ASSERT_EQ(got->text, i);
    box.release_lease();
  }
}

}  // namespace
}  // namespace lev
