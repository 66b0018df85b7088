// Two ways not to wait: a callback when a task completes, and a coroutine that goes on then.
#include <leveret/coroutine.hpp>
#include <leveret/leveret.hpp>

#include <cstdio>
#include <latch>

void half(int whole, lev::result<int> part) {
  part = whole / 2;
}
void nothing() {}
LEV_PROCEDURE(half);
LEV_PROCEDURE(nothing);

// The smallest coroutine that Leveret can resume: it starts at once and destroys itself at its end.
struct fire_and_forget {
  struct promise_type {
    fire_and_forget get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

fire_and_forget quarter(lev::runtime& runtime, int& number, std::latch& done) {
  co_await lev::when_done(runtime.submit<half>(number, number));
  co_await lev::when_done(runtime.submit<half>(number, number));
  done.count_down();
}

int main() {
  int number = 100;
  std::latch done(2);
  lev::runtime runtime;
  lev::ticket first = runtime.submit<nothing>();
  first.then([](void* latch) { static_cast<std::latch*>(latch)->count_down(); }, &done);
  quarter(runtime, number, done);
  done.wait();
  std::printf("a quarter of 100 is %d\n", number);
  return number == 25 ? 0 : 1;
}
