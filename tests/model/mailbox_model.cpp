// mailbox: every task reaches the worker once, as a letter or by the ready queue, and a worker that
// sleeps or closes its mailbox does not overlook a letter. The two sides are try_direct() of
// runtime/submit.cpp and idle() of worker/idle.cpp with close_mailbox(), without what does not
// concern the mailbox; pipeline_model.cpp runs the originals.
#include "explore.hpp"

#include "queue/index_ring.hpp"
#include "queue/mailbox.hpp"
#include "sync/doorbell.hpp"
#include "sync/parker.hpp"

namespace {

using namespace model;

constexpr fault_name no_look = "try_direct: no look at is_mailbox_open after the lease";
constexpr fault_name late_look = "try_direct: the look at the sleep flag comes before the lease";
constexpr fault_name no_forward = "close_mailbox: no look for a letter";
constexpr fault_name no_last_look = "sleep: no look for an announced letter";

struct letter {
  plain<std::uint32_t> task;
};

struct office {
  office() {
    flags[0] = &asleep;
    doorbell.open(flags, 1);
    ready.open(cells, 2);
  }

  // The submitters' side.
  bool try_direct(std::uint32_t task) {
    if (is_mailbox_open.load(std::memory_order_relaxed) == 0) return false;
    const bool slept = doorbell.sleeps(0);
    if (!mailbox.try_lease(task + 1)) return false;
    const bool sleeps = fault(late_look) ? slept : doorbell.sleeps(0);
    if (is_mailbox_open.load(std::memory_order_seq_cst) == 0 && !fault(no_look)) {
      mailbox.retract();
      return false;
    }
    mailbox.deliver({task});
    if (sleeps && doorbell.claim(0)) parks[2].unpark(place);
    return true;
  }
  void submit(std::uint32_t task) {
    contents[task].set(task + 10);
    const bool direct = try_direct(task);
    if (!direct) {
      while (!ready.try_push(task)) env::pause();
      ring();
    }
    parks[task].park(place, sleeper::never);
    require(contents[task].get() == task + 20, "the task has run");
    if (direct) mailbox.release_lease();
  }
  void ring() {
    if (doorbell.someone_needed() && doorbell.wake_one(0) == 0) parks[2].unpark(place);
  }

  // The worker's side.
  void serve(unsigned count) {
    while (count != 0) {
      std::uint32_t task = 0;
      if (const letter* l = mailbox.try_receive(&seen); l != nullptr) {
        run(l->task);
        --count;
      } else if (ready.try_pop(&task)) {
        close_mailbox();
        plain<std::uint32_t> own;
        own.set(task);
        run(own);
        --count;
      } else {
        idle();
      }
    }
  }
  // The body reads what it was sent where it lies, to its end.
  void run(const plain<std::uint32_t>& sent) {
    const std::uint32_t task = sent.get();
    require(task < 2 && contents[task].get() == task + 10, "a task that was submitted, once");
    contents[task].set(task + 20);
    require(sent.get() == task, "the letter stays until its task has run");
    parks[task].unpark(place);
  }
  void close_mailbox() {
    if (is_mailbox_open.load(std::memory_order_relaxed) == 0) return;
    is_mailbox_open.exchange(0, std::memory_order_seq_cst);
    while (!fault(no_forward) && mailbox.letter_announced(seen)) {
      if (const letter* l = mailbox.try_receive(&seen); l != nullptr) {
        while (!ready.try_push(l->task.get())) env::pause();
        return;
      }
      env::pause();
    }
  }
  void idle() {
    doorbell.start_polling();
    if (is_mailbox_open.load(std::memory_order_relaxed) == 0) {
      is_mailbox_open.store(1, std::memory_order_relaxed);
    }
    if (!mailbox.has_letter(seen) && ready.looks_empty()) {
      doorbell.start_sleeping(0);
      const bool announced = !fault(no_last_look) && mailbox.letter_announced(seen);
      if (!announced && ready.looks_empty()) parks[2].park(place, sleeper::never);
      doorbell.stop_sleeping(0);
    }
    (void)doorbell.stop_polling();
    env::pause();
  }

  lev::mailbox<letter, env> mailbox;
  lev::doorbell<env> doorbell;
  lev::doorbell<env>::flag asleep;
  lev::doorbell<env>::flag* flags[1];
  lev::index_ring<env> ready;
  lev::index_ring<env>::cell cells[2];
  atomic<std::uint32_t> is_mailbox_open;
  lev::parker<env> parks[3];  // the submitters', the worker's
  sleeper place;
  plain<std::uint32_t> contents[2];
  std::uint32_t seen = 0;  // the worker's
};

template <int Submitters>
struct letters : scenario<letters<Submitters>, Submitters + 1> {
  void thread(unsigned index) { index < Submitters ? o->submit(index) : o->serve(Submitters); }
  boxed<office> o;
};

// The worker turns to a long task, one that does not end before task 0 has run: task 0 must come to
// the other worker.
struct long_task : scenario<long_task, 3> {
  void thread(unsigned index) {
    if (index == 0) o->submit(0);
    if (index == 1) help();
    if (index == 2) {
      o->is_mailbox_open.store(1, std::memory_order_relaxed);
      o->close_mailbox();
      while (has_run.load(std::memory_order_relaxed) == 0) env::pause();
    }
  }
  void help() {
    std::uint32_t task = 0;
    while (!o->ready.try_pop(&task)) env::pause();
    o->run(task);
    has_run.store(1, std::memory_order_relaxed);
  }
  boxed<office> o;
  atomic<std::uint32_t> has_run;
};

}  // namespace

int main() {
  return explorer("mailbox", {}, {"queue/mailbox.hpp"})
      .check<letters<1>>("one submitter")
      .check<letters<2>>("two submitters")
      .check<long_task>("long task")
      .plant("mailbox: the letter is written after it is published")
      .plant("mailbox: a lease announces nothing")
      .plant("mailbox: leased twice")
      .plant(no_look)
      .plant(late_look)
      .plant(no_forward)
      .plant(no_last_look)
      .spare("retract store release -> relaxed",
             "needed since C++20 only; Relacy's rules are C++11's")
      .end();
}
