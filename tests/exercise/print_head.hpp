// The first lines of a printed program.
#pragma once

namespace lev::exercise {

constexpr const char* print_head = R"(#include <leveret/coroutine.hpp>
#include <leveret/leveret.hpp>

#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

static lev::runtime* home;
[[maybe_unused]] static lev::mutex_id mutexes[4];
[[maybe_unused]] static std::atomic<bool> flags[16];
[[maybe_unused]] static std::atomic<std::uint64_t> shown[4];
[[maybe_unused]] static thread_local std::vector<lev::ticket> kept;
[[maybe_unused]] static std::thread threads[8];

[[maybe_unused]] static void tell(const char* name, lev::status code) {
  std::printf("%s: %s\n", name, lev::status_name(code));
}
[[maybe_unused]] static void wait(const char* name, lev::ticket& t,
                                  std::int64_t timeout_ns = lev::no_timeout,
                                  lev::wait_policy how = lev::wait_policy::of_runtime) {
  if (t) tell(name, t.wait_outcome(timeout_ns, how).code);
}
template <class Call>
void attempt(const char* name, Call&& call) {
  try {
    call();
  } catch (const lev::error& e) {
    tell(name, e.code());
  }
}
struct tossed {};
struct fire_and_forget {
  struct promise_type {
    fire_and_forget get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
struct shared_board {  // what tasks of worker processes share with the host
  std::atomic<unsigned> attempts[64];
  std::atomic<bool> flags[16];
};
struct board_ref {
  shared_board* to;
};
[[maybe_unused]] static const board_ref board{
    static_cast<shared_board*>(lev::shared_allocate(sizeof(shared_board)))};
[[maybe_unused]] static std::uint64_t* shared_words(std::size_t count) {
  return static_cast<std::uint64_t*>(lev::shared_allocate(8 * count));
}

)";

}  // namespace lev::exercise
