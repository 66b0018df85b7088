// lane: a host takes tasks back that it has posted to a worker, while the worker goes through them.
// Each task runs once: at the worker, or, when it is certain at once or told by its end that the
// worker did not begin it, somewhere else.
//
// The two sides are client::run() of machines/processes/client.cpp, and take_back() and
// collect_end() of worker/tend.cpp, without what does not concern the lane.
#include "explore.hpp"

#include "machines/processes/lane.hpp"

namespace {

using namespace model;

constexpr fault_name early_look = "client: looks whether to skip before the end of the task before";
constexpr fault_name certain = "take_back: a task behind the oldest has never been begun";

constexpr std::uint32_t tasks = 3;

struct take_back : scenario<take_back, 2> {
  void before() {
    for (std::uint32_t n = 1; n <= tasks; ++n)
      desk->record_of(n).number.store(n, std::memory_order_relaxed);
    desk->end_of(0).number.store(0, std::memory_order_relaxed);
  }
  void thread(unsigned index) { index == 0 ? work() : host(); }
  void after() {
    for (std::uint32_t n = 1; n <= tasks; ++n) require(runs[n].get() == 1, "each task runs once");
  }

  void work() {
    bool is_skipped = desk->is_skipped(1);
    for (std::uint32_t n = 1; n <= tasks; ++n) {
      if (!fault(early_look)) is_skipped = desk->is_skipped(n);
      if (!is_skipped) runs[n].set(runs[n].get() + 1);
      skipped[n].set(is_skipped);
      if (fault(early_look) && n < tasks) is_skipped = desk->is_skipped(n + 1);
      desk->finish(n);
    }
  }
  void host() {
    bool is_back[tasks + 1] = {};
    for (std::uint32_t n = tasks; n > 0; --n) {
      is_back[n] = desk->take_back(n) || (fault(certain) && n > 1);
      if (is_back[n]) runs[n].set(runs[n].get() + 1);
    }
    for (std::uint32_t n = 1; n <= tasks; ++n) {
      while (!desk->has_end(n)) env::pause();
      if (skipped[n].get() && !is_back[n]) runs[n].set(runs[n].get() + 1);
    }
  }

  boxed<lev::processes::lane<env>> desk;
  plain<int> runs[tasks + 1];
  plain<bool> skipped[tasks + 1];
};

}  // namespace

int main() {
  return explorer("lane", {}, {"machines/processes/lane.hpp"})
      .check<take_back>("take back")
      .plant("lane: looks for the end before it asks")
      .plant(early_look)
      .plant(certain)
      .end();
}
