// Tests of what is said when a context's stack is full, and when something else faults.
#include <gtest/gtest.h>
#include <leveret/interleave.hpp>
#include <leveret/leveret.hpp>
#include <leveret/this_task.hpp>

#include <csignal>
#include <cstddef>
#include <thread>

namespace lev {
namespace {

// The sanitizers handle SIGSEGV themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

int fill(int depth) {
  volatile char room[4096] = {};
  room[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : fill(depth - 1) + room[0];
}

volatile int deep = 1 << 20;
int* volatile nowhere = nullptr;

const auto ends_by_fault = testing::KilledBySignal(SIGSEGV);

// On a thread that has no stacks yet.
template <class F>
void run_alone(F&& f) {
  std::thread(f).join();
}

TEST(overflow_death_test, of_an_item_is_told) {
  EXPECT_EXIT(run_alone([] { interleave(4, 4, [](std::size_t, strand&) { fill(deep); }); }),
              ends_by_fault, "a stack is full.*256 KiB.*cell::options::stack_bytes");
}

void fill_task(result<int> out) {
  task_context task = this_task();
  auto thread = task.spawn([] { fill(deep); });
  thread.join();
  out = 1;
}

TEST(overflow_death_test, of_a_task_is_told) {
  const auto overflowing = [] {
    config c;
    c.workers = 1;
    c.context_stack_bytes = 64 << 10;
    runtime r(c);
    int out = 0;
    r.submit(define("overflow.fill", fill_task), out).wait();
  };
  EXPECT_EXIT(run_alone(overflowing), ends_by_fault, "a stack is full.*context_stack_bytes");
}

TEST(overflow_death_test, other_faults_end_the_program_as_ever) {
  EXPECT_EXIT(run_alone([] { interleave(4, 4, [](std::size_t, strand&) { *nowhere = 1; }); }),
              ends_by_fault, "^$");
}

TEST(overflow_death_test, a_signal_that_is_sent_ends_the_program_as_ever) {
  const auto send = [] {
    interleave(4, 4, [](std::size_t, strand&) {});
    std::raise(SIGSEGV);
    std::_Exit(0);
  };
  EXPECT_EXIT(send(), ends_by_fault, "^$");
}

void own_handler(int) {
  std::_Exit(7);
}

TEST(overflow_death_test, a_handler_of_the_program_is_left_in_place) {
  const auto with_handler = [] {
    std::signal(SIGSEGV, own_handler);
    std::thread([] { interleave(4, 4, [](std::size_t, strand&) { *nowhere = 1; }); }).join();
  };
  EXPECT_EXIT(with_handler(), testing::ExitedWithCode(7), "");
}

#endif

}  // namespace
}  // namespace lev
