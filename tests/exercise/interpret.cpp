// Blocks and the steps that are neither submits nor waits; opening, host threads, the end. See
// interpret.hpp.
#include "exercise/interpret.hpp"

#include "exercise/bodies.hpp"
#include "runtime/runtime_state.hpp"

#include <leveret/leveret.h>

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace lev::exercise {

namespace {

// Tickets that are released when their thread ends. It is touched before the thread calls in, so
// that it is destroyed after what the runtime keeps for the thread.
thread_local std::vector<ticket> kept_tickets;

struct callback {
  world& w;
  const step& s;
  std::uint32_t depth;
};
void call_back(void* context) {
  const callback& c = *static_cast<callback*>(context);
  c.w.seen[c.s.a].called_back.fetch_add(1);
  run_block({c.w, nobody, nobody, c.depth + 1, true}, c.s.b);
  for (const std::uint32_t t : c.s.handed) drop(c.w, t);
}

void do_then(const frame& f, const step& s) {
  ticket& t = f.w.tickets[s.a];
  if (!t) return;
  auto c = std::make_shared<callback>(callback{f.w, s, f.depth});
  f.w.keep_alive(c);
  f.w.seen[s.a].wants_call = true;
  const status code = t.then(&call_back, c.get());
  if (code != status::ok) f.w.blame(task_name(s.a) + ": then() ended with " + status_name(code));
}

void do_poll(const frame& f, const step& s) {
  ticket& t = f.w.tickets[s.a];
  if (!t) return;
  const record& r = f.w.shared->tasks[s.a];
  const bool is_done = s.in_c ? lev_poll(in_c(f.w), t.id()) != LEV_PENDING : t.done();
  if (is_done && r.begun.load() != r.ended.load() && f.w.plan.tasks[s.a].what == shape::plain &&
      is_local(f.w.plan.config.machine))
    f.w.blame(task_name(s.a) + ": done, but its body has not ended");
}

void do_cancel(const frame& f, const step& s) {
  ticket& t = f.w.tickets[s.a];
  if (!t) return;
  f.w.seen[s.a].cancel_asked.store(true);
  const auto code = s.in_c ? static_cast<status>(lev_cancel(in_c(f.w), t.id())) : t.cancel();
  if (code != status::ok) f.w.blame(task_name(s.a) + ": cancel() ended with " + status_name(code));
}

// Bodies of this process go on, and a task that waits is cancelled.
void check_end(const frame& f, std::uint32_t task, status code, bool may_be_stale) {
  const bool is_remote = !is_local(f.w.plan.config.machine);
  const bool is_good = code == status::too_late ||
                       code == (is_remote ? status::ok : status::not_supported) ||
                       (code == status::stale_ticket && may_be_stale);
  if (!is_good) f.w.blame(task_name(task) + ": end() ended with " + status_name(code));
}

void do_end(const frame& f, const step& s) {
  ticket& t = f.w.tickets[s.a];
  if (!t) return;
  f.w.seen[s.a].cancel_asked.store(true);
  f.w.seen[s.a].end_asked.store(true);
  const auto code = s.in_c ? static_cast<status>(lev_end(in_c(f.w), t.id())) : t.end();
  check_end(f, s.a, code, false);
}

void do_shown(const frame& f, const step& s) {
  const std::uint32_t task = f.w.shown_at(s.b);
  if (task == nobody) return;
  const std::uint64_t id = f.w.seen[task].id.load();
  if (s.what == verb::poll_shown) {
    lev_poll(in_c(f.w), id);
    return;
  }
  f.w.seen[task].cancel_asked.store(true);
  if (s.what == verb::end_shown) {
    f.w.seen[task].end_asked.store(true);
    return check_end(f, task, static_cast<status>(lev_end(in_c(f.w), id)), true);
  }
  const auto code = static_cast<status>(lev_cancel(in_c(f.w), id));
  if (code != status::ok && code != status::stale_ticket)
    f.w.blame(std::string("cancel of a shown ticket ended with ") + status_name(code));
}

bool is_on_worker(world& w) {
  const participant* self = detail::here(*w.home->state());
  return self != nullptr && self->is_worker;
}

void do_flag(const frame& f, const step& s) {
  board& shared = *f.w.shared;
  const bool is_sim = f.w.plan.config.machine == place::sim;
  if (s.what == verb::set_flag) {
    shared.flags[s.a].store(1);
    return;
  }
  const std::string late = "a task that sets flag " + std::to_string(s.a) +
                           " did not run, though nothing keeps it from that";
  if (s.what == verb::spin_flag) {
    if ((is_sim && f.is_callback) || !is_on_worker(f.w)) return;
    if (!spin_on(shared, s.a, is_sim)) f.w.blame(late);
    return;
  }
  if (f.task == nobody) return;
  const std::uint64_t limit = f.w.home->now_ns() + static_cast<std::uint64_t>(shared.spin_limit_ns);
  std::uint32_t turn = 0;
  bool is_late = false;
  this_task().wait_until([&] {
    ++turn;
    is_late |= turn % 64 == 0 && f.w.home->now_ns() > limit;
    return shared.flags[s.a].load() != 0 || shared.gives_up.load() != 0 || is_late;
  });
  if (!is_late || shared.flags[s.a].load() != 0) return;
  shared.gives_up.store(1);
  f.w.blame(late);
}

void reverse(waiting_task* tasks, std::size_t count, void*) {
  std::reverse(tasks, tasks + count);
}

void do_filters(const frame& f, const step& s) {
  const filter all[] = {filters::fifo(),
                        filters::priority(),
                        filters::locality(),
                        filters::by_procedure(),
                        {&reverse, nullptr}};
  filter chain[5];
  std::size_t count = 0;
  for (unsigned i = 0; i < 5; ++i) {
    if ((s.a >> i & 1) != 0) chain[count++] = all[i];
  }
  const status code = f.w.home->set_filters(chain, count);
  if (code != status::ok) f.w.blame(std::string("set_filters() ended with ") + status_name(code));
}

void do_complete(const frame& f, const step& s) {
  const status code = s.in_c ? static_cast<status>(lev_wait_for_completion(in_c(f.w), s.timeout_ns))
                             : f.w.home->wait_for_completion(s.timeout_ns).code;
  const bool is_late = code == status::timed_out && s.timeout_ns >= 0;
  const bool is_failure = code == status::task_failed || code == status::dependency_failed ||
                          code == status::cancelled || code == status::poison ||
                          code == status::worker_died;
  if (code != status::ok && !is_late && !is_failure)
    f.w.blame(std::string("wait_for_completion() ended with ") + status_name(code));
}

void do_nap(const frame& f, const step& s) {
  if (f.w.plan.config.machine != place::sim) {
    const timespec time{0, static_cast<long>(s.a) * 1'000};
    ppoll(nullptr, 0, &time, nullptr);
  } else if (f.task != nobody && !f.is_callback) {
    this_task().pass_time(s.a * 1000);
  }
}

void do_spawn(const frame& f, const step& s) {
  if (f.task == nobody || f.is_callback) return;
  task_context task = this_task();
  auto thread = [&](std::uint32_t block) {
    frame inside = f;
    ++inside.depth;
    return [inside, block] { run_block(inside, block); };
  };
  using spawned = decltype(task.spawn(thread(0)));
  std::vector<std::unique_ptr<spawned>> all;
  for (const std::uint32_t block : s.list) {
    try {
      all.push_back(std::unique_ptr<spawned>(new spawned(task.spawn(thread(block)))));
    } catch (const error& e) {
      if (e.code() != status::too_many_contexts)
        f.w.blame(std::string("spawn() ended with ") + status_name(e.code()));
    }
  }
  for (auto& t : all) t->join();
}

}  // namespace

void run_step(const frame& f, const step& s) {
  switch (s.what) {
    case verb::submit:
      return do_submit(f, s);
    case verb::wait:
      return do_wait(f, s);
    case verb::await_done:
      return do_await_done(f, s);
    case verb::wait_any:
      return do_wait_any(f, s);
    case verb::wait_all:
      return do_wait_all(f, s);
    case verb::poll:
      return do_poll(f, s);
    case verb::cancel:
      return do_cancel(f, s);
    case verb::end:
      return do_end(f, s);
    case verb::release:
      return drop(f.w, s.a);
    case verb::keep:
      f.w.seen[s.a].is_released = true;
      kept_tickets.push_back(std::move(f.w.tickets[s.a]));
      return;
    case verb::then:
      return do_then(f, s);
    case verb::await:
      return do_await(f, s);
    case verb::loop:
      return do_loop(f, s);
    case verb::share:
      if (!f.w.tickets[s.a]) return;
      f.w.seen[s.a].id.store(f.w.tickets[s.a].id());
      f.w.shown[s.b].store(s.a + 1);
      return;
    case verb::cancel_shown:
    case verb::end_shown:
    case verb::poll_shown:
      return do_shown(f, s);
    case verb::set_flag:
    case verb::await_flag:
    case verb::spin_flag:
      return do_flag(f, s);
    case verb::filters:
      return do_filters(f, s);
    case verb::begin_phase:
      return f.w.home->begin_submit();
    case verb::end_phase:
      return f.w.home->end_submit();
    case verb::complete:
      return do_complete(f, s);
    case verb::yield:
      if (f.task == nobody || f.is_callback) return;
      if (!s.in_c) return this_task().yield();
      if (lev_task_yield() != LEV_OK) f.w.blame("lev_task_yield() failed");
      return;
    case verb::nap:
      return do_nap(f, s);
    case verb::spawn:
      return do_spawn(f, s);
    case verb::visit:
      return do_visit(f, s);
    case verb::split:
      return do_split(f, s);
    case verb::start:
    case verb::join:
    case verb::verb_count:
      return;
  }
}

namespace {

void release_own(const frame& f, const block& steps) {
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
  void finish();

  world w_;
  std::vector<std::thread> threads_;
};

// What C can say of it.
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
  c.host_threads = 8;
  c.processes.isolation = s.is_confined ? isolation::confined : isolation::crash;
  // Children of one driver share their workers.
  const std::string pool = "exercise-" + std::to_string(getppid());
  if (s.machine == place::pool) c.processes.pool = pool.c_str();
  w_.may_all_wait = may_all_wait(w_.plan);
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
  kept_tickets.reserve(tasks_max);
  const frame f{w_, nobody, h, 0, false};
  const block& steps = w_.plan.blocks[w_.plan.hosts[h]];
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    w_.at[h].store(i + 1);
    const step& s = steps[i];
    if (s.what == verb::start && !threads_[s.a].joinable()) {
      threads_[s.a] = std::thread([this, other = s.a] { host(other); });
    } else if (s.what == verb::join) {
      if (threads_[s.a].joinable()) threads_[s.a].join();
    } else {
      run_step(f, s);
    }
  }
  w_.at[h].store(0);
  release_own(f, steps);
}

void interpreter::finish() {
  runtime& r = *w_.home;
  kept_tickets.clear();
  const bool is_sim = w_.plan.config.machine == place::sim;
  if (w_.plan.close_cancels) {
    w_.is_closing.store(true);
  } else {
    do_complete({w_, nobody, 0, 0, false}, {});
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
  for (const step& s : steps) run_step(f, s);
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
