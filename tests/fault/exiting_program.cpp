// A program that calls exit(CODE) at an odd place, with a static runtime: see exit_test.cpp.
//
//   exiting_program MACHINE PLACE CODE
//
//   PLACE  main, body, callback; late: a body, when many runtimes have come and gone before the
//          static one was made; cancel: a callback in the host's call of cancel(), after a task of
//          another static runtime; maker: the function that makes the tasks of a bulk; other: a
//          thread that is not the host, which waits for tasks then; other_idle: one, while the host
//          does nothing; filter, dice, cost (on sim) and death (on processes): what Leveret calls
//          in the middle of its own work; scope, scope_idle: the body of an ordered task of a
//          static scope, while the host waits for it and while it does not; scope_busy: a body
//          beside a static scope that the host uses on and on, also when that was destroyed; own:
//          a body that the host runs, whose runtime is a thread_local object of the host
#include <leveret/leveret.hpp>

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

int code = 0;
std::atomic<int> done{0};

const auto add = lev::define("exiting.add",
                             [](std::uint64_t a, lev::result<std::uint64_t> sum) { sum = a + 1; });
const auto ends = lev::define("exiting.ends", [](int with) { std::exit(with); });
const auto nothing = lev::define("exiting.nothing", [] {});
const auto stays = lev::define("exiting.stays", [] {
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
});

unsigned end_in_dice(const lev::descriptor&, lev::descriptor*, unsigned) {
  std::exit(code);
}
std::uint64_t end_in_cost(const lev::descriptor&) {
  std::exit(code);
}
const auto cut = lev::define("exiting.cut", [](lev::range) {}, &end_in_dice);
const auto priced = lev::define("exiting.priced", [] {}, nullptr, &end_in_cost);
const auto dies = lev::define("exiting.dies", [] { raise(SIGKILL); });

lev::runtime& home(const char* machine, bool ends_at_death) {
  lev::config c;
  if (ends_at_death) c.processes.on_death.call = [](void*, int, int) { std::exit(code); };
  c.machine = machine;
  c.workers = 2;
  static lev::runtime r(c);
  return r;
}

void add_once(lev::runtime& r) {
  std::uint64_t sum = 0;
  r.submit(add, std::uint64_t{1}, sum).wait();
  ++done;
}

void open_and_close_many(const char* machine) {
  lev::config c;
  c.machine = machine;
  c.workers = 1;
  for (int i = 0; i < 100; ++i) {
    lev::runtime r(c);
    add_once(r);
  }
}

// On `processes` a call of the host tells of what has ended meanwhile, sooner or later.
[[noreturn]] void exit_in_cancel(lev::runtime& r) {
  static lev::runtime elsewhere;
  thread_local bool is_in_cancel = false;
  const auto end = [](void*) {
    if (!is_in_cancel) return;
    add_once(elsewhere);
    std::exit(code);
  };
  for (;;) {
    std::vector<lev::ticket> all(200);
    for (lev::ticket& t : all) {
      t = r.submit(nothing);
      t.then(end, nullptr);
    }
    is_in_cancel = true;
    for (lev::ticket& t : all) t.cancel();
    is_in_cancel = false;
    for (lev::ticket& t : all) t.wait_outcome();
  }
}

[[noreturn]] void exit_by_another(lev::runtime& r, bool is_idle) {
  std::thread([] {
    while (done < 100) std::this_thread::yield();
    std::exit(code);
  }).detach();
  while (done < 100) add_once(r);
  // No task ends with the program, nor is one refused: a host that waits for them stays in there.
  while (!is_idle) r.submit(stays).wait_outcome();
  for (;;) pause();
}

// The scope is younger than the runtime's first call.
[[noreturn]] void exit_in_scope(lev::runtime& r, bool is_idle) {
  static lev::ordered scope(r);
  scope.submit(ends, code);
  if (!is_idle) scope.wait();
  if (r.machine() == std::string("sim")) r.wait_for_completion();  // nobody else runs the task
  for (;;) pause();
}

// The program's last moments are long enough for the host to come back to the scope.
struct slow_end {
  std::atomic<int> calls{0};
  ~slow_end() {
    for (const int before = calls; calls < before + 100;) std::this_thread::yield();
  }
};

[[noreturn]] void exit_beside_scope(lev::runtime& r) {
  static slow_end end;
  static lev::ordered scope(r);
  scope.submit(stays);
  scope.wait();
  r.post(ends, code);
  for (;; ++end.calls) {
    scope.submit(stays);
    (void)scope.wait_outcome(0);
  }
}

// The only worker is kept away.
void exit_in_own(const char* machine) {
  static std::atomic<bool> is_held{false};
  static const auto holds = lev::define("exiting.holds", [] {
    is_held = true;
    for (;;) pause();
  });
  lev::config c;
  c.machine = machine;
  c.workers = 1;
  thread_local lev::runtime own(c);
  own.post(holds);
  while (!is_held) std::this_thread::yield();
  own.submit(ends, code).wait();
}

void exit_in_hook(lev::runtime& r, const std::string& place) {
  const lev::filter ends_all{[](lev::waiting_task*, std::size_t, void*) { std::exit(code); },
                             nullptr};
  if (place == "filter") r.set_filters(&ends_all, 1);
  if (place == "filter") r.submit(stays).wait();
  if (place == "dice") r.submit(cut, lev::range{0, 1'000}).wait();
  if (place == "cost") r.submit(priced).wait();
  if (place == "death") r.submit(dies).wait_outcome();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 99;
  alarm(60);
  const std::string place = arguments[2];
  code = std::atoi(arguments[3]);
  if (place == "late") open_and_close_many(arguments[1]);
  lev::runtime& r = home(arguments[1], place == "death");
  add_once(r);
  if (place == "main") std::exit(code);
  if (place == "body" || place == "late") r.submit(ends, code).wait();
  if (place == "cancel") exit_in_cancel(r);
  if (place == "maker") {
    r.submit_bulk(9, [](std::size_t i, lev::descriptor& d) {
      if (i == 5) std::exit(code);
      d = lev::pack(stays);
    });
  }
  if (place == "callback") {
    static std::uint64_t sum = 0;
    lev::ticket t = r.submit(add, std::uint64_t{1}, sum);
    t.then([](void*) { std::exit(code); }, nullptr);
    t.wait();
    for (;;) pause();
  }
  if (place == "own") exit_in_own(arguments[1]);
  exit_in_hook(r, place);
  if (place == "scope" || place == "scope_idle") exit_in_scope(r, place == "scope_idle");
  if (place == "scope_busy") exit_beside_scope(r);
  if (place == "other" || place == "other_idle") exit_by_another(r, place == "other_idle");
  return 98;
}
