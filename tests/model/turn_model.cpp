// Confined workers of the same number take turns: one runs bodies while the others wait. No two of
// them run at once, none waits for ever, and one that dies in its turn has it ended by the keeper.
//
// The workers are run_in_turn(), wait_for_turn() and end_turn() of machines/processes/serve.cpp,
// and the keeper is report_own_death() of zygote_own.cpp.
#include "explore.hpp"

#include "machines/processes/berth.hpp"

namespace {

using namespace model;
using berth = lev::processes::berth<env>;

constexpr fault_name takes_alone = "wait_for_turn: does not say that others may wait";
constexpr fault_name unwoken = "end_turn: wakes nobody";
constexpr fault_name anyone = "leave_for: ends the turn of whoever has it";
constexpr fault_name unasked = "wait_for_turn: sleeps without asking";
constexpr fault_name unended = "report_own_death: leaves the turn of a dead worker";
constexpr fault_name unpassed = "report_own_death: wakes nobody if the dead worker had no turn";

struct stage {
  void run(std::uint32_t member) {
    bool others_wait = false;
    while (!place.try_take(member, others_wait)) {
      const std::uint32_t now =
          fault(unasked) ? place.serving.load(std::memory_order_relaxed) : place.want();
      if (now != 0) kernel.wait_word(place.serving, now, sleeper::never);
      others_wait = !fault(takes_alone);
    }
    require(running == 0, "one at a time");
    running = member + 1;
    memory.set(memory.get() + 1);
    running = 0;
  }
  void end_turn() {
    if (place.leave() && !fault(unwoken)) kernel.wake_word(place.serving);
  }
  void work(std::uint32_t member, int times) {
    for (int i = 0; i < times; ++i) {
      run(member);
      end_turn();
    }
  }
  // The worker's part until it dies in its turn, and the keeper's then.
  void die(std::uint32_t member) {
    run(member);
    is_dead.store(1, std::memory_order_release);
  }
  void bury(std::uint32_t member) {
    while (is_dead.load(std::memory_order_acquire) == 0) env::pause();
    if (fault(unended)) return;
    const bool had_turn = place.served() == member + 1;
    if (fault(anyone)) {
      place.leave();
    } else {
      place.leave_for(member);
    }
    if (had_turn || !fault(unpassed)) kernel.wake_word(place.serving);
  }
  // It waits for its turn as run(), and dies as soon as it is woken.
  void die_waiting(std::uint32_t member) {
    if (!place.try_take(member, false)) {
      const std::uint32_t now = place.want();
      if (now != 0) kernel.wait_word(place.serving, now, sleeper::never);
    }
    is_dead.store(1, std::memory_order_release);
  }
  // It dies when it has left its turn, and has not woken the next one yet.
  void die_leaving(std::uint32_t member) {
    run(member);
    place.leave();
    is_dead.store(1, std::memory_order_release);
  }

  berth place;
  sleeper kernel;
  plain<int> memory;
  atomic<std::uint32_t> is_dead;
  std::uint32_t running = 0;  // what is really so
};

struct three : scenario<three, 3> {
  void thread(unsigned index) { s->work(index, 2); }
  boxed<stage> s;
};

struct one_dies : scenario<one_dies, 3> {
  void thread(unsigned index) {
    if (index == 0) return s->work(0, 2);
    if (index == 1) return s->die(1);
    s->bury(1);
  }
  boxed<stage> s;
};

// It dies with the wake-up of the turn before, for which another one waits, too.
struct one_dies_woken : scenario<one_dies_woken, 3> {
  void thread(unsigned index) {
    if (index == 0) return s->work(0, 1);
    if (index == 1) return s->work(2, 1);
    s->die_waiting(1);
    s->bury(1);
  }
  boxed<stage> s;
};

struct one_dies_leaving : scenario<one_dies_leaving, 3> {
  void thread(unsigned index) {
    if (index == 0) return s->work(0, 1);
    if (index == 1) return s->die_leaving(1);
    s->bury(1);
  }
  boxed<stage> s;
};

// It dies before its turn, while another one has it.
struct one_dies_early : scenario<one_dies_early, 2> {
  void thread(unsigned index) {
    if (index == 0) return s->work(0, 2);
    s->is_dead.store(1, std::memory_order_release);
    s->bury(1);
    s->work(2, 1);
  }
  boxed<stage> s;
};

}  // namespace

int main() {
  return explorer("turn", {}, {})
      .check<three>("three")
      .check<one_dies>("one dies")
      .check<one_dies_early>("one dies early")
      .check<one_dies_woken>("one dies woken")
      .check<one_dies_leaving>("one dies leaving")
      .plant(takes_alone)
      .plant(unwoken)
      .plant(anyone)
      .plant(unasked)
      .plant(unended)
      .plant(unpassed)
      .end();
}
