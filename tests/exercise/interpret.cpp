// Opening, host threads, blocks, the end. See interpret.hpp.
#include "exercise/interpret.hpp"

#include "exercise/bodies.hpp"
#include "exercise/scopes.hpp"
#include "exercise/sound.hpp"
#include "runtime/runtime_state.hpp"

#include <leveret/leveret.h>

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace lev::exercise {

namespace {

void release_own(const frame& f, const block& steps) {
  close_scopes(f, steps);
  for (const step& s : steps) {
    if (s.what == verb::submit && f.w.owner[s.a] == &steps) drop(f.w, s.a);
  }
}

world* current = nullptr;

class interpreter {
 public:
  interpreter(const program& p, const limits& l) : w_(p) {
    w_.shared->spin_limit_ns = l.spin_limit_ns;
    current = &w_;
  }
  ~interpreter() { current = nullptr; }

  std::string all() {
    open();
    host(0);
    for (auto& t : threads_) {
      if (t.joinable()) t.join();
    }
    finish();
    return w_.blames();
  }

 private:
  void open();
  void host(std::uint32_t h);
  void keep_aside(std::uint32_t h) const;
  bool is_at_work(std::uint32_t h) const;
  void finish();

  world w_;
  std::vector<std::thread> threads_;
};

// Opens it by the C API, as far as that has the settings.
std::unique_ptr<runtime> open_in_c(const config& c) {
  lev_options o{};
  o.machine = c.machine;
  o.workers = c.workers;
  o.tickets = c.tickets;
  o.local_store_bytes = c.local_store_bytes;
  o.seed = c.seed;
  o.staging = static_cast<lev_staging>(c.staging);
  o.wait = static_cast<lev_wait_policy>(c.wait);
  o.full = static_cast<lev_when_full>(c.full);
  o.max_attempts = c.processes.max_attempts;
  o.contexts = c.contexts;
  o.context_stack_bytes = c.context_stack_bytes;
  o.pool = c.processes.pool;
  o.trace_events = c.trace_events;
  o.sim_machine = c.sim_machine;
  lev_runtime* made = nullptr;
  const auto code = static_cast<status>(lev_open(&o, &made));
  if (code != status::ok) throw error(code, -1, lev_last_message());
  return std::unique_ptr<runtime>(reinterpret_cast<runtime*>(made));
}

void interpreter::open() {
  const settings& s = w_.plan.config;
  config c;
  c.machine = is_local(s.machine) ? place_name(s.machine) : "processes";
  c.workers = s.workers;
  c.tickets = s.tickets;
  c.nest_max = s.nest_max;
  c.contexts = s.contexts;
  c.context_stack_bytes = 256 << 10;
  c.depth = s.depth;
  c.dice_threshold = s.dice_threshold;
  c.spin_ns = s.spin_ns;
  c.local_store_bytes = std::size_t{s.local_store_kib} << 10;
  c.processes.max_attempts = s.max_attempts;
  c.staging = s.staging;
  c.wait = s.wait;
  c.full = s.full;
  c.seed = s.seed;
  c.host_threads = 16;
  c.trace_events = s.trace_events;
  c.sim_machine = s.sim_machine;
  c.processes.chaos = s.chaos;
  c.pin = s.is_pinned;
  c.processes.isolation = s.is_confined ? isolation::confined : isolation::crash;
  // Children of one driver share their workers.
  const std::string pool = "exercise-" + std::to_string(getppid());
  if (s.machine == place::pool) c.processes.pool = pool.c_str();
  w_.may_all_wait = may_all_wait(w_.plan);
  w_.crossings = crossings(w_.plan);
  w_.home = w_.plan.is_opened_in_c ? open_in_c(c) : std::make_unique<runtime>(c);
  open_twin(w_, c.processes.pool);
  for (mutex_id& m : w_.mutexes) {
    if (w_.home->make_mutex(&m) != status::ok) w_.blame("make_mutex() failed");
  }
  for (const block& b : w_.plan.blocks) {
    for (const step& step : b) {
      if (step.what == verb::submit) w_.owner[step.a] = &b;
    }
  }
  for (const block& b : w_.plan.blocks) {
    for (const step& step : b) {
      if (step.what == verb::then) {
        for (const std::uint32_t t : step.handed) w_.owner[t] = &w_.plan.blocks[step.b];
      }
      if (step.what != verb::submit || w_.plan.tasks[step.a].body == nobody) continue;
      for (const std::uint32_t t : step.handed)
        w_.owner[t] = &w_.plan.blocks[w_.plan.tasks[step.a].body];
      w_.handed[step.a] = step.handed;
      w_.handed_count += static_cast<std::uint32_t>(step.handed.size());
    }
  }
  threads_.resize(w_.plan.hosts.size());
}

void interpreter::host(std::uint32_t h) {
  kept_tickets().reserve(tasks_max);
  const frame f{w_, nobody, h, 0, false};
  const block& steps = w_.plan.blocks[w_.plan.hosts[h]];
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    w_.at[h].store(i + 1);
    const step& s = steps[i];
    if (s.what == verb::start && !threads_[s.a].joinable()) {
      threads_[s.a] = std::thread([this, other = s.a] { host(other); });
    } else if (s.what == verb::join) {
      if (threads_[s.a].joinable()) threads_[s.a].join();
    } else if (s.what == verb::aside) {
      keep_aside(h);
    } else {
      run_step(f, s);
    }
  }
  w_.at[h].store(0);
  release_own(f, steps);
}

// Whoever joins may wait for a host that keeps aside, and of those some wait for each other.
bool interpreter::is_at_work(std::uint32_t h) const {
  const std::uint32_t at = w_.at[h].load();
  if (at == 0) return false;
  const verb v = w_.plan.blocks[w_.plan.hosts[h]][at - 1].what;
  return v != verb::join && v != verb::aside;
}

// What others wait for must come without this host.
void interpreter::keep_aside(std::uint32_t h) const {
  for (std::uint32_t other = 0; other < w_.plan.hosts.size(); ++other) {
    if (other == h || !is_at_work(other)) continue;
    const timespec time{0, 20'000};
    ppoll(nullptr, 0, &time, nullptr);
    other = nobody;  // from the first one on, again
  }
}

void interpreter::finish() {
  runtime& r = *w_.home;
  kept_tickets().clear();
  const bool is_sim = w_.plan.config.machine == place::sim;
  if (w_.plan.close_cancels) {
    w_.is_closing.store(true);
    w_.is_cancelling.store(true);
  } else {
    // Tasks that a refused wait has left may hand in more, in either runtime.
    for (unsigned turn = 0; turn < (w_.twin != nullptr ? 3 : 1); ++turn) {
      run_step({w_, nobody, 0, 0, false}, {.what = verb::complete});
      if (w_.twin != nullptr) w_.twin->wait_for_completion();
    }
  }
  for (std::uint32_t t = 0; t < w_.plan.tasks.size() && !w_.plan.close_cancels; ++t) drop(w_, t);
  if (!w_.plan.drops_runtime) {
    const std::int64_t limit = is_sim ? 2'000'000'000 : 60'000'000'000;
    const status code =
        w_.plan.close_ends ? r.close(0, true, true) : r.close(limit, w_.plan.close_cancels);
    if (code != status::ok) w_.blame(std::string("close() ended with ") + status_name(code));
    for (std::uint32_t t = 0; t < w_.plan.tasks.size(); ++t) drop(w_, t);
    w_.deaths = r.count().deaths;
    check_closed(w_);
  }
  for (std::uint32_t t = 0; t < w_.plan.tasks.size(); ++t) drop(w_, t);
  if (w_.twin != nullptr) w_.twin->close();
  if (w_.plan.is_opened_in_c) {
    const auto code =
        static_cast<status>(lev_close(reinterpret_cast<lev_runtime*>(w_.home.release())));
    if (code != status::ok) w_.blame(std::string("lev_close() ended with ") + status_name(code));
  }
  w_.home.reset();
  w_.twin.reset();
  check_world(w_);
}

}  // namespace

void run_block(const frame& f, std::uint32_t which) {
  const block& steps = f.w.plan.blocks[which];
  try {
    for (const step& s : steps) run_step(f, s);
  } catch (const tossed&) {
    release_own(f, steps);
    throw;
  }
  release_own(f, steps);
}

void run_body(world& w, std::uint32_t task) {
  run_block({w, task, nobody, w.seen[task].depth + 1, false}, w.plan.tasks[task].body);
  for (const std::uint32_t t : w.handed[task]) drop(w, t);
}

std::string state_now() {
  if (current == nullptr) return "between two programs";
  const world& w = *current;
  std::string text;
  for (std::size_t h = 0; h < w.plan.hosts.size(); ++h)
    text += "host " + std::to_string(h) + " at step " + std::to_string(w.at[h].load()) + "; ";
  for (std::uint32_t t = 0; t < w.plan.tasks.size(); ++t) {
    const record& r = w.shared->tasks[t];
    const sighting& s = w.seen[t];
    text += "\n" + task_name(t) + ": " + (s.is_submitted ? "submitted" : status_name(s.refused)) +
            ", begun " + std::to_string(r.begun.load()) + ", ended " +
            std::to_string(r.ended.load()) +
            (s.is_collected  ? std::string(", collected ") + status_name(s.seen.code)
             : s.is_released ? ", released"
                             : "");
  }
  if (w.home != nullptr) {
    const counters n = w.home->count();
    text +=
        "\nsubmitted " + std::to_string(n.submitted) + ", completed " + std::to_string(n.completed);
  }
  return text;
}

std::string run_program(const program& p, const limits& l) {
  return interpreter(p, l).all();
}

}  // namespace lev::exercise
