// Steps that are about other runtimes, threads that come and go, and processes that are forked. See
// interpret.hpp.
#include "exercise/interpret.hpp"
#include "exercise/sound.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <string>
#include <thread>

namespace lev::exercise {

namespace {

struct board_place {
  board* shared;
};
const auto tick = define("exercise.tick", [](board_place at) {
  if (at.shared->is_confined == 0) at.shared->ticks.fetch_add(1);
});

// Where worker processes kill themselves each task may be the one.
bool may_be_killed(const world& w, status code) noexcept {
  return code == status::poison && w.plan.config.chaos != 0;
}

// One task from this thread to its end.
void visit_once(world& w, runtime& r) {
  const bool is_home = &r == w.home.get();
  ticket t;
  w.ticks_expected.fetch_add(1);
  try {
    t = r.submit(tick, board_place{w.shared});
  } catch (const error& e) {
    w.ticks_expected.fetch_sub(1);
    const bool is_full = e.code() == status::would_block && is_home && may_be_full(w);
    const bool is_closed = e.code() == status::closed && is_home && w.is_closing.load();
    if (!is_full && !is_closed)
      w.blame(std::string("a visitor's task was refused with ") + status_name(e.code()));
    return;
  }
  const status code = t.wait_outcome().code;
  const bool is_cancelled = code == status::cancelled && is_home && w.is_cancelling.load();
  if (is_cancelled) w.ticks_missing.fetch_add(1);
  if (code != status::ok && !is_cancelled && !may_be_killed(w, code))
    w.blame(std::string("a visitor's task ended with ") + status_name(code));
}

// A task that goes on in the other runtime.
struct crossing {
  board* shared;
  std::uint32_t depth;
};
void go_on(crossing at);
const auto cross = define("exercise.cross", &go_on);

// Whether the rest of the way may be refused: tickets and contexts have bounds, and in virtual time
// nothing comes back to a runtime that waits below.
bool may_end_early(const world& w, status code) noexcept {
  const bool is_sim = w.plan.config.machine == place::sim;
  switch (code) {
    case status::would_block:
      return is_sim || may_be_full(w);
    case status::would_deadlock:
    case status::too_deep:
      return w.may_all_wait || w.crossings >= 16 || w.plan.config.nest_max < 16;
    case status::closed:
    case status::cancelled:
      return w.is_closing.load();
    case status::poison:
      return may_be_killed(w, code);
    default:
      return false;
  }
}

// To the other runtime, or to this one, and back until the depth is used up.
void cross_once(world& w, std::uint32_t depth) {
  const bool goes_home = depth % 2 != 0;
  runtime& to = goes_home ? *w.home : *w.twin;
  if (goes_home) count_live(w, 1);
  status code = status::ok;
  w.ticks_expected.fetch_add(1);
  try {
    ticket t = to.submit(cross, crossing{w.shared, depth});
    code = t.wait_outcome().code;
    if (code == status::cancelled && w.is_cancelling.load()) w.ticks_missing.fetch_add(1);
  } catch (const error& e) {
    code = e.code();
    w.ticks_expected.fetch_sub(1);
  }
  if (goes_home) w.live.fetch_sub(1);
  if (code != status::ok && !may_end_early(w, code))
    w.blame("a task that crosses, at " + std::to_string(depth) + ", ended with " +
            status_name(code));
}

void go_on(crossing at) {
  if (at.shared->is_confined == 0) at.shared->ticks.fetch_add(1);
  const bool is_in_worker_process = at.shared->is_remote != 0 && at.depth % 2 != 0;
  if (at.depth != 0 && !is_in_worker_process) cross_once(*at.shared->home, at.depth - 1);
}

int sum_in_child() {
  runtime own;
  int sum = 0;
  static const auto add = define("exercise.add", [](int a, result<int> to) { to = a + 2; });
  own.submit(add, 40, sum).wait();
  return sum == 42 ? 0 : 4;
}

// A forked process does with its copy of the runtime all that it may.
int be_child(world& w, bool opens_own) {
  alarm(20);
  refusal why;
  if (w.home->try_submit(pack(tick, board_place{w.shared}), nullptr, &why) ||
      why.code != status::closed)
    return 1;
  if (w.home->close() != status::ok) return 2;
  if (w.home->wait_for_completion(0).code != status::closed) return 3;
  return opens_own ? sum_in_child() : 0;
}

}  // namespace

// In a shared pool it shares the workers. Where they are processes of one runtime it has threads:
// what is asked is how a thread tells its runtimes apart.
void open_twin(world& w, const char* pool) {
  bool is_visited = false;
  for (const block& b : w.plan.blocks) {
    for (const step& s : b)
      is_visited |= (s.what == verb::visit && s.b == 0) || s.what == verb::cross;
  }
  if (!is_visited) return;
  config c;
  c.machine = w.plan.config.machine == place::sim ? "sim"
              : pool != nullptr                   ? "processes"
                                                  : "threads";
  c.processes.pool = pool;
  c.workers =
      pool != nullptr ? w.plan.config.workers : 1 + static_cast<int>(w.plan.config.seed % 2);
  c.local_store_bytes = std::size_t{w.plan.config.local_store_kib} << 10;
  c.tickets = 16 + 2 * crossings(w.plan);
  c.wait = w.plan.config.wait;
  c.seed = w.plan.config.seed;
  w.twin = std::make_unique<runtime>(c);
}

void do_visit(const frame& f, const step& s) {
  world& w = f.w;
  for (std::uint32_t i = 0; i < s.a; ++i) {
    if (s.b == 0) {
      visit_once(w, *w.twin);
    } else if (w.plan.config.machine != place::sim) {
      count_live(w, 1);
      std::thread([&] { visit_once(w, *w.home); }).join();
      w.live.fetch_sub(1);
    }
  }
}

void do_cross(const frame& f, const step& s) {
  cross_once(f.w, 2 * s.a);
}

// The allocator of AddressSanitizer (GCC 12) holds no lock of its own over a fork(): where another
// thread allocates at that moment, the child would wait for that lock for ever.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool may_split = false;
#else
constexpr bool may_split = true;
#endif

void do_split(const frame& f, const step& s) {
  if (!may_split) return;
  world& w = f.w;
  const pid_t child = fork();
  if (child < 0) return;
  if (child == 0) _exit(be_child(w, s.a != 0));
  int how = 0;
  while (waitpid(child, &how, 0) < 0) {
  }
  if (how == 0) return;
  w.blame("a forked child ended " + (WIFEXITED(how)
                                         ? "with code " + std::to_string(WEXITSTATUS(how))
                                         : "by signal " + std::to_string(WTERMSIG(how))));
}

}  // namespace lev::exercise
