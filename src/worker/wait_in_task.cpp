// wait_in_task, step by step:
//
//   1. It is there: go on.
//   2. The youngest task of its own inbox is the awaited one, or another child whose ticket is
//      held: run it on top.
//   3. Another context can go on, or a task waits in a queue and a context is free: step aside.
//   4. No context is left: run on top, of all queued tasks, the awaited one or a child.
//   5. Idle for all contexts of this participant.
//
// A task whose stack is not left (detail::stay_on_stack) has 1, 2 and 4 only, and sleeps between.
//
// So no unrelated task ever runs on top of a waiting one: depth follows the program's own
// recursion, and a task that waits for one below (its mutex, its outcome) is on another stack.
// README.md, "Waiting inside a task", proves that a wait ends.
//
// Papers: CellMT section 3 (another thread runs while one waits); 2 is the usual stack discipline
// of fork and join (Blumofe and Leiserson, JACM 1999), 4 OpenMP's task scheduling constraint.
#include "worker/wait_in_task.hpp"

#include "worker/batch.hpp"
#include "worker/close_mailbox.hpp"
#include "worker/complete.hpp"
#include "worker/execute.hpp"
#include "worker/idle.hpp"
#include "worker/serve.hpp"
#include "worker/straight.hpp"
#include "worker/take.hpp"
#include "worker/worker.hpp"

namespace lev {

namespace {

bool does_another_work(engine& e, const participant& self) noexcept {
  for (const participant& p : e.in_use()) {
    if (&p != &self && is_at_work(p)) return true;
  }
  return false;
}

// Whether another participant than the caller runs something, and how many tasks have ended. A task
// that is awaited in another runtime may go on there: then all runtimes are looked at, and the
// caller's own waits with a time-out, as that may be the one of the guest.
bool does_anything_go_on(engine& e, const participant& self, giving_up how,
                         std::uint64_t* ended) noexcept {
  if (e.guests_waiting.load(memory_order_relaxed) != 0) {
    const bool is_known = how == giving_up::when_still
                              ? e.crew->is_under_way()
                              : self.contexts != nullptr && self.contexts->timed_count != 0;
    return e.does_anybody_go_on(self, how, ended) || is_known;
  }
  *ended = count_ends(e);
  return does_another_work(e, self);
}

}  // namespace

bool stillness::lasts(engine& e, const participant& self, giving_up how) noexcept {
  const std::uint64_t now_ns = e.machine->now_ns();
  const bool was_away = now_ns - looked_ns_ > larger(2 * look_ns, patience_ns_ / 8);
  looked_ns_ = now_ns;
  std::uint64_t ended = 0;
  const bool goes_on = does_anything_go_on(e, self, how, &ended);
  if (was_away || goes_on || ended != ended_) {
    ended_ = ended;
    since_ns_ = now_ns;
  }
  return now_ns - since_ns_ >= patience_ns_;
}

namespace {

// A host in its own program, or one that will return to it, may still do something about it; so may
// a wait that ends by its time.
bool is_everybody_waiting(engine& e) noexcept {
  for (const participant& p : e.in_use()) {
    const bool is_host = p.index >= e.first_host;
    if (is_host && p.is_bound.load(memory_order_relaxed) == 0) continue;
    const std::uint32_t now = p.doing.load(memory_order_relaxed);
    if (now == activity::waits_until || (is_host && now == activity::elsewhere)) return false;
  }
  return true;
}

bool is_awaited(engine& e, const awaited& what, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  return what.awaits(task) || ((s.flags & task_is_piece) != 0 && what.awaits(s.parent));
}

// Whether the ticket of `task`, or of the whole of which it is a piece, is held.
bool has_ticket(engine& e, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  const std::uint32_t whole = whole_of(s, task);
  return (e.task_slots.at(whole).state.word() & state_bits::released) == 0;
}

// Whether `task`, which the caller has taken from its inbox, may run on top of the waiting one. The
// waiting task will wait for its child next, unless it has let go of the ticket: then the child may
// itself wait for something that comes after its parent.
bool may_run_on_top(engine& e, const participant& self, const awaited& what,
                    std::uint32_t task) noexcept {
  return is_awaited(e, what, task) ||
         (is_own_child(e, self, e.task_slots.at(task)) && has_ticket(e, task));
}

// The same when no context is left. A guest from another runtime may need any task of this one; not
// so where a host only starts nothing new: that task might wait for the one below, and others
// should have contexts for it.
bool is_related(engine& e, const participant& self, const awaited& what,
                std::uint32_t task) noexcept {
  const bool has_context = self.contexts != nullptr && self.contexts->free != nullptr;
  return (what.is_elsewhere() && !has_context) || is_awaited(e, what, task) ||
         is_own_child(e, self, e.task_slots.at(task));
}

bool run_own(engine& e, participant& self, const awaited& what) noexcept {
  LEV_DCHECK(runs_here(self));
  std::uint32_t task = 0;
  if (!self.inbox.try_pop(&task)) return false;
  if (may_run_on_top(e, self, what, task)) return run_on_top(e, self, task), true;
  // Between the two it was in no queue: a sleeper's last look may have missed it.
  if (!push_own(e, self, task)) push_ready(e, self, task);
  wake_worker(e, self);
  return false;
}

// A host that would go back to its program starts nothing new.
bool is_leaving(const participant& self) noexcept {
  return self.contexts != nullptr && self.contexts->is_leaving;
}
bool may_start(const participant& self) noexcept {
  return self.contexts != nullptr && self.contexts->free != nullptr && !self.contexts->is_leaving;
}

// Another task would want slots, too: when slots are short, one is started only if no other
// participant works, in the hope that it frees some.
bool is_worth_starting(engine& e, participant& self, giving_up how) noexcept {
  return may_start(self) && has_work(e, self) &&
         (how != giving_up::when_still || !does_another_work(e, self));
}

// Lets another context go on: one whose wait is over, a polling one, or a new one. False: there is
// none, or nothing for it to do.
bool step_aside(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                giving_up how) noexcept {
  contexts* c = contexts_of(self);
  if (c == nullptr) return false;
  if (c->waiting != nullptr) wake_waiters(*c);
  if (c->live == 1 && !(is_worth_starting(e, self, how) && start_tasks(*c))) return false;
  if (how == giving_up::when_still)
    deadline_ns = smaller(deadline_ns, e.machine->now_ns() + stillness::look_ns);
  suspend(*c, what, deadline_ns);
  return true;
}

// How much of the queues a search goes through. It takes what it looks at out of them.
enum class reach : std::uint8_t { near, whole };
constexpr std::uint32_t near_count = 64;

// Tasks that are taken from a queue and not run are for others.
class taken_away {
 public:
  taken_away(engine& e, participant& self) noexcept : engine_(e), self_(self) {}
  ~taken_away() {
    if (is_any_) wake_worker(engine_, self_);
  }
  taken_away(taken_away&&) = delete;
  void give(std::uint32_t task) noexcept { give(task, *self_.ready.home); }
  void give(std::uint32_t task, index_ring<>& ring) noexcept {
    push_ready(engine_, ring, task);
    is_any_ = true;
  }
  // Puts them back where they were in self's inbox, the first one on top. In the ready queue the
  // youngest would come after all others, and work would go on in breadth, with ever more tasks
  // that wait.
  void put_back(const std::uint32_t* tasks, std::uint32_t count) noexcept {
    if (count == 0) return;
    is_any_ = true;
    if (push_all_own(engine_, self_, tasks, count)) return;
    for (std::uint32_t i = 0; i < count; ++i) give(tasks[i]);
  }

 private:
  engine& engine_;
  participant& self_;
  bool is_any_ = false;
};

// Looks where filters and dicing keep tasks back: while the ready queue is full of tasks that
// nobody has a context for, no pass would move the related one. A child is seldom alone there, and
// each search goes through the whole line: so the next ones come to self's inbox with it. A guest
// finds that any task will do, and takes one.
template <class Related>
bool find_kept_back(engine& e, participant& self, const Related& is_it, bool is_guest,
                    taken_away& others, std::uint32_t* task) noexcept {
  constexpr std::uint32_t taken_max = 16;
  if (!e.sched.has_waiting()) return false;
  pass_report report(self.counters.submitted);
  std::uint32_t taken[taken_max];
  const std::uint32_t count =
      e.sched.take_if(is_it, self.free_slots, report, taken, is_guest ? 1 : taken_max);
  if (count != 0) {
    *task = taken[0];
    others.put_back(taken + 1, count - 1);
  }
  end_pass(e, self, report);
  if (report.passes != 0) wake_worker(e, self);
  return count != 0;
}

bool find_in_own_inbox(engine& e, participant& self, const awaited& what, reach how,
                       taken_away& others, std::uint32_t* task) noexcept {
  std::uint32_t passed[near_count];
  std::uint32_t count = 0;
  bool is_there = false;
  while ((count < near_count || how == reach::whole) && self.inbox.try_pop(task)) {
    if ((is_there = is_related(e, self, what, *task))) break;
    if (count < near_count)
      passed[count++] = *task;
    else
      others.give(*task);
  }
  others.put_back(passed, count);
  return is_there;
}

// Once round the ready queue, or the beginning of each ring.
bool find_in_ready(engine& e, participant& self, const awaited& what, reach how, taken_away& others,
                   std::uint32_t* task) noexcept {
  return e.sched.ready().each([&](index_ring<>& ring) noexcept {
    std::uint32_t left = ring.size();
    if (how == reach::near) left = smaller(left, near_count);
    for (; left != 0 && ring.try_pop(task); --left) {
      if (is_related(e, self, what, *task)) return true;
      others.give(*task, ring);
    }
    return false;
  });
}

// Looks for a task that may run on top in self's inbox, the ready queue, behind it, and in the
// inboxes of idle participants, as they may have no context left, too.
bool find_related(engine& e, participant& self, const awaited& what, reach how,
                  std::uint32_t* task) noexcept {
  taken_away others(e, self);
  // No context takes tasks here: those of the backlog must come to the queues, too.
  if (!e.backlog.looks_empty()) admit_backlog(e, self);
  if (find_in_own_inbox(e, self, what, how, others, task)) return true;
  if (e.sched.has_waiting()) {
    run_pass(e, self);
    wake_worker(e, self);
  }
  if (find_in_ready(e, self, what, how, others, task)) return true;
  if (how == reach::near) return false;
  const auto is_wanted = [&](std::uint32_t t) noexcept { return is_related(e, self, what, t); };
  if (find_kept_back(e, self, is_wanted, what.is_elsewhere(), others, task)) return true;
  for (participant& p : e.in_use()) {
    if (&p == &self || p.doing.load(memory_order_relaxed) == activity::serves) continue;
    while (p.inbox.try_steal(task)) {
      if (is_wanted(*task)) return true;
      others.give(*task);
    }
  }
  return false;
}

bool run_related(engine& e, participant& self, const awaited& what, reach how) noexcept {
  give_back_ahead(e, self);
  std::uint32_t task = 0;
  if (!find_related(e, self, what, how, &task)) return false;
  run_on_top(e, self, task);
  return true;
}

// For a participant without a context left. What is awaited runs elsewhere as a rule, and ends
// soon: between a short search and one through all queues, the participant polls for as long as the
// long one would take. True: a task ran, or one of the participant's waits may be over.
bool run_related_or_see(engine& e, participant& self, awaited& what,
                        std::uint64_t deadline_ns) noexcept {
  constexpr std::uint32_t tasks_per_look = 32;
  constexpr std::uint32_t looks_max = 32;
  if (run_related(e, self, what, reach::near)) return true;
  const std::uint32_t queued = e.sched.ready().size() + self.inbox.size();
  whichever any(self, what);
  return ends_soon(e, self, any, any.deadline_ns(deadline_ns),
                   smaller(1 + queued / tasks_per_look, looks_max)) ||
         run_related(e, self, what, reach::whole);
}

// For a wait whose time is over, even before it has let others run: otherwise tasks that wait in
// short steps would keep all others from running.
void let_another_go_on(engine& e, participant& self, const awaited& what, giving_up how) noexcept {
  contexts* c = contexts_of(self);
  if (c == nullptr) return;
  if (!may_start(self) && self.nest < e.settings.nest_max &&
      run_related(e, self, what, reach::whole))
    return;
  if (c->waiting != nullptr) wake_waiters(*c);
  if (is_worth_starting(e, self, how)) start_tasks(*c);
  let_others_run(*c);
}

// Whether a new task would matter to this participant, which has left none alone.
bool is_looking(engine& e, participant& self, giving_up how) noexcept {
  return may_start(self) && (how != giving_up::when_still || !has_work(e, self));
}

// The end of one turn without anything to do. False: waiting on is in vain.
bool idle_in_task(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                  stillness& quiet, giving_up how) noexcept {
  const bool is_blocked = !is_looking(e, self, how);
  whichever any(self, what);
  deadline_ns = any.deadline_ns(deadline_ns);
  // One that ends by its time leaves a context to the others.
  const bool may_give_up = how == giving_up::when_all_wait && deadline_ns == no_deadline &&
                           is_blocked && is_everybody_waiting(e);
  if (may_give_up && quiet.lasts(e, self, how)) return false;
  if (is_blocked) {
    idle_blocked(e, self, any, deadline_ns);
  } else {
    if (how == giving_up::when_still)
      deadline_ns = smaller(deadline_ns, e.machine->now_ns() + stillness::look_ns);
    idle(e, self, any, deadline_ns, wait_policy::help);
  }
  return !e.machine->is_stuck();
}

}  // namespace

bool tell_tails_aside(engine& e, participant& self) noexcept {
  LEV_DCHECK(self.running != nullptr);
  const bool has_tails =
      (self.draining != nullptr && has_tail(e, *self.draining)) ||
      (self.aside.ended_pieces != 0 && has_callback(e, self.ended_pieces_join)) ||
      owes_failures(self);
  if (!has_tails || contexts_of(self) == nullptr) return false;
  tell_ends_aside(*self.contexts);
  return true;
}

void tell_before_wait(engine& e, participant& self) noexcept {
  tell_tails_aside(e, self);
  if (owes_ends(self)) tell_ends(e, self);
}

namespace {

bool run_above(engine& e, participant& self, std::uint32_t task, const child* by) noexcept {
  LEV_DCHECK(self.running != nullptr && self.running->task != task);
  turn_to_work(e, self, false);
  slot& s = e.task_slots.at(task);
  return run_plainly(e, self, s, task, s.state.word(), by);
}

// Takes a child out of its own inbox if it is the youngest there. One whose ticket was released may
// wait for what its parent does next, and the number of a ticket that was used up may be another
// task's by now.
bool take_child(engine& e, participant& self, child one) noexcept {
  // A callback may wait for the task, or for one that waits for its mutex: before it is in hand.
  if (self.inbox.ends_with(one.task()) && owes_ends(self)) tell_before_wait(e, self);
  return self.inbox.ends_with(one.task()) &&
         e.task_slots.at(one.task()).state.is_pending(one.generation()) &&
         self.inbox.try_pop_last();
}

}  // namespace

bool run_taken_child(engine& e, participant& self, child one) noexcept {
  const mode_of_waiter m(self);
  return run_above(e, self, one.task(), &one);
}

bool run_child_with_care(engine& e, participant& self, child one) noexcept {
  return take_child(e, self, one) && run_taken_child(e, self, one);
}

void run_on_top(engine& e, participant& self, std::uint32_t task) noexcept {
  const hook_call::beneath hooks;
  run_above(e, self, task, nullptr);
}

namespace {

// For a task whose stack is not left: what it waits for, and its children, run on top; the other
// contexts stand still. It gives up where nothing has run for a second: hosts in their own programs
// may help then, too, but need not.
bool wait_on_stack(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                   giving_up how) noexcept {
  constexpr std::uint64_t patience_ns = 1'000'000'000;
  constexpr std::uint32_t turns_per_search = 8;
  stillness quiet(how == giving_up::when_still ? stillness::usual_ns : patience_ns);
  const bool may_stack = self.nest < e.settings.nest_max;
  tell_before_wait(e, self);
  close_mailbox(e, self);
  for (std::uint32_t turn = 0; !what.is_there(); ++turn) {
    const bool ran =
        may_stack && (run_own(e, self, what) ||
                      (turn % turns_per_search == 0 && run_related(e, self, what, reach::whole)));
    if (deadline_ns != no_deadline && e.machine->now_ns() >= deadline_ns) return what.is_there();
    if (ran) {
      turn = turns_per_search - 1;  // there may be more
      continue;
    }
    const bool may_give_up = how == giving_up::when_still || deadline_ns == no_deadline;
    if (may_give_up && quiet.lasts(e, self, giving_up::when_still)) return false;
    idle_on_stack(e, self, what, deadline_ns);
    if (e.machine->is_stuck()) return false;
  }
  return true;
}

bool wait_and_give_way(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                       giving_up how) noexcept {
  tell_before_wait(e, self);
  close_mailbox(e, self);
  stillness quiet;
  // At the allowed depth it is set aside in any case: other contexts run its children, at the
  // bottom of their stacks.
  const bool may_stack = self.nest < e.settings.nest_max;
  bool is_there = false;
  // A leaving host goes on with other contexts between its searches: now and then it looks at all.
  constexpr std::uint32_t turns_per_whole = 8;
  for (std::uint32_t turn = 1; !(is_there = what.is_there()); ++turn) {
    const reach how_far = turn % turns_per_whole == 0 ? reach::whole : reach::near;
    const bool ran = may_stack && run_own(e, self, what);
    if (deadline_ns != no_deadline && e.machine->now_ns() >= deadline_ns) {
      let_another_go_on(e, self, what, how);
      is_there = what.is_there();
      break;
    }
    if (ran || (may_stack && is_leaving(self) && run_related(e, self, what, how_far))) continue;
    if (how == giving_up::when_still && quiet.lasts(e, self, how)) break;
    if (step_aside(e, self, what, deadline_ns, how)) continue;
    if (may_stack && !may_start(self) && run_related_or_see(e, self, what, deadline_ns)) continue;
    if (!idle_in_task(e, self, what, deadline_ns, quiet, how)) break;
  }
  return is_there;
}

}  // namespace

bool wait_in_task(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                  giving_up how) noexcept {
  LEV_DCHECK(self.running != nullptr);
  const job* const waits = self.running;
  detail::batch::send_all(self);
  const mode_of_waiter m(self);
  self.told = participant::untold;
  const bool is_there = self.staying == 0 ? wait_and_give_way(e, self, what, deadline_ns, how)
                                          : wait_on_stack(e, self, what, deadline_ns, how);
  if (self.aside.ended_pieces != 0) tell_before_wait(e, self);  // the task may take long now
  LEV_DCHECK(self.running == waits);
  wake_another(e, self);
  return is_there;
}

}  // namespace lev
