// lane: a host takes tasks back that it has posted to a worker, while the worker goes through them.
// Each task runs once: at the worker, or, when it is certain at once or told by its end that the
// worker did not begin it, somewhere else. And a host ends the first of them by the worker's death:
// no other one is hit, whenever that comes.
//
// The two sides are client::run() of machines/processes/client.cpp, and take_back() of
// remote/tend.cpp, collect_written() of remote/collect.cpp and kill_in_task() of remote/attend.cpp,
// without what does not concern the lane.
#include "explore.hpp"

#include "machines/processes/lane.hpp"

namespace {

using namespace model;

constexpr fault_name early_look = "client: looks whether to skip before the end of the task before";
constexpr fault_name certain = "take_back: a task behind the oldest has never been begun";

constexpr fault_name lonely = "kill_in_task: kills without taking the others back";
constexpr fault_name hasty = "kill_in_task: looks for the end before it takes the others back";

constexpr std::uint32_t tasks = 3;

struct take_back : scenario<take_back, 2> {
  void before() {
    for (std::uint32_t n = 1; n <= tasks; ++n)
      lane->record_of(n).number.store(n, std::memory_order_relaxed);
    lane->ended[0].store(lane->make_end(0, lev::status::ok), std::memory_order_relaxed);
  }
  void thread(unsigned index) { index == 0 ? work() : host(); }
  void after() {
    for (std::uint32_t n = 1; n <= tasks; ++n) require(runs[n].get() == 1, "each task runs once");
  }

  void work() {
    bool is_skipped = lane->is_skipped(1);
    for (std::uint32_t n = 1; n <= tasks; ++n) {
      if (!fault(early_look)) is_skipped = lane->is_skipped(n);
      if (!is_skipped) runs[n].set(runs[n].get() + 1);
      skipped[n].set(is_skipped);
      if (fault(early_look) && n < tasks) is_skipped = lane->is_skipped(n + 1);
      lane->finish(n);
    }
  }
  void host() {
    bool is_back[tasks + 1] = {};
    for (std::uint32_t n = tasks; n > 0; --n) {
      is_back[n] = lane->take_back(n) || (fault(certain) && n > 1);
      if (is_back[n]) runs[n].set(runs[n].get() + 1);
    }
    for (std::uint32_t n = 1; n <= tasks; ++n) {
      while (!lane->has_end(n)) env::pause();
      if (skipped[n].get() && !is_back[n]) runs[n].set(runs[n].get() + 1);
    }
  }

  boxed<lev::processes::lane<env>> lane;
  plain<int> runs[tasks + 1];
  plain<bool> skipped[tasks + 1];
};

struct end_one : scenario<end_one, 2> {
  void before() {
    for (std::uint32_t n = 1; n <= tasks; ++n)
      lane->record_of(n).number.store(n, std::memory_order_relaxed);
    lane->ended[0].store(lane->make_end(0, lev::status::ok), std::memory_order_relaxed);
  }
  void thread(unsigned index) { index == 0 ? work() : host(); }

  // The death comes at any step after it was ordered, and is seen when the worker is over.
  bool is_alive() { return kill.load(std::memory_order_relaxed) == 0; }
  void work() {
    for (std::uint32_t n = 1; n <= tasks && is_alive(); ++n) {
      if (!lane->is_skipped(n)) begun[n].set(true);
      if (is_alive()) lane->finish(n);
    }
    is_over.store(1, std::memory_order_release);
  }
  void host() {
    const bool was_early = fault(hasty) && !lane->has_end(1);
    for (std::uint32_t n = tasks; n > 1 && !fault(lonely); --n)
      static_cast<void>(lane->take_back(n));
    if (was_early || (!fault(hasty) && !lane->has_end(1))) {
      kill.store(1, std::memory_order_relaxed);
      while (is_over.load(std::memory_order_acquire) == 0) env::pause();
      for (std::uint32_t n = 2; n <= tasks; ++n)
        require(!begun[n].get(), "only the first task is hit");
    }
  }

  boxed<lev::processes::lane<env>> lane;
  atomic<int> kill;
  atomic<int> is_over;
  plain<bool> begun[tasks + 1];
};

}  // namespace

int main() {
  return explorer("lane", {}, {"machines/processes/lane.hpp"})
      .check<take_back>("take back")
      .plant("lane: looks for the end before it asks")
      .plant(early_look)
      .plant(certain)
      .check<end_one>("end one")
      .plant(lonely)
      .plant(hasty)
      .end();
}
