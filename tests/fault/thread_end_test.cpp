// Threads that end: what they still hold is released by a thread that has its place in the runtime.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/leaks.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

const auto sums = define("thread_end.sums", [](std::int64_t a, std::int64_t b,
                                               result<std::int64_t> sum) { sum = a + b; });

config one_host(const char* machine) {
  config c;
  c.machine = machine;
  c.workers = 1;
  c.host_threads = 1;
  c.tickets = 64;
  return c;
}

status status_of_call(runtime& r) {
  try {
    std::int64_t sum = 0;
    r.submit(sums, std::int64_t{40}, std::int64_t{2}, sum).wait();
    return sum == 42 ? status::ok : status::task_failed;
  } catch (const error& e) {
    return e.code();
  }
}

status status_elsewhere(runtime& r) {
  status s = status::pending;
  std::thread([&] { s = status_of_call(r); }).join();
  return s;
}

// Made before its thread's first call, so destroyed late.
struct late {
  runtime* home = nullptr;
  std::vector<ticket> tickets;
  std::int64_t sum = 0;
  status* elsewhere = nullptr;
  status* here = nullptr;
  ~late() {
    if (home == nullptr) return;
    *elsewhere = status_elsewhere(*home);
    tickets.clear();
    *here = status_of_call(*home);
  }
};
thread_local late of_thread;

class thread_end : public testing::TestWithParam<const char*> {};
#if defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(on, thread_end, testing::Values("threads"));
#else
INSTANTIATE_TEST_SUITE_P(on, thread_end, testing::Values("threads", "processes"));
#endif

TEST_P(thread_end, comes_after_its_objects) {
  start_alarm();
  runtime r(one_host(GetParam()));
  status elsewhere = status::pending;
  status here = status::pending;
  std::thread([&] {
    of_thread.elsewhere = &elsewhere;
    of_thread.here = &here;
    of_thread.home = &r;
    of_thread.tickets.push_back(r.submit(sums, std::int64_t{1}, std::int64_t{2}, of_thread.sum));
    while (!of_thread.tickets.back().done()) std::this_thread::yield();
  }).join();
  EXPECT_EQ(elsewhere, status::would_block) << "its place was given away before its tickets were";
  EXPECT_EQ(here, status::ok);
  EXPECT_EQ(status_elsewhere(r), status::ok) << "its place was not given back";
  ASSERT_EQ(r.close(), status::ok);
  expect_nothing_leaked(r);
}

// A key that was made before the first runtime may be destroyed after Leveret's.
TEST_P(thread_end, of_a_key_that_calls_in_gives_its_place_back_again) {
  start_alarm();
  static runtime* home = nullptr;
  static int calls = 0;
  auto r = std::make_unique<runtime>(one_host(GetParam()));
  home = r.get();
  calls = 0;
  // Calls in at its first and its second turn.
  pthread_key_t key = 0;
  static pthread_key_t same_key;
  ASSERT_EQ(pthread_key_create(&key,
                               [](void*) {
                                 EXPECT_EQ(status_of_call(*home), status::ok);
                                 if (++calls < 2) pthread_setspecific(same_key, home);
                               }),
            0);
  same_key = key;
  std::thread([&] { pthread_setspecific(key, home); }).join();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(status_elsewhere(*r), status::ok) << "its place was not given back";
  pthread_key_delete(key);
  ASSERT_EQ(r->close(), status::ok);
  expect_nothing_leaked(*r);
}

TEST_P(thread_end, may_come_while_runtimes_close) {
  start_alarm();
  for (int i = 0; i < 50; ++i) {
    auto r = std::make_unique<runtime>(one_host("threads"));
    auto other = std::make_unique<runtime>(one_host("threads"));
    std::thread a([&] { EXPECT_EQ(status_of_call(*r), status::ok); });
    std::thread b([&] { EXPECT_EQ(status_of_call(*other), status::ok); });
    if (i % 2 == 0) a.join();
    b.join();
    other.reset();
    if (i % 2 != 0) a.join();
    r.reset();
  }
}

TEST(thread_end, of_one_that_opened_a_runtime_leaves_it_to_others) {
  start_alarm();
  std::unique_ptr<runtime> r;
  std::thread([&] {
    r = std::make_unique<runtime>(one_host("threads"));
    EXPECT_EQ(status_of_call(*r), status::ok);
  }).join();
  EXPECT_EQ(status_of_call(*r), status::ok);
  std::thread([&] { r.reset(); }).join();
}

// A plugin with a Leveret of its own is unloaded while a thread lives that has called it.
TEST(thread_end, may_come_after_leveret_was_unloaded) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what lives until the process ends is out of reach once the library is gone";
#endif
  start_alarm();
  void* plugin = dlopen(THREAD_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto call = reinterpret_cast<int (*)()>(dlsym(plugin, "use_leveret"));
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call(), 42);
  std::thread([&] {
    EXPECT_EQ(call(), 42);
    EXPECT_EQ(dlclose(plugin), 0);
    void* still = dlopen(THREAD_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    std::printf("the plugin is %s\n", still == nullptr ? "unloaded" : "still there");
    if (still != nullptr) dlclose(still);
  }).join();
}

// The calls of a thread that is to be cancelled at its next point of cancellation. None has one.
struct last_calls {
  const char* machine;
  runtime* home;
  bool all_are_right = false;
};
void* make_last_calls(void* of) {
  auto& calls = *static_cast<last_calls*>(of);
  pthread_cancel(pthread_self());
  bool is_right = status_of_call(*calls.home) == status::ok;
  {
    config c = one_host(calls.machine);
    c.trace_events = 64;
    runtime own(c);
    is_right &= status_of_call(own) == status::ok;
    is_right &= own.write_trace("/dev/null") == status::ok;
    is_right &= own.close() == status::ok;
  }
  for (const std::size_t size : {std::size_t{1}, std::size_t{20} << 20})
    is_right &= shared_array<char>(size)[size - 1] == 0;
  is_right &= machine_unavailable(calls.machine) == nullptr && available_cores() != 0;
  is_right &= calls.home->wait_for_completion().code == status::ok;
  calls.all_are_right = is_right;
  pthread_testcancel();
  return nullptr;
}

TEST_P(thread_end, by_cancellation_comes_after_its_calls) {
  start_alarm();
  config c = one_host(GetParam());
  c.host_threads = 2;
  runtime r(c);
  ASSERT_EQ(status_of_call(r), status::ok);
  last_calls calls{GetParam(), &r};
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, &make_last_calls, &calls), 0);
  void* end = nullptr;
  ASSERT_EQ(pthread_join(thread, &end), 0);
  EXPECT_EQ(end, PTHREAD_CANCELED);
  EXPECT_TRUE(calls.all_are_right);
  EXPECT_EQ(status_of_call(r), status::ok);
}

// A thread that helps is in a task that closes a runtime, in one of its contexts. It is cancelled
// in a task in another one, which is put off as well.
struct closing_beside {
  std::unique_ptr<runtime> home, closed;
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_end{false};
  bool went_on = false;
  bool has_returned = false;
};
const auto holds_both = define("thread_end.holds_both", [](ref<closing_beside> of) {
  closing_beside* const all = of.to;
  all->is_held = true;
  while (!all->may_end) std::this_thread::yield();
});
const auto closes_one = define("thread_end.closes_one", [](ref<closing_beside> of) {
  closing_beside* const all = of.to;
  EXPECT_EQ(all->closed->close(), status::ok);
});
const auto cancels_thread = define("thread_end.cancels_thread", [](ref<closing_beside> of) {
  closing_beside* const all = of.to;
  pthread_cancel(pthread_self());
  pthread_testcancel();
  all->went_on = true;
  all->may_end = true;
});
void* help_beside(void* of) {
  auto& all = *static_cast<closing_beside*>(of);
  runtime& home = *all.home;
  std::vector<ticket> tickets;
  tickets.push_back(home.submit(holds_both, ref{&all}));
  while (!all.is_held) std::this_thread::yield();
  all.closed->post(holds_both, ref{&all});
  tickets.push_back(home.submit(closes_one, ref{&all}));
  tickets.push_back(home.submit(cancels_thread, ref{&all}));
  EXPECT_EQ(wait_all(tickets).code, status::ok);
  all.has_returned = true;
  pthread_testcancel();
  return nullptr;
}

TEST(thread_end, by_cancellation_waits_for_a_runtime_that_is_closed_beside) {
  start_alarm();
  closing_beside all;
  config c = one_host("threads");
  c.host_threads = 2;
  all.home = std::make_unique<runtime>(c);
  all.closed = std::make_unique<runtime>(c);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, &help_beside, &all), 0);
  void* end = nullptr;
  ASSERT_EQ(pthread_join(thread, &end), 0);
  EXPECT_TRUE(all.went_on && all.has_returned);
  EXPECT_EQ(end, PTHREAD_CANCELED);
}

}  // namespace
}  // namespace lev::test
