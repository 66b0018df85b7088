// Steps that only look, and calls that must be refused: from wherever they are made, they change
// nothing. See interpret.hpp.
#include "exercise/bodies.hpp"
#include "exercise/interpret.hpp"

#include <leveret/leveret.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace lev::exercise {

namespace {

struct bench {
  board* shared;
};
const auto touch = define("exercise.touch", [](bench at) { at.shared->ticks.fetch_add(1); });
const auto take = define("exercise.take", [](inout<std::uint64_t>) {});

void expect(const frame& f, const char* call, status seen, status wanted) {
  const bool is_closed =
      f.w.is_closing.load() && (seen == status::closed || seen == status::cancelled);
  if (seen != wanted && !is_closed)
    f.w.blame(std::string(call) + " ended with " + status_name(seen) + ", not " +
              status_name(wanted));
}

bool is_in_task(const frame& f) {
  return f.task != nobody && !f.is_callback;
}

// Waits for everything, and the end of everything, are no task's.
void wait_for_all_in_task(const frame& f) {
  if (!is_in_task(f)) return;
  expect(f, "wait_for_completion() in a task", f.w.home->wait_for_completion(0).code,
         status::would_deadlock);
  expect(f, "close() in a task", f.w.home->close(0), status::would_deadlock);
  expect(f, "close() by force in a task", f.w.home->close(0, true, true), status::would_deadlock);
}

void hand_in_nonsense(const frame& f) {
  const auto refused = [&](const descriptor& d, const options* o) {
    refusal why;
    if (f.w.home->try_submit(d, o, &why)) return status::ok;
    if (why.message[0] == 0) f.w.blame("a task was refused without a word");
    return why.code;
  };
  descriptor d = pack(touch, bench{f.w.shared});
  d.procedure = 60'000;
  expect(f, "a task without a procedure", refused(d, nullptr), status::bad_procedure);
  d = pack(touch, bench{f.w.shared});
  d.argument_count = 0;
  expect(f, "a task without arguments", refused(d, nullptr), status::bad_argument_count);
  d = pack(take, view(static_cast<std::uint64_t*>(nullptr), 3));
  expect(f, "a task of null memory", refused(d, nullptr), status::bad_address);
  d = pack(touch, bench{f.w.shared});
  options o;
  o.locks(mutex_id{200});
  expect(f, "a task with no mutex", refused(d, &o), status::bad_argument);
  o = options();
  if (is_local(f.w.plan.config.machine)) {
    o.task_ns_max(1'000'000'000);
    expect(f, "a task with a time limit", refused(d, &o), status::not_supported);
    o = options();
  }
  for (unsigned i = 0; i <= options::after_max; ++i) o.after_id(~std::uint64_t{0});
  expect(f, "a task after too many", refused(d, &o), status::too_big);
}

void choose_no_filters(const frame& f) {
  filter chain[filter_count_max + 1];
  for (filter& each : chain) each = filters::fifo();
  expect(f, "too many filters", f.w.home->set_filters(chain, filter_count_max + 1),
         status::too_big);
  chain[1] = {};
  expect(f, "a filter that is null", f.w.home->set_filters(chain, 2), status::bad_argument);
}

void ask_for_no_ticket(const frame& f) {
  ticket none;
  if (!none.done()) f.w.blame("an empty ticket is not done");
  expect(f, "a wait for an empty ticket", none.wait_outcome(0).code, status::bad_ticket);
  expect(f, "cancel() of an empty ticket", none.cancel(), status::bad_ticket);
  expect(f, "end() of an empty ticket", none.end(), status::bad_ticket);
  expect(f, "then() of an empty ticket", none.then([](void*) {}, nullptr), status::bad_ticket);
  std::size_t index = 0;
  ticket two[2];
  expect(f, "wait_any() of nothing", wait_any(two, 2, &index).code, status::bad_argument);
  expect(f, "wait_all() of nothing", wait_all(two, 2).code, status::ok);
  lev_outcome out{};
  const auto code = [](lev_status s) { return static_cast<status>(s); };
  expect(f, "lev_wait of 0", code(lev_wait(in_c(f.w), 0, 0, &out)), status::bad_ticket);
  expect(f, "lev_poll of 2^31", code(lev_poll(in_c(f.w), 1u << 31)), status::bad_ticket);
  expect(f, "lev_cancel of 2^31", code(lev_cancel(in_c(f.w), 1u << 31)), status::bad_ticket);
}

// The first of its tasks runs, and the call does not return before.
void hand_in_a_broken_bulk(const frame& f, bool throws) {
  world& w = f.w;
  count_live(w, 4);
  const bool was_full = may_be_full(w);
  std::atomic<unsigned> made{0};
  status code = status::ok;
  bool was_thrown = false;
  try {
    w.home->submit_bulk(3, [&](std::size_t i, descriptor& d) {
      made.fetch_add(1);
      if (i == 1 && throws) throw std::runtime_error("no task");
      d = pack(touch, bench{w.shared});
      if (i == 1) d.procedure = 60'000;
    });
  } catch (const error& e) {
    code = e.code();
  } catch (const std::runtime_error&) {
    was_thrown = true;
  }
  w.live.fetch_sub(4);
  // One that was handed in is cancelled where the runtime is.
  const bool may_be_cancelled = w.is_cancelling.load();
  if (made.load() > 1) w.ticks_expected.fetch_add(1);
  if (made.load() > 1 && may_be_cancelled) w.ticks_missing.fetch_add(1);
  if (code == status::would_block && (was_full || may_be_full(w))) return;
  if (throws && was_thrown) return;
  expect(f, "a bulk with a bad task", code, status::bad_procedure);
}

void loop_over_nothing(const frame& f) {
  status code = status::ok;
  try {
    f.w.home->parallel_for({7, 7}, [&](range) { f.w.blame("a loop over nothing ran a piece"); });
  } catch (const error& e) {
    code = e.code();
  }
  if (code == status::would_block && may_be_full(f.w)) return;
  expect(f, "a loop over nothing", code,
         is_local(f.w.plan.config.machine) ? status::ok : status::not_supported);
}

void be_no_task(const frame& f) {
  if (f.host == nobody || f.is_callback) return;
  status code = status::ok;
  try {
    this_task();
  } catch (const error& e) {
    code = e.code();
  }
  expect(f, "this_task() on a host", code, status::not_in_task);
}

}  // namespace

void do_misuse(const frame& f, const step& s) {
  switch (s.a) {
    case 0:
      return wait_for_all_in_task(f);
    case 1:
      return hand_in_nonsense(f);
    case 2:
      return choose_no_filters(f);
    case 3:
      return ask_for_no_ticket(f);
    case 4:
    case 5:
      return hand_in_a_broken_bulk(f, s.a == 5);
    case 6:
      return loop_over_nothing(f);
    default:
      return be_no_task(f);
  }
}

// Afterwards only tasks hand in, until the last has ended.
void do_shut(const frame& f, const step& s) {
  world& w = f.w;
  w.is_closing.store(true);
  if (s.a != 0) w.is_cancelling.store(true);
  const status code = w.home->close(s.timeout_ns, s.a != 0);
  if (code != status::ok && (code != status::timed_out || s.timeout_ns == no_timeout))
    w.blame(std::string("close() ended with ") + status_name(code));
}

void do_look(const frame& f) {
  runtime& r = *f.w.home;
  const std::uint64_t then = r.now_ns();
  const counters before = r.count();
  std::uint64_t completed = 0;
  for (unsigned i = 0; i <= r.workers(); ++i) completed += r.count_worker(i).completed;
  const counters after = r.count();
  if (after.submitted < before.submitted || after.completed < before.completed ||
      after.failed < before.failed || after.reruns < before.reruns)
    f.w.blame("a counter went backwards");
  // One that has reported a task of a worker process counts it before it is complete.
  if (completed > after.submitted + after.reruns)
    f.w.blame("the workers have completed more than was handed in");
  if (r.now_ns() < then) f.w.blame("time went backwards");
  const bool has_trace = f.w.plan.config.trace_events != 0;
  expect(f, "write_trace()", r.write_trace("/dev/null"),
         has_trace ? status::ok : status::not_supported);
  if (!has_trace && f.w.plan.config.machine != place::sim && r.trace_hash() != 0)
    f.w.blame("a trace without events has a hash");
}

}  // namespace lev::exercise
