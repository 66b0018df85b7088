// The pipeline: take, stage, execute, write back, complete. With asynchronous copies three tasks
// are on their way at once: one executes, the next ones are staged, the last one's outputs are
// written back.
//
// Papers: TPC section 3.1 (task states; fetch as many as the local store allows), Jack Rabbit
// section 4.5 (multi-buffering).
#include "worker/worker.hpp"

#include "task/slice.hpp"
#include "worker/await_ends.hpp"
#include "worker/complete.hpp"
#include "worker/contexts.hpp"
#include "worker/execute.hpp"
#include "worker/idle_among.hpp"
#include "worker/share_core.hpp"
#include "worker/stage.hpp"
#include "worker/strips.hpp"
#include "worker/take.hpp"
#include "worker/write_back.hpp"

#include <utility>

namespace lev {

namespace {

// Times one step for the trace; costs a test of one pointer when there is none.
class traced {
 public:
  traced(engine& e, participant& self, step what, const job& j) noexcept
      : engine_(e),
        self_(self),
        job_(j),
        what_(what),
        begin_ns_(self.events.is_open() ? e.place->now_ns() : 0) {
    if (self.events.is_open() && is_busy() && self.executing++ == 0) self.busy_since_ns = begin_ns_;
  }
  ~traced() {
    if (!self_.events.is_open()) return;
    const std::uint64_t end_ns = engine_.place->now_ns();
    const std::uint32_t context = self_.held == nullptr ? 0 : self_.held->current->number;
    self_.events.record(
        {begin_ns_, end_ns, job_.task, job_.procedure, what_, static_cast<std::uint8_t>(context)});
    // Tasks of several contexts overlap: their time is counted once.
    if (is_busy() && --self_.executing == 0)
      self_.counters.busy_ns.add(end_ns - self_.busy_since_ns);
  }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;

 private:
  bool is_busy() const noexcept { return what_ == step::execute && self_.nest == 0; }

  engine& engine_;
  participant& self_;
  const job& job_;
  step what_;
  std::uint64_t begin_ns_;
};

[[gnu::always_inline]] inline bool stage_job(engine& e, participant& self, job& j,
                                             bool must) noexcept {
  if ((j.flags & task_staged) == 0 || (j.flags & task_too_big) != 0) return true;
  const traced t(e, self, step::stage, j);
  return stage(e, self, j, must);
}

// A task larger than the local store.
[[gnu::noinline]] void execute_in_strips(engine& e, participant& self, job& j) noexcept {
  const traced t(e, self, step::execute, j);
  descriptor whole;
  read_descriptor(e.pool, j.task, whole);
  run_strips(e, self, j, whole, 0);
}

[[gnu::noinline]] void write_back_job(engine& e, participant& self, job& j) noexcept {
  const traced t(e, self, step::write_back, j);
  write_back(e, j, [&](unsigned i) -> const argument& { return e.pool.argument_at(j.task, i); });
}

// Times the items of a sliced task, for the grain of the next one. Virtual time has unit costs.
[[gnu::noinline]] void execute_timed(engine& e, participant& self, job& j) noexcept {
  std::uint64_t items = 0;
  for (unsigned i = 0; i < j.argument_count && items == 0; ++i) {
    if ((j.arguments[i].flags & argument_sliced) != 0) items = slice_items(j.arguments[i]);
  }
  if (items == 0 || e.caps.virtual_time) return execute(e, self, j);
  const std::uint32_t place =
      item_costs::place_of(j.procedure, j.arguments.data(), j.argument_count);
  const std::uint64_t begin_ns = e.place->now_ns();
  execute(e, self, j);
  e.costs.note(place, items, e.place->now_ns() - begin_ns);
}

// Others run while a task's data is on its way.
inline void await_staged(engine& e, participant& self, std::uint32_t tag) noexcept {
  while (has_company(self) && !e.place->is_tag_done(tag)) pass_turn(*self.held);
  e.place->wait_tag(tag);
}

// From staged to executed, with the outputs on their way.
[[gnu::always_inline]] inline void execute_job(engine& e, participant& self, job& j) noexcept {
  if (self.notice_count != 0 && self.notice_join != j.parent) flush_notices(e, self);
  if (is_cancelled(e, j)) {
    j.result = status::cancelled;
    return;
  }
  if ((j.flags & task_too_big) != 0) return execute_in_strips(e, self, j);
  if ((j.flags & task_staged) != 0) await_staged(e, self, j.tag);
  {
    const traced t(e, self, step::execute, j);
    if ((j.flags & task_timed) != 0) {
      execute_timed(e, self, j);
    } else {
      execute(e, self, j);
    }
  }
  if ((j.flags & task_staged) != 0) write_back_job(e, self, j);
}

[[gnu::always_inline]] inline void complete_job(engine& e, participant& self, job& j) noexcept {
  if ((j.flags & task_staged) != 0) {
    e.place->wait_tag(j.tag);
    release_room(self, j);
  }
  complete(e, self, j.task, j.seen, j.flags, j.result, j.task_code);
}

// A task whose data found no room waits for its turn in the queue, where others may take it.
void put_back(engine& e, participant& self, const job& j) noexcept {
  push_ready(e, j.task);
  ring(e, self.index + 1);
}

[[gnu::always_inline]] inline void run_job(engine& e, participant& self, job& j) noexcept {
  if (!stage_job(e, self, j, true)) {
    j.result = status::out_of_memory;
    complete(e, self, j.task, j.seen, j.flags, j.result, 0);
    return;
  }
  execute_job(e, self, j);
  complete_job(e, self, j);
}

job* new_frame(engine& e, participant& self) noexcept {
  for (std::uint32_t i = 0; i < frames_of(e); ++i) {
    if ((self.frames_used & std::uint64_t{1} << i) != 0) continue;
    self.frames_used |= std::uint64_t{1} << i;
    self.frames[i].tag = i;
    return &self.frames[i];
  }
  return nullptr;
}
void free_frame(participant& self, const job* j) noexcept {
  self.frames_used &= ~(std::uint64_t{1} << j->tag);
}

// Completes the task whose outputs are on their way.
bool drain(engine& e, participant& self) noexcept {
  if (self.draining == nullptr) return false;
  job* j = self.draining;
  self.draining = nullptr;
  complete_job(e, self, *j);
  free_frame(self, j);
  return true;
}

}  // namespace

void settle(engine& e, participant& self) noexcept {
  drain(e, self);
  flush_notices(e, self);
  tell_barrier(e);
}

namespace {

// A letter that arrives while its worker turns to other work goes to the ready queue.
void forward_letter(engine& e, participant& self) noexcept {
  while (self.mail.letter_announced(self.mail_seen)) {
    letter l;
    if (self.mail.try_receive(&self.mail_seen, &l)) {
      push_ready(e, l.task);
      ring(e, self.index + 1);
      return;
    }
    e.place->relax();  // it is being written, or retracted
  }
}

[[gnu::noinline]] void turn_away(engine& e, participant& self) noexcept {
  // Pairs with the submitter's look after its lease. Sequentially consistent: the look for a letter
  // comes after it.
  self.is_polling.exchange(0, memory_order_seq_cst);
  forward_letter(e, self);
}

inline void stop_polling(engine& e, participant& self) noexcept {
  if (self.is_polling.load(memory_order_relaxed) != 0) turn_away(e, self);
}

// After a task was taken: it is no letter, so the mailbox is not polled for a while; and somebody
// else may have to watch.
inline void turn_to_work(engine& e, participant& self, const job& j) noexcept {
  if (!j.is_direct) stop_polling(e, self);
  if (!self.hands_over) return;
  self.hands_over = false;
  if (!looks_idle(e, self)) ring(e, self.index + 1);
}

bool take_ahead(engine& e, participant& self) noexcept {
  job* j = new_frame(e, self);
  if (j == nullptr) return false;
  if (!(self.ahead_count == 0 ? take(e, self, *j) : take_queued(e, self, *j))) {
    free_frame(self, j);
    return false;
  }
  turn_to_work(e, self, *j);
  // The first in line must get room, if need be that of the task before; those behind it only if
  // there is some.
  bool is_staged = stage_job(e, self, *j, false);
  if (!is_staged && self.ahead_count == 0) {
    drain(e, self);
    is_staged = stage_job(e, self, *j, true);
  }
  if (!is_staged) {
    put_back(e, self, *j);
    free_frame(self, j);
    return false;
  }
  self.ahead[self.ahead_count++] = j;
  return true;
}

job* next_ahead(participant& self) noexcept {
  job* j = self.ahead[0];
  --self.ahead_count;
  for (std::uint32_t i = 0; i < self.ahead_count; ++i) self.ahead[i] = self.ahead[i + 1];
  return j;
}

// One turn with asynchronous copies: slot n executes, n+1 and on are being staged, n-1 is being
// written back.
bool run_ahead(engine& e, participant& self) noexcept {
  if (self.ahead_count == 0 && !take_ahead(e, self)) return drain(e, self);
  job* j = next_ahead(self);
  while (self.ahead_count + 1 < e.depth && take_ahead(e, self)) {
  }
  execute_job(e, self, *j);
  drain(e, self);
  if (self.ahead_count != 0 && (j->flags & task_staged) != 0) {
    self.draining = j;
  } else {
    complete_job(e, self, *j);
    free_frame(self, j);
  }
  return true;
}

// A task waits below: run what is staged already, or take a task as it comes.
bool run_nested(engine& e, participant& self) noexcept {
  if (self.ahead_count == 0) {
    job j;
    if (!take(e, self, j)) return false;
    turn_to_work(e, self, j);
    run_job(e, self, j);
    return true;
  }
  job* j = next_ahead(self);
  execute_job(e, self, *j);
  complete_job(e, self, *j);
  free_frame(self, j);
  return true;
}

constexpr std::uint32_t looks_per_clock = 4;

bool has_work(engine& e, participant& self) noexcept {
  if (e.remote != nullptr) return has_remote_work(e);
  if (self.mail.has_letter(self.mail_seen) || !e.sched.ready().looks_empty() ||
      e.sched.has_waiting())
    return true;
  const std::uint32_t used = e.people_used.load(memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (!e.people[i].box.looks_empty()) return true;
  }
  return false;
}

// Serves a letter in the middle of polling. The worker stays where it is, so that the next letter
// finds it at the mailbox; what else it owes the others (settle) waits until no letter comes for a
// moment.
void serve_letter(engine& e, participant& self) noexcept {
  self.hands_over = e.bell.stop_spinning();
  run_one(e, self);
  e.bell.start_spinning();
}

// Looks at the mailbox and at `what` until there is something, for about the time `turns` turns of
// relax() take. The first looks come without relax(): a turn of it lasts as long as the fastest
// tasks.
enum class polled { nothing, letter, awaited };
polled poll(engine& e, participant& self, awaited& what, bool helps, std::uint32_t turns) noexcept {
  constexpr std::uint32_t looks_per_turn = 8;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (std::uint32_t look = 0; helps && look < looks_per_turn; ++look) {
      if (self.mail.has_letter(self.mail_seen)) return polled::letter;
    }
    if (what.is_there()) return polled::awaited;
    e.place->relax();
  }
  return polled::nothing;
}

// Polls until there is work, `what` is there, or the time is up. False: time is up.
//
// The mailbox and `what` are looked at all the time: their lines change only when there is
// something. The shared queues are looked at less often, at random distances: every look takes
// their lines away from a submitter in full flow, who then waits for them at each task (gcell
// section 3.3: randomized back-off of the pullers).
bool spin(engine& e, participant& self, awaited& what, bool helps,
          std::uint64_t until_ns) noexcept {
  std::uint32_t looked = 0;
  bool has_served = false;
  for (;;) {
    if (helps && has_work(e, self)) return true;
    const std::uint32_t turns = e.turns_per_look + self.random.below(e.turns_per_look);
    polled found;
    while ((found = poll(e, self, what, helps, turns)) == polled::letter) {
      if (self.running != nullptr || self.frames != nullptr) return true;
      serve_letter(e, self);
      has_served = true;
    }
    if (found == polled::awaited || has_served) return true;
    if (++looked % looks_per_clock == 0 && e.place->now_ns() >= until_ns) return false;
  }
}

void idle_remote(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                 bool sleeps) noexcept {
  const std::uint64_t spin_ns = e.remote->is_crowded() ? 0 : e.settings.spin_ns;
  const std::uint64_t spin_end_ns =
      sleeps ? smaller(e.place->now_ns() + spin_ns, deadline_ns) : deadline_ns;
  if (spin_remote(e, self, what, spin_end_ns) || !sleeps) return;
  if (linger_remote(e, self, what, lingerer::span_ns(spin_ns), deadline_ns)) return;
  sleep_remote(e, self, what, deadline_ns);
}

void sleep(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
           bool helps) noexcept {
  if (helps) e.bell.start_sleeping(self.index);
  if (what.arm() && !what.is_there() && (!helps || looks_idle(e, self))) {
    self.counters.parks.add(1);
    job none;
    none.task = no_slot;
    const traced t(e, self, step::park, none);
    self.park.park(*e.place, deadline_ns);
  }
  what.disarm();
  if (helps) e.bell.stop_sleeping(self.index);
}

// Looks for work, then sleeps; returns when it is worth looking again.
void idle(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
          wait_policy how) noexcept {
  settle(e, self);
  if (e.pool.flush(self.free_slots)) tell_space(e);
  if (how == wait_policy::yield) return idle_yielding(e, what, deadline_ns);
  if (how == wait_policy::directed) return idle_directed(e, self, what, deadline_ns);
  const bool sleeps = how != wait_policy::spin;
  if (e.remote != nullptr) return idle_remote(e, self, what, deadline_ns, sleeps);
  const bool helps = how == wait_policy::help;
  self.hands_over = false;
  if (helps) {
    e.bell.start_spinning();
    if (self.is_worker && self.is_polling.load(memory_order_relaxed) == 0)
      self.is_polling.store(1, memory_order_relaxed);
  }
  const std::uint64_t spin_end_ns =
      sleeps ? smaller(e.place->now_ns() + e.settings.spin_ns, deadline_ns) : deadline_ns;
  if (!spin(e, self, what, helps, spin_end_ns) && sleeps) sleep(e, self, what, deadline_ns, helps);
  if (helps) self.hands_over = e.bell.stop_spinning();
}

// While a participant serves, every task starts with the floating-point mode the server has, and
// this_task() knows a host, too.
class serving {
 public:
  explicit serving(participant& self) noexcept
      : self_(self), outer_(std::exchange(self.float_mode, float_mode())) {
    if (self.is_worker) return;
    outer_actor_ = current_actor();
    set_current_actor(&self);
  }
  ~serving() {
    self_.float_mode = outer_;
    if (!self_.is_worker) set_current_actor(outer_actor_);
  }
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;

 private:
  participant& self_;
  std::uint64_t outer_;
  void* outer_actor_ = nullptr;
};

// What this participant has taken and will not run now is for others.
void return_inbox(engine& e, participant& self) noexcept {
  std::uint32_t task = 0;
  while (self.box.try_pop(&task)) {
    push_ready(e, task);
    ring(e, self.index + 1);
  }
}

// The service looks after the processes, too.
bool run_one_remote(engine& e, participant& self) noexcept {
  if (is_service(e, self)) attend(e, self);
  return tend(e, self);
}

}  // namespace

bool run_one(engine& e, participant& self) noexcept {
  if (e.remote != nullptr) return run_one_remote(e, self);
  if (self.running != nullptr) return run_nested(e, self);
  if (self.frames != nullptr) return run_ahead(e, self);
  job j;
  if (self.held != nullptr) j.tag = self.held->current->number;
  if (!take(e, self, j)) return false;
  turn_to_work(e, self, j);
  run_job(e, self, j);
  return true;
}

bool help(engine& e, participant& self) noexcept {
  const serving s(self);
  return run_one(e, self);
}

void leave(engine& e, participant& self) noexcept {
  if (self.running != nullptr) return;
  const serving s(self);
  if (has_company(self)) finish_company(e, self);
  while (self.ahead_count != 0) run_one(e, self);
  settle(e, self);
  return_inbox(e, self);
}

bool serve_until(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                 wait_policy how) noexcept {
  const bool helps = how == wait_policy::help;
  drain(e, self);
  flush_notices(e, self);
  const watching w(e, self);
  const serving s(self);
  // Who will run nothing while he waits must not sit on what he took before.
  if (!helps) leave(e, self);
  bool is_there = false;
  std::uint64_t idle_since_ns = 0;
  for (;;) {
    if ((is_there = what.is_there())) break;
    // Tending remote workers' lines is no task, and somebody must do it.
    const bool ran = (helps || e.remote != nullptr) && run_one(e, self);
    if (deadline_ns != no_deadline && e.place->now_ns() >= deadline_ns) break;
    if (ran) {
      idle_since_ns = 0;
      if (has_company(self)) pass_turn(*self.held);
      continue;
    }
    if (has_company(self)) {
      idle_among(e, self, what, deadline_ns, &idle_since_ns);  // they are in tasks, and help
    } else {
      idle(e, self, what, deadline_ns, how);
    }
    if (e.place->is_stuck()) break;
  }
  stop_polling(e, self);
  if (self.running == nullptr) leave(e, self);
  if (self.hands_over) {
    self.hands_over = false;
    if (!looks_idle(e, self)) ring(e, self.index + 1);
  }
  return is_there;
}

void work(engine& e, participant& self) noexcept {
  struct stop final : awaited {
    explicit stop(engine& home) noexcept : e(home) {}
    bool is_there() noexcept override { return e.stopping.load(memory_order_relaxed) != 0; }
    bool arm() noexcept override { return true; }
    engine& e;
  } until(e);
  serve_until(e, self, until, no_deadline, wait_policy::help);
}

}  // namespace lev
