// Confined workers of the same number take turns: one runs bodies while the others wait. No two of
// them run at once, none waits for ever, and one that dies in its turn has it ended by the keeper.
//
// The workers are run_in_turn(), wait_for_turn() and end_turn() of machines/processes/serve.cpp,
// and the keeper is report_own_death() of keeper_own.cpp.
#include "explore.hpp"

#include "machines/processes/keeper.hpp"

namespace {

using namespace model;
using berth = lev::processes::berth<env>;

constexpr fault_name takes_alone = "wait_for_turn: does not say that others may wait";
constexpr fault_name unwoken = "end_turn: wakes nobody";
constexpr fault_name anyone = "leave_for: ends the turn of whoever has it";
constexpr fault_name unasked = "wait_for_turn: sleeps without asking";
constexpr fault_name unended = "report_own_death: leaves the turn of a dead worker";

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
    if (fault(anyone) ? place.leave() : place.leave_for(member)) kernel.wake_word(place.serving);
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
      .plant(takes_alone)
      .plant(unwoken)
      .plant(anyone)
      .plant(unasked)
      .plant(unended)
      .end();
}
