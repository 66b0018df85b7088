// The steps that are neither submits nor waits. See interpret.hpp.
#include "exercise/bodies.hpp"
#include "exercise/interpret.hpp"
#include "exercise/scopes.hpp"
#include "runtime/runtime_state.hpp"

#include <leveret/leveret.h>

#include <poll.h>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace lev::exercise {

std::vector<ticket>& kept_tickets() noexcept {
  thread_local std::vector<ticket> all;
  return all;
}

namespace {

struct callback {
  world& w;
  const step& s;
  std::uint32_t depth;
};
void call_back(void* context) {
  const callback& c = *static_cast<callback*>(context);
  c.w.seen[c.s.a].called_back.fetch_add(1);
  const auto drop_all = [&] {
    for (const std::uint32_t t : c.s.handed) drop(c.w, t);
  };
  try {
    run_block({c.w, nobody, nobody, c.depth + 1, true}, c.s.b);
  } catch (const tossed&) {
    drop_all();
    throw;
  }
  drop_all();
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

void do_share(const frame& f, const step& s) {
  sighting& seen = f.w.seen[s.a];
  if (!f.w.tickets[s.a] && !seen.is_ordered) return;
  if (!seen.is_ordered) seen.id.store(f.w.tickets[s.a].id());
  if (seen.id.load() != 0) f.w.shown[s.b].store(s.a + 1);
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

// Filters that break their rules are passed over.
void lose(waiting_task* tasks, std::size_t count, void*) {
  if (count > 1) tasks[0] = tasks[count - 1];
}
void forge(waiting_task* tasks, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) tasks[i].slot = static_cast<std::uint32_t>(0u - i);
}
void refuse(waiting_task* tasks, std::size_t count, void*) {
  std::reverse(tasks, tasks + count);
  throw tossed();
}

void do_filters(const frame& f, const step& s) {
  const filter all[] = {filters::fifo(),         filters::priority(), filters::locality(),
                        filters::by_procedure(), {&reverse, nullptr}, {&lose, nullptr},
                        {&forge, nullptr},       {&refuse, nullptr}};
  filter chain[filter_count_max];
  std::size_t count = 0;
  for (unsigned i = 0; i < filter_count_max; ++i) {
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

bool tosses(const block& steps) {
  return !steps.empty() && steps.back().what == verb::toss;
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
  std::uint32_t thrown = 0;
  for (const std::uint32_t block : s.list) {
    thrown += tosses(f.w.plan.blocks[block]);
    try {
      all.push_back(std::unique_ptr<spawned>(new spawned(task.spawn(thread(block)))));
    } catch (const error& e) {
      if (e.code() != status::too_many_contexts)
        f.w.blame(std::string("spawn() ended with ") + status_name(e.code()));
      thrown -= tosses(f.w.plan.blocks[block]);
    }
  }
  for (auto& t : all) {
    try {
      t->join();
    } catch (const tossed&) {
      --thrown;
    }
  }
  if (thrown != 0) f.w.blame("join() did not throw what its thread threw, once");
}

// Steps that are about no ticket of the program.
void run_aside(const frame& f, const step& s) {
  switch (s.what) {
    case verb::visit:
      return do_visit(f, s);
    case verb::cross:
      return do_cross(f, s);
    case verb::strands:
      return do_strands(f, s);
    case verb::toss:
      throw tossed();
    case verb::look:
      return do_look(f);
    case verb::misuse:
      return do_misuse(f, s);
    case verb::ordered:
      return do_ordered(f, s);
    case verb::wait_ordered:
      return do_wait_ordered(f, s);
    case verb::cancel_ordered:
      return do_cancel_ordered(f, s);
    case verb::shut:
      return do_shut(f, s);
    case verb::split:
      return do_split(f, s);
    default:  // the interpreter's own
      return;
  }
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
      kept_tickets().push_back(std::move(f.w.tickets[s.a]));
      return;
    case verb::then:
      return do_then(f, s);
    case verb::await:
      return do_await(f, s);
    case verb::loop:
      return do_loop(f, s);
    case verb::share:
      return do_share(f, s);
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
    default:
      return run_aside(f, s);
  }
}

}  // namespace lev::exercise
