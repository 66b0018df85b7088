// Steps that hand in tasks: submit, bulk, post, coroutines, loops. See interpret.hpp.
#include "exercise/bodies.hpp"
#include "exercise/interpret.hpp"
#include "runtime/runtime_state.hpp"

#include <leveret/leveret.h>
#include <leveret/coroutine.hpp>
#include <leveret/interleave.hpp>

#include <memory>
#include <stdexcept>
#include <utility>

namespace lev::exercise {

std::uint32_t slots_of(const task_spec& t) noexcept {
  if (t.what != shape::bulk) return 1;
  return t.pieces * (t.takes_more() ? 2 : 1) + 1;
}

bool may_be_full(const world& w) noexcept {
  std::uint32_t tickets = 1;
  while (tickets < w.plan.config.tickets) tickets *= 2;
  return w.is_sliced || w.live_most.load() >= tickets || w.edges_named.load() >= tickets * 2;
}

// The most at any time: others may have collected theirs since the submit was refused.
void count_live(world& w, std::uint32_t slots) {
  const std::uint32_t now = w.live.fetch_add(slots) + slots;
  std::uint32_t most = w.live_most.load();
  while (most < now && !w.live_most.compare_exchange_weak(most, now)) {
  }
}

void refused(const frame& f, std::uint32_t task, status code, bool is_full) {
  sighting& seen = f.w.seen[task];
  seen.refused = code;
  seen.may_be_full = is_full;
  seen.was_closing = f.w.is_closing.load();
}

options options_of(const frame& f, std::uint32_t task, const step& s) {
  world& w = f.w;
  record& r = w.shared->tasks[task];
  options o;
  unsigned named = 0;
  r.after = 0;
  for (const std::uint32_t other : s.list) {
    if (!w.tickets[other]) continue;
    for (std::uint32_t n = 0; n < s.repeat && named < options::after_max; ++n, ++named)
      o.after(w.tickets[other]);
    r.after |= std::uint64_t{1} << other;
  }
  const std::uint32_t other = s.after_shown == nobody ? nobody : w.shown_at(s.after_shown);
  if (other != nobody && named < options::after_max) {
    o.after_id(w.seen[other].id.load());
    ++named;
    r.after |= std::uint64_t{1} << other;
  }
  w.edges_named.fetch_add(named);
  for (unsigned m = 0; m < mutexes_max; ++m) {
    if ((s.locks >> m & 1) != 0) o.locks(w.mutexes[m]);
  }
  r.locks = s.locks;
  r.attempts = s.attempts;
  o.priority(s.priority).key(s.key).grain(s.grain).max_attempts(s.attempts);
  return o;
}

namespace {

struct fire_and_forget {
  struct promise_type {
    fire_and_forget get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// A typed call where the arguments fit one of a few signatures; else the descriptor.
ticket submit_one(world& w, std::uint32_t task, const step& s, const options& o) {
  const task_spec& t = w.plan.tasks[task];
  const record& r = w.shared->tasks[task];
  const bool is_bare_task = !t.has_input && t.own.what == kind::value && t.what == shape::plain;
  const options* const given = is_bare(s) ? nullptr : &o;
  const where at{w.shared, task, 0};
  if (s.is_typed && is_bare_task && !t.has_result) {
    const procedure<void(where)> p{procedure_for(t)};
    return given == nullptr ? w.home->submit(p, at) : w.home->submit(o, p, at);
  }
  if (s.is_typed && is_bare_task) {
    const procedure<void(where, lev::result<std::uint64_t>)> p{procedure_for(t)};
    return given == nullptr ? w.home->submit(p, at, *r.result)
                            : w.home->submit(o, p, at, *r.result);
  }
  const descriptor d = describe(w, task, 0);
  refusal why;
  if (s.by == entrance::at_once) {
    ticket made = w.home->submit_at_once(d.procedure, d.arguments, d.argument_count);
    if (made) return made;
  }
  if (s.by != entrance::try_submit && s.by != entrance::within) return w.home->submit(d, given);
  ticket made = s.by == entrance::within ? w.home->submit_within(d, given, &why, s.timeout_ns)
                                         : w.home->try_submit(d, given, &why);
  if (!made) throw error(why.code, why.argument, why.message);
  return made;
}

void post_one(world& w, std::uint32_t task, const step& s, const options& o) {
  const task_spec& t = w.plan.tasks[task];
  const bool is_bare_task = !t.has_input && t.own.what == kind::value && t.what == shape::plain;
  if (!s.is_typed || !is_bare_task || t.has_result)
    return w.home->post(describe(w, task, 0), is_bare(s) ? nullptr : &o);
  const procedure<void(where)> p{procedure_for(t)};
  const where at{w.shared, task, 0};
  if (is_bare(s)) return w.home->post(p, at);
  w.home->post(o, p, at);
}

// lev_submit_after: what C can say of a task.
status submit_in_c(const frame& f, std::uint32_t task, const step& s) {
  world& w = f.w;
  record& r = w.shared->tasks[task];
  const descriptor d = describe(w, task, 0);
  const auto* arguments = reinterpret_cast<const lev_argument*>(d.arguments);
  if (s.is_post)
    return static_cast<status>(lev_post(in_c(w), d.procedure, arguments, d.argument_count));
  lev_ticket after[options::after_max];
  unsigned named = 0;
  r.after = 0;
  const auto name = [&](std::uint64_t id, std::uint32_t other) {
    if (id == 0 || named >= options::after_max) return;
    after[named++] = id;
    r.after |= std::uint64_t{1} << other;
  };
  for (const std::uint32_t other : s.list) name(w.tickets[other].id(), other);
  const std::uint32_t shown = s.after_shown == nobody ? nobody : w.shown_at(s.after_shown);
  if (shown != nobody) name(w.seen[shown].id.load(), shown);
  w.edges_named.fetch_add(named);
  lev_ticket made = 0;
  const auto code = static_cast<status>(
      lev_submit_after(in_c(w), d.procedure, arguments, d.argument_count, after, named, &made));
  if (code == status::ok) w.tickets[task] = ticket(w.home->state(), made);
  return code;
}

// Each piece is told where it belongs by its row of a column.
void submit_columns(world& w, std::uint32_t task) {
  const std::uint32_t pieces = w.plan.tasks[task].pieces;
  descriptor all = describe(w, task, 0);
  argument& a = all.arguments[0];
  const auto column = std::make_shared<std::vector<std::uint64_t>>(2 * pieces);
  w.keep_alive(column);
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const argument own = describe(w, task, i).arguments[0];
    (*column)[2 * i] = own.address;
    (*column)[2 * i + 1] = own.row_bytes;
  }
  a.address = reinterpret_cast<std::uintptr_t>(column->data());
  a.stride_bytes = 2 * sizeof(std::uint64_t);
  a.flags = argument_each;
  make_columns(w, task, all);
  w.tickets[task] = w.home->submit_bulk(pieces, all);
}

// Called in whatever thread runs a task, until the bulk is done.
struct piece_maker {
  const world& w;
  std::uint32_t task;
  void operator()(std::size_t i, descriptor& d) const {
    d = describe(w, task, static_cast<std::uint32_t>(i));
  }
};

void submit_made(world& w, std::uint32_t task) {
  const auto make = std::make_shared<piece_maker>(piece_maker{w, task});
  w.keep_alive(make);
  w.tickets[task] = w.home->submit_bulk(from_any_thread, w.plan.tasks[task].pieces, *make);
}

void submit_any_shape(const frame& f, std::uint32_t task, const step& s) {
  world& w = f.w;
  const task_spec& t = w.plan.tasks[task];
  if (t.what == shape::bulk && t.by_columns) return submit_columns(w, task);
  if (t.what == shape::bulk && t.made_anywhere) return submit_made(w, task);
  if (t.what == shape::bulk) {
    w.tickets[task] = w.home->submit_bulk(t.pieces, piece_maker{w, task});
    return;
  }
  const options o = options_of(f, task, s);
  if (s.is_post) {
    post_one(w, task, s, o);
  } else {
    w.tickets[task] = submit_one(w, task, s, o);
  }
}

// One step of a coroutine: what a co_await says becomes an outcome again.
fire_and_forget run_chain(frame f, std::vector<std::uint32_t> tasks) {
  world& w = f.w;
  for (const std::uint32_t task : tasks) {
    step s;
    s.what = verb::submit;
    s.a = task;
    do_submit(f, s);
    if (!w.tickets[task]) continue;
    outcome o;
    o.code = status::ok;
    try {
      co_await when_done(std::move(w.tickets[task]));
    } catch (const error& e) {
      o.code = e.code();
      o.exception = std::current_exception();
      o.task_code = static_cast<int>(task) + 1;
    } catch (...) {
      o.code = status::task_failed;
      o.exception = std::current_exception();
    }
    const bool may_lack_tickets = w.plan.tasks[task].takes_more() && may_be_full(w);
    if (o.code == status::would_block && may_lack_tickets) o.code = status::task_failed;
    if (!ticket::consumes(o.code)) {
      w.blame(task_name(task) + ": co_await of what is done ended with " + status_name(o.code));
      continue;
    }
    collected(w, task, o);
  }
  w.coroutines.fetch_sub(1);
}

// A loop as its pieces see it. It outlives the loop, so that a piece that comes late is noticed.
struct loop_state {
  loop_state(const frame& where, const step& what)
      : f(where), s(what), runs(new std::atomic<std::uint32_t>[what.list.size()]()) {}
  frame f;
  const step& s;
  std::atomic<bool> is_open{true};
  std::atomic<std::uint32_t> done{0};
  std::atomic<std::uint32_t> thrown{0};
  std::unique_ptr<std::atomic<std::uint32_t>[]> runs;
};

void run_item(loop_state& l, const frame& inside, std::uint32_t block) {
  try {
    run_block(inside, block);
  } catch (const tossed&) {
    l.thrown.fetch_add(1);
    throw;
  }
}

void run_piece(loop_state& l, range r) {
  world& w = l.f.w;
  for (std::uint64_t i = r.begin; i < r.end; ++i) {
    if (!l.is_open.load()) w.blame("a piece of a loop ran when parallel_for() had returned");
    if (i >= l.s.list.size()) return w.blame("a piece of a loop is no part of it");
    if (l.runs[i].fetch_add(1) != 0) w.blame("an index of a loop ran twice");
    const std::uint32_t block = l.s.list[i];
    frame inside{w, l.f.task, l.f.host, l.f.depth + 1, true};
    if (block != nobody) run_item(l, inside, block);
    l.done.fetch_add(1);
  }
}

}  // namespace

void do_submit(const frame& f, const step& s) {
  world& w = f.w;
  const std::uint32_t task = s.a;
  sighting& seen = w.seen[task];
  seen.depth = f.depth;
  seen.is_child = f.task != nobody && !f.is_callback;
  const std::uint32_t weight = slots_of(w.plan.tasks[task]);
  count_live(w, weight);
  seen.is_posted = s.is_post;
  status code = status::ok;
  if (s.in_c) {
    code = submit_in_c(f, task, s);
  } else {
    try {
      submit_any_shape(f, task, s);
    } catch (const error& e) {
      code = e.code();
    }
  }
  seen.is_submitted = code == status::ok;
  if (code == status::ok) return;
  refused(f, task, code, may_be_full(w));
  w.live.fetch_sub(weight);
}

void do_await(const frame& f, const step& s) {
  f.w.coroutines.fetch_add(1);
  frame inside = f;
  inside.is_callback = true;
  inside.depth = f.depth + 1;
  run_chain(inside, s.list);
}

void do_loop(const frame& f, const step& s) {
  world& w = f.w;
  const auto count = static_cast<std::uint32_t>(s.list.size());
  auto l = std::make_shared<loop_state>(f, s);
  w.keep_alive(l);
  status code = status::ok;
  count_live(w, count + 1);  // its pieces, and the loop as a whole
  const bool was_full = may_be_full(w);
  bool was_thrown = false;
  try {
    w.home->parallel_for({0, count}, [&](range r) { run_piece(*l, r); }, s.grain);
  } catch (const error& e) {
    code = e.code();
  } catch (const tossed&) {
    was_thrown = true;
  }
  l->is_open.store(false);
  w.live.fetch_sub(count + 1);
  if (was_thrown != (l->thrown.load() != 0) && code == status::ok)
    w.blame("parallel_for() did not throw what one of its pieces threw");
  if (was_thrown) return;
  if (code == status::ok && l->done.load() != count)
    return w.blame("parallel_for() returned when " + std::to_string(l->done.load()) + " of " +
                   std::to_string(count) + " indices were done");
  if (code == status::ok) return;
  const bool is_closed =
      w.is_closing.load() && (code == status::closed || code == status::cancelled);
  const bool is_full = code == status::would_block && (was_full || may_be_full(w));
  if (!is_closed && !is_full)
    w.blame(std::string("parallel_for() ended with ") + status_name(code) + " at depth " +
            std::to_string(f.depth));
}

namespace {

void run_strand(loop_state& l, std::uint64_t i, lev_strand* strand) {
  lev_strand_yield(strand);
  run_piece(l, {i, i + 1});
  lev_strand_yield(strand);
}

}  // namespace

// Items begin in order, each gives way before and after its block.
void do_strands(const frame& f, const step& s) {
  world& w = f.w;
  auto l = std::make_shared<loop_state>(f, s);
  w.keep_alive(l);
  bool was_thrown = false;
  if (s.in_c) {
    const auto item = [](std::size_t i, lev_strand* strand, void* of) {
      run_strand(*static_cast<loop_state*>(of), i, strand);
    };
    was_thrown = lev_interleave(s.a, s.list.size(), item, l.get()) == LEV_TASK_FAILED;
  } else {
    try {
      interleave(s.a, s.list.size(), [&](std::size_t i, auto& strand) {
        strand.yield();
        run_piece(*l, {i, i + 1});
        strand.yield();
      });
    } catch (const tossed&) {
      was_thrown = true;
    }
  }
  l->is_open.store(false);
  if (was_thrown != (l->thrown.load() != 0))
    w.blame("interleave() did not throw what an item threw");
  if (!was_thrown && l->done.load() != s.list.size()) w.blame("interleave() left out an item");
}

}  // namespace lev::exercise
