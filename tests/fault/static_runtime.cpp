// A program with runtimes at namespace scope, one on `processes`: constructed before main(), made
// again in the zygote, used by static objects after main(). Ends with 0, or says what was wrong.
#include <leveret/leveret.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void expect(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "static_runtime: %s\n", what);
  _exit(3);
}

lev::config settings(const char* machine) {
  lev::config c;
  c.machine = machine;
  c.workers = 2;
  return c;
}

const auto add = lev::define("static.add", [](int a, int b, lev::result<int> sum) { sum = a + b; });

lev::runtime crash_proof(settings("processes"));
lev::runtime plain(settings("threads"));

lev::status status_in_worker(lev::runtime& r) {
  static int sum = 0;
  try {
    r.post(add, 1, 2, sum);
  } catch (const lev::error& e) {
    return e.code();
  }
  return lev::status::ok;
}

// A worker's copies of the runtimes are asked, and one that it opens itself.
const auto ask = lev::define("static.ask", [](lev::out<int> said) {
  said[0] = static_cast<int>(status_in_worker(crash_proof));
  said[1] = static_cast<int>(status_in_worker(plain));
  said[2] = static_cast<int>(crash_proof.wait_for_completion().code);
  said[3] = static_cast<int>(crash_proof.count().submitted + plain.count_worker(0).completed +
                             crash_proof.workers());
  try {
    lev::runtime nested(settings("processes"));
    int sum = 0;
    nested.submit(add, 2, 2, sum).wait();
    said[4] = sum == 4 ? 0 : -1;
  } catch (const lev::error& e) {
    said[4] = static_cast<int>(e.code());
  }
  lev::runtime own(settings("threads"));
  int sum = 0;
  own.submit(add, 1, 2, sum).wait();
  said[5] = sum;
});

int sum_of(lev::runtime& r, int a, int b) {
  int sum = 0;
  r.submit(add, a, b, sum).wait();
  return sum;
}

// Constructed before all other static objects, Leveret's too if there were any, and destroyed after
// them: it works on each machine that a process may open there. It throws nothing: a fully static
// program cannot do so yet.
struct outermost {
  outermost() { work("before all static objects"); }
  ~outermost() { work("after all static objects"); }
  static void work(const char* when) {
    const auto twice = lev::define("static.twice", [](int a, lev::result<int> b) { b = 2 * a; });
    for (const char* machine : {"threads", "sim"}) {
      lev::runtime r(settings(machine));
      int four = 0;
      lev::refusal why;
      lev::ticket t = r.try_submit(lev::pack(twice, 2, four), nullptr, &why);
      if (why.code == lev::status::closed) continue;  // in the zygote
      expect(t.wait_outcome().code == lev::status::ok && four == 4, when);
    }
  }
};
[[gnu::init_priority(101)]] const outermost all_around;

// Destroyed before the runtimes: what it does then is like main().
struct last_words {
  std::vector<lev::ticket> kept;
  int sums[2] = {};
  ~last_words() {
    expect(sum_of(plain, 1, 2) == 3 && sum_of(crash_proof, 3, 4) == 7, "after main()");
    expect(sum_of(plain, 5, 6) == 11, "after main(), again");
  }
} last;

thread_local std::vector<lev::ticket> of_this_thread;

}  // namespace

int main() {
  alarm(60);
  expect(sum_of(crash_proof, 40, 2) == 42, "processes");
  expect(sum_of(plain, 40, 2) == 42, "threads");
  int said[6] = {};
  crash_proof.submit(ask, said).wait();
  const int closed = static_cast<int>(lev::status::closed);
  expect(said[0] == closed && said[1] == closed && said[2] == closed,
         "a static runtime in a worker");
  expect(said[3] == 2, "what a static runtime in a worker counts");
  expect(said[4] == 0, "worker processes of a worker's own");
  expect(said[5] == 3, "threads of a worker");
  of_this_thread.push_back(plain.submit(add, 1, 1, last.sums[0]));
  last.kept.push_back(crash_proof.submit(add, 1, 1, last.sums[1]));
  expect(crash_proof.count().deaths == 0, "deaths");
  std::puts("main ends");
}
