// See shrink.hpp. Greedy: a change is kept if the program still fails, of a few runs, in the same
// way. Each run is a process of its own, with a limit: what hangs and crashes is shrunk, too.
#include "exercise/shrink.hpp"

#include "exercise/sound.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

namespace lev::exercise {

namespace {

// Hangs, crashes, and what the oracle says without its numbers.
std::string kind_of(const std::string& what) {
  std::string kind;
  for (const char c : what) {
    if (c == '\n') break;
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

class shrinker {
 public:
  shrinker(finding& f, const plan& p) : f_(f), p_(p), kind_(kind_of(f.what)) {
    end_ = std::chrono::steady_clock::now() +
           std::chrono::milliseconds(static_cast<int>(p.shrink_seconds * 1000));
  }

  void all() {
    runs_ = 40;
    const double rate = measure(f_.shrunk);
    if (rate == 0) return;
    // Enough runs to see a failure of that rate in most cases.
    runs_ = static_cast<unsigned>(std::clamp(3.0 / rate, 1.0, 40.0));
    bool is_smaller = true;
    while (is_smaller && !is_late()) {
      is_smaller = false;
      is_smaller |= drop_hosts();
      is_smaller |= drop_steps();
      is_smaller |= simplify_steps();
      is_smaller |= simplify_tasks();
      is_smaller |= simplify_settings();
    }
    measure(f_.shrunk);
  }

 private:
  bool is_late() const { return std::chrono::steady_clock::now() > end_; }
  double hang_limit() const { return std::min(p_.hang_seconds, 1.0); }

  double measure(const program& p) {
    f_.tries = f_.failed = 0;
    for (unsigned i = 0; i < 10 && (i < 2 || !is_late()); ++i) {
      ++f_.tries;
      f_.failed += !run_alone(p, hang_limit()).empty();
    }
    return static_cast<double>(f_.failed) / f_.tries;
  }
  bool fails(const program& p) {
    for (unsigned i = 0; i < runs_ && !is_late(); ++i) {
      const std::string what = run_alone(p, hang_limit());
      if (what.empty() || kind_of(what) != kind_) continue;
      f_.what = what;
      return true;
    }
    return false;
  }
  bool attempt(program candidate) {
    tidy(candidate);
    if (candidate.tasks.empty() || candidate == f_.shrunk || !is_sound(candidate) || is_late())
      return false;
    if (!fails(candidate)) return false;
    f_.shrunk = std::move(candidate);
    return true;
  }
  bool attempt(const std::function<void(program&)>& change) {
    program candidate = f_.shrunk;
    change(candidate);
    return attempt(std::move(candidate));
  }

  bool drop_hosts() {
    bool any = false;
    for (std::size_t h = f_.shrunk.hosts.size(); h-- > 1;) {
      any |= attempt([&](program& p) {
        if (h >= p.hosts.size()) return;
        for (block& b : p.blocks)
          std::erase_if(b, [&](const step& s) {
            return (s.what == verb::start || s.what == verb::join) && s.a == h;
          });
      });
    }
    return any;
  }
  // Runs of steps, from long ones to single ones.
  bool drop_steps() {
    bool any = false;
    for (std::size_t b = 0; b < f_.shrunk.blocks.size(); ++b) {
      for (std::size_t length = f_.shrunk.blocks[b].size(); length > 0; length /= 2) {
        for (std::size_t i = 0; b < f_.shrunk.blocks.size() && i < f_.shrunk.blocks[b].size();) {
          const bool went = attempt([&](program& p) {
            block& steps = p.blocks[b];
            const auto first = steps.begin() + static_cast<std::ptrdiff_t>(i);
            steps.erase(first,
                        first + static_cast<std::ptrdiff_t>(std::min(length, steps.size() - i)));
          });
          any |= went;
          if (!went) i += length;
        }
        if (b >= f_.shrunk.blocks.size()) return any;
      }
    }
    return any;
  }
  bool each_step(const std::function<void(step&)>& change) {
    bool any = false;
    for (std::size_t b = 0; b < f_.shrunk.blocks.size(); ++b) {
      for (std::size_t i = 0; b < f_.shrunk.blocks.size() && i < f_.shrunk.blocks[b].size(); ++i)
        any |= attempt([&](program& p) { change(p.blocks[b][i]); });
    }
    return any;
  }
  bool simplify_steps() {
    bool any = false;
    any |= each_step([](step& s) {
      const step plain{
          .what = s.what, .a = s.a, .b = s.b, .list = s.list, .handed = s.handed, .is_typed = true};
      const step old = s;
      s = plain;
      s.locks = old.locks;
      s.repeat = old.repeat;
      s.after_shown = old.after_shown;
      s.is_post = old.is_post;
    });
    any |= each_step([](step& s) { s.locks = 0; });
    any |= each_step([](step& s) { s.repeat = 1; });
    any |= each_step([](step& s) { s.after_shown = nobody; });
    any |= each_step([](step& s) { s.handed.clear(); });
    any |= each_step([](step& s) { s.timeout_ns = no_timeout; });
    any |= each_step([](step& s) { s.policy = wait_policy::of_runtime; });
    any |= each_step([](step& s) { s.in_c = false; });
    any |= each_step([](step& s) {
      if (s.list.size() > 1) s.list.pop_back();
    });
    any |= each_step([](step& s) {
      if (s.what == verb::submit || s.what == verb::ordered) s.list.clear();
    });
    return any;
  }
  bool each_task(const std::function<void(task_spec&)>& change) {
    bool any = false;
    for (std::size_t t = 0; t < f_.shrunk.tasks.size(); ++t)
      any |= attempt([&](program& p) { change(p.tasks[t]); });
    return any;
  }
  bool simplify_tasks() {
    bool any = false;
    any |= each_task([](task_spec& t) {
      const task_spec old = t;
      t = {};
      t.body = old.body;
      t.sets_flag = old.sets_flag;
      t.spins_on = old.spins_on;
    });
    any |= each_task([](task_spec& t) { t.body = nobody; });
    any |= each_task([](task_spec& t) { t.end = ending::ok; });
    any |= each_task([](task_spec& t) { t.turns = 0; });
    any |= each_task([](task_spec& t) {
      t.has_input = false;
      t.reads = nobody;
    });
    any |= each_task([](task_spec& t) { t.has_result = false; });
    any |= each_task([](task_spec& t) {
      if (t.what != shape::sliced) t.own = {};
    });
    any |= each_task([](task_spec& t) {
      if (t.what == shape::bulk && t.pieces > 1) t.pieces /= 2;
    });
    return any;
  }
  bool simplify_settings() {
    const settings plain;
    bool any = false;
    any |= attempt([&](program& p) { p.close_cancels = p.close_ends = false; });
    any |= attempt([&](program& p) { p.close_ends = false; });
    any |= attempt([&](program& p) { p.drops_runtime = false; });
    if (f_.machine != place::pool) {
      any |= attempt([&](program& p) { p.config.workers = 1; });
    }
    if (f_.machine != place::pool) {
      any |= attempt([&](program& p) { p.config.workers = std::max(1, p.config.workers - 1); });
    }
    any |= attempt([&](program& p) { p.config.staging = plain.staging; });
    any |= attempt([&](program& p) { p.config.wait = plain.wait; });
    any |= attempt([&](program& p) { p.config.full = plain.full; });
    any |= attempt([&](program& p) { p.config.depth = plain.depth; });
    any |= attempt([&](program& p) { p.config.contexts = plain.contexts; });
    any |= attempt([&](program& p) { p.config.nest_max = plain.nest_max; });
    any |= attempt([&](program& p) { p.config.spin_ns = plain.spin_ns; });
    any |= attempt([&](program& p) { p.config.local_store_kib = plain.local_store_kib; });
    any |= attempt([&](program& p) { p.config.dice_threshold = plain.dice_threshold; });
    any |= attempt([&](program& p) { p.config.tickets = 4096; });
    any |= attempt([&](program& p) { p.config.seed = 1; });
    return any;
  }

  finding& f_;
  const plan& p_;
  std::string kind_;
  std::chrono::steady_clock::time_point end_;
  unsigned runs_ = 1;
};

}  // namespace

void shrink(finding& f, const plan& p) {
  shrinker(f, p).all();
}

}  // namespace lev::exercise
