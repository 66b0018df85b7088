// All headers in a program without exceptions and without type information: what it cannot catch it
// does not throw, and the templates that it uses compile.
#include "api/no_exceptions.h"

#include <mpi.h>

#include <leveret/leveret.h>
#include <leveret/cell.hpp>
#include <leveret/coroutine.hpp>
#include <leveret/interleave_flat.hpp>
#include <leveret/leveret.hpp>
#include <leveret/look.hpp>
#include <leveret/mpi.hpp>
#include <leveret/virtual_time.hpp>

namespace {

void add(lev::in<int> x, lev::result<int> sum) {
  int all = 0;
  for (const int each : x) all += each;
  sum = all;
}

struct fire_and_forget {
  struct promise_type {
    fire_and_forget get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};

fire_and_forget add_later(lev::runtime& r, lev::procedure<void(lev::in<int>, lev::result<int>)> p,
                          lev::shared_array<int>& x, int& sum) {
  co_await lev::when_done(r.submit(p, x, sum));
}

}  // namespace

int lev_sum_without_exceptions() {
  const auto procedure = lev::define("no_exceptions.add", add);
  lev::shared_array<int> x(10);
  int sum = 0;
  {
    lev::runtime r;
    lev::interleave(2, x.size(), [&](std::size_t i, auto& s) { *s.fetch(&x[i]) += int(i); });
    lev::interleave_flat(2, 1, [](lev::items& all) -> lev::flat {
      for (const std::size_t i : all) co_await lev::fetch(&i);
    });
    lev::ordered tasks(r);
    tasks.submit(procedure, x, sum);
    tasks.wait();
    add_later(r, procedure, x, sum);
    r.wait_for_completion();
  }
  return sum;
}
