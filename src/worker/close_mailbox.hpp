// close_mailbox: an idle worker polls its mailbox, which is open then. Before the worker turns to
// anything that takes longer, it closes the mailbox, and hands on a letter that came meanwhile.
#pragma once

#include "worker/enqueue.hpp"
#include "worker/serve.hpp"
#include "worker/worker.hpp"

namespace lev {

// A letter that arrives while its worker turns to other work goes to the ready queue.
inline void forward_letter(engine& e, participant& self) noexcept {
  while (self.mailbox.letter_announced(self.letters_seen)) {
    if (const letter* l = self.mailbox.try_receive(&self.letters_seen); l != nullptr) {
      push_ready(e, self, l->task);
      wake_worker(e, self);
      return;
    }
    e.machine->relax();  // it is being written, or retracted
  }
}

inline void open_mailbox(participant& self) noexcept {
  self.is_mailbox_open.store(1, memory_order_relaxed);
  self.aside.is_mailbox_open = true;
}

[[gnu::noinline]] inline void close_open_mailbox(engine& e, participant& self) noexcept {
  LEV_DCHECK(self.is_worker && runs_here(self));
  self.aside.is_mailbox_open = false;
  // Pairs with the submitter's look after its lease. Sequentially consistent: the look for a letter
  // comes after it.
  self.is_mailbox_open.exchange(0, memory_order_seq_cst);
  forward_letter(e, self);
}

inline void close_mailbox(engine& e, participant& self) noexcept {
  if (self.aside.is_mailbox_open) close_open_mailbox(e, self);
}

// turn_to_work() is called when a task was taken. Unless it is a letter, the mailbox is not polled
// for a while; and another worker may have to look for more.
inline void turn_to_work(engine& e, participant& self, bool is_direct) noexcept {
  if (!is_direct) close_mailbox(e, self);
  if (self.aside.was_last_poller) wake_another(e, self);
}

}  // namespace lev
