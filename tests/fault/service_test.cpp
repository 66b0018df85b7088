// Callbacks of tasks in worker processes that wait in other runtimes. Whichever thread tends the
// processes calls them: the service, or one that waits, perhaps in a task of another runtime. What
// only that thread does must go on meanwhile.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>
#include <leveret/this_task.hpp>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using service_test = machine_test;
LEV_ON_PROCESSES(service_test);

const auto nothing = define("service.nothing", [] {});
const auto crash = define("service.crash", [] { raise(SIGSEGV); });
const auto await_open = define("service.await_open", [](ref<std::atomic<int>> is_open) {
  while (*is_open.to == 0) std::this_thread::yield();
});

// Runs a function on the thread that completes a task of `home`: its service, as no other thread
// is in that runtime by then.
class on_service {
 public:
  on_service(runtime& home, std::function<void()> what) : what_(std::move(what)) {
    ticket t = home.submit(await_open, ref{is_open_.address()});
    EXPECT_EQ(t.then(&call, this), status::ok);
  }
  void begin() { is_open_ = 1; }
  void await() const {
    while (!is_over_) std::this_thread::yield();
  }

 private:
  static void call(void* self) {
    auto* s = static_cast<on_service*>(self);
    s->what_();
    s->is_over_ = true;
  }
  counter is_open_;
  std::function<void()> what_;
  std::atomic<bool> is_over_{false};
};

void expect_poison(runtime& home) {
  ticket t = home.submit(options().max_attempts(1), crash);
  EXPECT_EQ(t.wait_outcome().code, status::poison);
}
const auto waits_for_a_death =
    define("service.waits_for_a_death", [](ref<runtime> home) { expect_poison(*home.to); });

config one_thread(wait_policy how = wait_policy::help) {
  config c;
  c.workers = 1;
  c.wait = how;
  return c;
}

// Whether the service would run the task itself or leave it to the other runtime's worker.
LEV_TEST(service_test, hears_of_deaths_while_its_callback_waits_elsewhere) {
  for (const wait_policy how : {wait_policy::help, wait_policy::park, wait_policy::spin}) {
    runtime& home = open();
    runtime elsewhere(one_thread(how));
    on_service callback(home, [&] { elsewhere.submit(waits_for_a_death, ref{&home}).wait(); });
    callback.begin();
    callback.await();
    close();
  }
}

LEV_TEST(service_test, hears_of_deaths_while_its_callback_is_in_a_loop_elsewhere) {
  runtime& home = open();
  runtime elsewhere(one_thread());
  std::atomic<int> ran{0};
  on_service callback(home, [&] {
    elsewhere.parallel_for(
        {0, 3},
        [&](range r) {
          for (; r.begin != r.end; ++r.begin, ++ran) expect_poison(home);
        },
        1);
  });
  callback.begin();
  callback.await();
  EXPECT_EQ(ran, 3);
}

// It asks for more tickets than there are, and those that it holds are all.
LEV_TEST(service_test, is_told_when_it_would_wait_for_itself_elsewhere) {
  runtime& home = open();
  config c = one_thread();
  c.tickets = 2;
  runtime elsewhere(c);
  status last = status::ok;
  on_service callback(home, [&] {
    std::vector<ticket> held;
    try {
      while (held.size() < 1000) held.push_back(elsewhere.submit(nothing));
    } catch (const error& e) {
      last = e.code();
    }
  });
  callback.begin();
  callback.await();
  EXPECT_EQ(last, status::would_block);
}

LEV_TEST(service_test, two_wait_for_deaths_in_each_others_runtime) {
  runtime& home = open();
  runtime other(settings());
  std::atomic<int> arrived{0};
  const auto cross = [&](runtime& there) {
    ++arrived;
    while (arrived != 2) std::this_thread::yield();
    expect_poison(there);
  };
  on_service first(home, [&] { cross(other); });
  on_service second(other, [&] { cross(home); });
  first.begin();
  second.begin();
  first.await();
  second.await();
}

// Tasks on the only worker of a runtime of threads, whose waits and submits may call callbacks of
// worker processes.
struct homes {
  runtime* remote;
  runtime* near;
  runtime* far;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
};
const auto quick = define("service.quick", [] {});

void count_end(void* h) {
  ++static_cast<homes*>(h)->ended;
}
ticket begin_quick(homes& h, void (*callback)(void*)) {
  ticket t = h.remote->submit(quick);
  ++h.begun;
  EXPECT_EQ(t.then(callback, &h), status::ok);
  return t;
}
void expect_all_to_end(homes& h) {
  while (h.ended != h.begun) std::this_thread::yield();
}

const auto begins_more = define("service.begins_more", [](ref<homes> h) {
  for (int i = 0; i < 20; ++i) {
    ticket t = begin_quick(*h.to, &count_end);
    if (i % 4 == 0) this_task().yield();
    if (i % 2 == 0) t.wait();
  }
});
const auto begins_some = define("service.begins_some", [](ref<homes> h) {
  for (int i = 0; i < 20; ++i) {
    ticket t = begin_quick(*h.to, [](void* all) {
      homes& there = *static_cast<homes*>(all);
      there.near->submit(begins_more, ref{&there}).wait();
      count_end(all);
    });
    if (i % 4 == 0) this_task().yield();
  }
});

// A callback that waits leaves its stack, in the middle of a call into the processes' runtime, to
// a task that calls into that one, too.
LEV_TEST(service_test, callbacks_on_several_stacks_of_a_thread_are_kept_apart) {
  runtime& remote = open();
  runtime near(one_thread());
  homes h{&remote, &near, nullptr};
  ticket all[4];
  for (ticket& t : all) t = near.submit(begins_some, ref{&h});
  EXPECT_EQ(wait_all(all, 4).code, status::ok);
  expect_all_to_end(h);
}

const auto waits_near =
    define("service.waits_near", [](ref<homes> h) { h.to->near->submit(nothing).wait(); });
const auto waits_for_its_callback = define("service.waits_for_its_callback", [](ref<homes> h) {
  ticket t = begin_quick(*h.to, [](void* all) {
    homes& there = *static_cast<homes*>(all);
    there.far->submit(waits_near, ref{&there}).wait();
    count_end(all);
  });
  t.wait(wait_policy::spin);
});

// The only worker of one runtime is needed while it waits in a callback for a task of a third one.
LEV_TEST(service_test, a_worker_goes_on_while_a_callback_in_its_wait_waits_elsewhere) {
  runtime& remote = open();
  runtime near(one_thread());
  runtime far(one_thread());
  homes h{&remote, &near, &far};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(near.submit(waits_for_its_callback, ref{&h}).wait_outcome().code, status::ok);
    expect_all_to_end(h);
  }
}

}  // namespace
}  // namespace lev::test
