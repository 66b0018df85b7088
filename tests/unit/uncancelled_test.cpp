// Calls in which a thread is not cancelled.
#include "sync/uncancelled.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <optional>

namespace lev::test {
namespace {

int cancel_state() {
  int state = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  pthread_setcancelstate(state, nullptr);
  return state;
}

TEST(uncancelled, leaves_the_thread_as_it_was) {
  for (const int before : {PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE}) {
    pthread_setcancelstate(before, nullptr);
    {
      const uncancelled outer;
      {
        const uncancelled inner;
      }
      EXPECT_EQ(cancel_state(), PTHREAD_CANCEL_DISABLE);
    }
    EXPECT_EQ(cancel_state(), before);
  }
}

// As calls in two contexts of a thread may.
TEST(uncancelled, may_end_in_another_order) {
  std::optional<uncancelled> first(std::in_place), second(std::in_place);
  first.reset();
  EXPECT_EQ(cancel_state(), PTHREAD_CANCEL_DISABLE);
  second.reset();
  EXPECT_EQ(cancel_state(), PTHREAD_CANCEL_ENABLE);
}

}  // namespace
}  // namespace lev::test
