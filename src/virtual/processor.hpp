// processor: hardware contexts and the threads that an operating system runs on them.
//
//   1. A thread that may run queues up, in order of arrival; a free context takes the first one
//      that it may run (a thread can be pinned to a context).
//   2. On a context a thread computes (run) or spins. At the end of its quantum it goes to the end
//      of the queue if another one may run there, and otherwise goes on with a new quantum.
//   3. yield() gives the context to the next in the queue, yield_to() to a named thread, at the
//      price of a switch, which the context pays before the other goes on. Both return at once when
//      there is no other thread to run.
//   4. sleep() frees the context; wake() queues the thread up again.
#pragma once

#include <leveret/virtual_time.hpp>

#include <deque>
#include <memory>
#include <vector>

#include "virtual/loop.hpp"

namespace lev::virt {

struct processor_settings {
  unsigned contexts = 1;
  virtual_time quantum{};
  virtual_time switch_time{};       // from one thread to the next, by yield, quantum or sleep
  virtual_time yield_to_time{};     // by yield_to
  virtual_time empty_yield_time{};  // a yield that finds no other thread
};

class processor {
 public:
  static constexpr int anywhere = -1;

  // One thread. Its actor makes the calls below, except wake(), which others make.
  class thread {
   public:
    bool is_on_context() const { return context_ != anywhere; }
    int context() const { return context_; }
    bool is_asleep() const { return is_asleep_; }

   private:
    friend class processor;
    explicit thread(actor& a, int pinned) : actor_(&a), pinned_(pinned) {}

    actor* actor_;
    int pinned_;
    int context_ = anywhere;
    virtual_time quantum_end_{};
    bool is_asleep_ = false;
    bool is_signalled_ = false;  // woken before it slept
    bool was_poked_ = false;     // the word it spins on has changed
  };

  processor(loop& home, const processor_settings& settings);

  // The calling actor becomes a thread and waits for its first context. Precondition: `pinned` is
  // a context of this processor, or anywhere.
  thread& enter(int pinned = anywhere);
  // The opposite; the thread itself calls it last.
  void leave(thread& t);
  // Forgets its threads, all of which have left.
  void forget_threads();

  // Runs for that much time on a context; more passes meanwhile if others run in between.
  void run(thread& t, virtual_time d) { pass(t, d, false); }
  // The same, but it only checks whether something changed.
  void poll(thread& t, virtual_time d) { pass(t, d, true); }
  // Spins on its context until poke(), giving it up at the ends of its quanta.
  void spin(thread& t, const char* why);
  void poke(thread& t);

  // True when another thread ran in between. Calls of a thread return without effect in a
  // destructor that runs because the run is over (see loop::refuse_if_over).
  bool yield(thread& t);
  // The same with a named one; false, for the price of an empty yield, when it cannot run here now.
  bool yield_to(thread& t, thread& to);
  // Until wake(); a wake() that came before is taken. A thread that is woken runs as soon as a
  // context is free, after the price of a switch.
  void sleep(thread& t, const char* why);
  void wake(thread& t);

  std::uint64_t switches() const { return switches_; }
  std::size_t thread_count() const { return threads_.size(); }

 private:
  bool may_run(const thread& t, unsigned context) const {
    return t.pinned_ == anywhere || t.pinned_ == static_cast<int>(context);
  }
  thread* first_for(unsigned context) const;
  void pass(thread& t, virtual_time d, bool is_poll);
  void queue_up(thread& t);
  void seat_next(unsigned context, virtual_time price, bool is_poll = false);
  void seat_thread(thread& t, unsigned context, virtual_time price, bool is_poll = false);
  void unseat(thread& t);
  // False when the run is over.
  bool wait_for_seat(thread& t);
  bool end_quantum(thread& t);
  bool queue_behind(thread& t, bool is_poll);

  loop& loop_;
  processor_settings settings_;
  std::vector<thread*> contexts_;  // which thread each has; null: none
  std::deque<thread*> queue_;
  std::vector<std::unique_ptr<thread>> threads_;
  std::uint64_t switches_ = 0;
};

}  // namespace lev::virt
