// task_state: the outcome is seen with the outputs, by one collector; whoever announced himself is
// served by the completer or sees that the task is done; a waiter that sleeps is woken; the slot is
// freed once.
#include "explore.hpp"

#include "sync/parker.hpp"
#include "task/task_state.hpp"

namespace {

using namespace model;
using bits = lev::state_bits;
using lev::status;

constexpr fault_name flag_stays = "task_state: dependants are taken while the flag stays up";

struct task {
  task() { state.open(); }

  // The steps of finish() in worker/complete.cpp.
  void complete() {
    output.set(7);
    std::uint64_t seen = bits::make(0, bits::live);
    if (!state.try_finish_alone(seen)) finish(seen);
  }
  void finish(std::uint64_t seen) {
    do {
      serve(seen);
    } while (((seen & bits::depended_on) != 0 && !fault(flag_stays)) ||
             !state.try_finish(seen, status::ok));
    if ((seen & bits::released) != 0) free();
    if ((seen & bits::crowd) != 0) {
      for (auto& p : parks) p.unpark(place);
    } else if ((seen & bits::waited) != 0) {
      parks[bits::waiter(seen)].unpark(place);
    }
    if (callback_taken != 0) call(callback_taken);
    tell(dependants_taken);
  }
  // The steps of a task that runs its child, and holds its ticket.
  void complete_own() {
    output.set(7);
    std::uint64_t seen;
    if (!state.try_finish_collected(seen, 0)) {
      finish(seen);
      collect();
    } else {
      output.set(0);
      free();
    }
  }
  void serve(std::uint64_t& seen) {
    if ((seen & bits::called_back) != 0) callback_taken = callback.get();
    if ((seen & bits::depended_on) == 0) return;
    if (!fault(flag_stays) && !state.retract(seen, bits::depended_on)) return;
    dependants_taken |= dependants.exchange(0, std::memory_order_acq_rel);
  }
  void tell(std::uint32_t list) {
    for (unsigned i = 0; i < 2; ++i) {
      if ((list >> i & 1) != 0) told[i].set(told[i].get() + 1);
    }
  }
  void free() { freed.set(freed.get() + 1); }
  void call(int what) { called.set(called.get() + what); }

  // The steps of a waiting thread: announce, look, sleep; then look again.
  void wait(unsigned self) {
    while (state.peek(0) == status::pending) {
      if (state.announce_waiter(0, self)) parks[self].park(place, sleeper::never);
    }
  }
  // The steps of on_complete().
  void call_back() {
    callback.set(5);
    if (state.announce(0, bits::called_back)) return;
    require(output.get() == 7, "the outputs are there");
    call(5);
  }
  // The steps of the submitter of dependant 1 or 2.
  void depend(unsigned which) {
    dependants.fetch_or(which, std::memory_order_acq_rel);
    if (state.announce(0, bits::depended_on)) return;
    require(state.peek(0) == status::ok, "late: it is done");
    require(output.get() == 7, "the outputs are there");
    tell(dependants.exchange(0, std::memory_order_acq_rel));
  }
  // Takes the outcome; false if another has it.
  bool collect() {
    const status s = state.collect(0);
    require(s == status::ok || s == status::stale_ticket, "done, or taken by another");
    if (s != status::ok) return false;
    require(output.get() == 7, "the outputs are there");
    output.set(0);
    state.retire();
    free();
    return true;
  }
  // The same in a hurry: false also if it is not there yet.
  bool collect_success() {
    if (!state.try_collect_success(0)) return false;
    require(output.get() == 7, "the outputs are there");
    output.set(0);
    free();
    return true;
  }
  void release() {
    if (state.release(0) != lev::task_state<env>::release_result::freed) return;
    require(output.get() == 7, "the outputs are there");
    state.retire();
    free();
  }

  lev::task_state<env> state;
  plain<int> output;
  lev::parker<env> parks[3];
  sleeper place;
  plain<int> freed;
  plain<int> callback;  // what on_complete() leaves in the slot
  plain<int> called;
  int callback_taken = 0;  // the completer's
  atomic<std::uint32_t> dependants;
  std::uint32_t dependants_taken = 0;  // the completer's
  plain<int> told[2];
};

struct one_waiter : scenario<one_waiter, 2> {
  void thread(unsigned index) {
    if (index == 0) return t->complete();
    t->wait(1);
    require(t->collect(), "nobody else collects");
  }
  void after() { require(t->freed.get() == 1 && t->state.generation() == 1, "freed once"); }
  boxed<task> t;
};

// One sleeps until the task is done, the other one also; both must wake. One of them gets the
// outcome.
struct two_waiters : scenario<two_waiters, 3> {
  void thread(unsigned index) {
    if (index == 0) return t->complete();
    t->wait(index);
    t->collect();
  }
  void after() { require(t->freed.get() == 1, "collected once"); }
  boxed<task> t;
};

// Two that do not sleep, and one that lets go of the ticket if it does not get the outcome.
struct hurried : scenario<hurried, 3> {
  void thread(unsigned index) {
    if (index == 0) return t->complete();
    if (t->collect_success() || index == 1) return;
    t->release();
  }
  void after() { require(t->freed.get() == 1 && t->state.generation() == 1, "freed once"); }
  boxed<task> t;
};

// A task that holds the ticket of its child ends it and collects it at once, unless another one
// waits for it, too: that one is woken, and one of the two gets the outcome.
struct own_child : scenario<own_child, 2> {
  void thread(unsigned index) {
    if (index == 0) return t->complete_own();
    t->wait(1);
    t->collect();
  }
  void after() { require(t->freed.get() == 1 && t->state.generation() == 1, "freed once"); }
  boxed<task> t;
};

// A callback is called, or finds the ticket used up.
struct own_child_with_callback : scenario<own_child_with_callback, 2> {
  void thread(unsigned index) {
    if (index == 0) return t->complete_own();
    t->callback.set(5);
    is_announced = t->state.announce(0, bits::called_back);
    require(is_announced || t->state.peek(0) == status::stale_ticket, "there is no outcome");
  }
  void after() {
    require(t->freed.get() == 1, "freed once");
    require(t->called.get() == (is_announced ? 5 : 0), "called once");
  }
  boxed<task> t;
  bool is_announced = false;
};

struct waiter_and_canceller : scenario<waiter_and_canceller, 3> {
  void thread(unsigned index) {
    if (index == 0) t->complete();
    if (index == 1) {
      t->wait(1);
      require(t->collect(), "nobody else collects");
    }
    if (index == 2) t->state.announce(0, bits::cancel_asked);
  }
  void after() { require(t->freed.get() == 1, "freed once"); }
  boxed<task> t;
};

struct releaser : scenario<releaser, 2> {
  void thread(unsigned index) { index == 0 ? t->complete() : t->release(); }
  void after() { require(t->freed.get() == 1 && t->state.generation() == 1, "freed once"); }
  boxed<task> t;
};

// The ticket is released while another thread sleeps until the task is done: it wakes and sees that
// the ticket is stale.
struct waiter_and_releaser : scenario<waiter_and_releaser, 3> {
  void thread(unsigned index) {
    if (index == 0) t->complete();
    if (index == 1) t->wait(1);
    if (index == 2) t->release();
  }
  void after() { require(t->freed.get() == 1, "freed once"); }
  boxed<task> t;
};

// on_complete(): the callback runs once, here or at the completer's.
template <int Threads>
struct callback : scenario<callback<Threads>, Threads> {
  void thread(unsigned index) {
    if (index == 0) return t->complete();
    if (index == 1) return t->call_back();
    t->depend(index);
  }
  void after() {
    require(t->called.get() == 5, "called once");
    require(Threads < 3 || t->told[1].get() == 1, "told once");
  }
  boxed<task> t;
};

// A thread that sees the outcome sees the outputs, without collecting.
struct poller : scenario<poller, 2> {
  void thread(unsigned index) {
    if (index == 0) return t->complete();
    if (t->state.peek(0) == status::ok) require(t->output.get() == 7, "the outputs are there");
  }
  boxed<task> t;
};

// Two dependants arrive while the task ends: each is told once, by the completer or by itself.
struct two_dependants : scenario<two_dependants, 3> {
  void thread(unsigned index) {
    if (index == 0) return t->complete();
    t->depend(index);
  }
  void after() { require(t->told[0].get() == 1 && t->told[1].get() == 1, "each is told once"); }
  boxed<task> t;
};

}  // namespace

constexpr const char* both = "the load and the change that follows both acquire";
constexpr const char* in_word = "the waiter's number is in the word; the parker orders the rest";

int main() {
  return explorer("task_state", {}, {"task/task_state.hpp"})
      .check<one_waiter>("one waiter")
      .check<two_waiters>("two waiters")
      .check<hurried>("hurried collectors")
      .check<own_child>("own child")
      .check<own_child_with_callback>("own child with callback")
      .check<waiter_and_canceller>("waiter and canceller")
      .check<releaser>("releaser")
      .check<waiter_and_releaser>("waiter and releaser")
      .check<poller>("poller")
      .check<callback<2>>("callback")
      .check<callback<3>>("callback and dependant")
      .check<two_dependants>("two dependants")
      .plant("task_state: done is stored without a look at the flags")
      .plant("task_state: a second waiter replaces the first")
      .plant("task_state: two may collect")
      .plant("task_state: two may collect a success")
      .plant("task_state: a child is ended without a look at who waits")
      .plant("task_state: release() gives up when the task is done")
      .plant(flag_stays)
      .spare("collect load acquire -> relaxed", both)
      .spare("collect change acquire -> relaxed", both)
      .spare("retract change acq_rel -> acquire", "try_finish() publishes, for both")
      .spare("announce_waiter change acq_rel -> acquire", in_word)
      .spare("announce_waiter change acq_rel -> release", in_word)
      .spare("announce_waiter load acquire -> relaxed", in_word)
      .end();
}
