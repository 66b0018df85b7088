// Which thread runs on which context of a processor; see processor.hpp.
#include "virtual/processor.hpp"

#include <algorithm>

namespace lev::virt {

processor::processor(loop& home, const processor_settings& settings)
    : loop_(home), settings_(settings), contexts_(settings.contexts) {}

processor::thread& processor::enter(int pinned) {
  LEV_ASSERT(pinned == anywhere || static_cast<unsigned>(pinned) < contexts_.size());
  threads_.push_back(std::unique_ptr<thread>(new thread(*loop_.current(), pinned)));
  thread& t = *threads_.back();
  queue_up(t);
  (void)wait_for_seat(t);
  return t;
}

void processor::leave(thread& t) {
  // A thread that waited in a destructor when the run ended has no context to give back.
  if (loop_.refuse_if_over()) return;
  LEV_DCHECK(t.is_on_context());
  const auto context = static_cast<unsigned>(t.context_);
  unseat(t);
  seat_next(context, settings_.switch_time);
}

void processor::forget_threads() {
  LEV_DCHECK(queue_.empty());
  threads_.clear();
}

void processor::pass(thread& t, virtual_time d, bool is_poll) {
  while (d > virtual_time(0) && !loop_.refuse_if_over()) {
    LEV_DCHECK(t.is_on_context());
    if (loop_.now() >= t.quantum_end_ && !end_quantum(t)) return;
    const virtual_time slice = std::min(d, t.quantum_end_ - loop_.now());
    is_poll ? loop_.poll(slice) : loop_.wait(slice);
    d -= slice;
  }
}

void processor::spin(thread& t, const char* why) {
  while (!t.was_poked_) {
    if (loop_.refuse_if_over()) return;
    LEV_DCHECK(t.is_on_context());
    if (loop_.now() >= t.quantum_end_ && !end_quantum(t)) return;
    if (t.was_poked_) break;
    // Alone on its context it would find a new quantum at each end of one: it need not look.
    if (first_for(static_cast<unsigned>(t.context_)) == nullptr)
      (void)loop_.block(why);
    else
      (void)loop_.block_until(t.quantum_end_, why);
  }
  t.was_poked_ = false;
}

void processor::poke(thread& t) {
  t.was_poked_ = true;
  if (t.is_on_context()) loop_.wake(*t.actor_);
}

bool processor::yield(thread& t) {
  if (loop_.refuse_if_over()) return false;
  LEV_DCHECK(t.is_on_context());
  if (first_for(static_cast<unsigned>(t.context_)) == nullptr) {
    poll(t, settings_.empty_yield_time);
    return false;
  }
  return queue_behind(t, true);
}

bool processor::yield_to(thread& t, thread& to) {
  if (loop_.refuse_if_over()) return false;
  LEV_DCHECK(t.is_on_context());
  const auto context = static_cast<unsigned>(t.context_);
  const auto found = std::find(queue_.begin(), queue_.end(), &to);
  if (&t == &to || found == queue_.end() || !may_run(to, context)) {
    poll(t, settings_.empty_yield_time);
    return false;
  }
  queue_.erase(found);
  unseat(t);
  queue_.push_back(&t);
  seat_thread(to, context, settings_.yield_to_time, true);
  return wait_for_seat(t);
}

void processor::sleep(thread& t, const char* why) {
  if (loop_.refuse_if_over()) return;
  LEV_DCHECK(t.is_on_context());
  if (std::exchange(t.is_signalled_, false)) return;
  const auto context = static_cast<unsigned>(t.context_);
  unseat(t);
  t.is_asleep_ = true;
  seat_next(context, settings_.switch_time);
  if (loop_.block(why)) (void)wait_for_seat(t);
}

void processor::wake(thread& t) {
  if (!t.is_asleep_) {
    t.is_signalled_ = true;
    return;
  }
  t.is_asleep_ = false;
  queue_up(t);
}

processor::thread* processor::first_for(unsigned context) const {
  for (thread* t : queue_)
    if (may_run(*t, context)) return t;
  return nullptr;
}

// A thread that may run takes a free context at once, or queues. Threads that spin look at the
// queue then: one that was alone waits for no end of its quantum. They are woken now and not at
// that end, as an actor that is to go on at a time cannot be woken earlier, and a poke may come.
void processor::queue_up(thread& t) {
  for (unsigned c = 0; c < contexts_.size(); ++c) {
    if (contexts_[c] == nullptr && may_run(t, c)) {
      seat_thread(t, c, t.actor_ == loop_.current() ? virtual_time(0) : settings_.switch_time);
      return;
    }
  }
  queue_.push_back(&t);
  for (const thread* each : contexts_)
    if (each != nullptr) loop_.wake(*each->actor_);
}

void processor::seat_next(unsigned context, virtual_time price, bool is_poll) {
  thread* t = first_for(context);
  if (t == nullptr) return;
  queue_.erase(std::find(queue_.begin(), queue_.end(), t));
  seat_thread(*t, context, price, is_poll);
}

void processor::seat_thread(thread& t, unsigned context, virtual_time price, bool is_poll) {
  LEV_DCHECK(contexts_[context] == nullptr && !t.is_on_context());
  contexts_[context] = &t;
  t.context_ = static_cast<int>(context);
  t.quantum_end_ = loop_.now() + price + settings_.quantum;
  ++switches_;
  if (loop_.current() != t.actor_) loop_.wake_at(*t.actor_, loop_.now() + price, is_poll);
}

void processor::unseat(thread& t) {
  contexts_[static_cast<unsigned>(t.context_)] = nullptr;
  t.context_ = anywhere;
}

bool processor::wait_for_seat(thread& t) {
  while (!t.is_on_context())
    if (!loop_.block("a hardware context of its processor")) return false;
  return true;
}

// A new quantum, at once or when its turn comes; false when the run is over.
bool processor::end_quantum(thread& t) {
  if (first_for(static_cast<unsigned>(t.context_)) == nullptr) {
    t.quantum_end_ = loop_.now() + settings_.quantum;
    return true;
  }
  return queue_behind(t, false);
}

// Leaves its context to the first that may run there, and comes back when its turn comes; false
// when the run is over.
bool processor::queue_behind(thread& t, bool is_poll) {
  const auto context = static_cast<unsigned>(t.context_);
  unseat(t);
  queue_.push_back(&t);
  seat_next(context, settings_.switch_time, is_poll);
  return wait_for_seat(t);
}

}  // namespace lev::virt
