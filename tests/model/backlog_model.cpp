// The backlog, on the code of the pipeline: what is posted into it is taken by a worker that slept,
// as soon as there is a slot.
#include "pipeline.hpp"

namespace {

using namespace model;

// All tickets are in use. A task posts another one, and waits until that has begun: the other
// worker must be woken, and give it one of the last slots.
template <bool Asymmetric>
struct posted : pipeline<posted<Asymmetric>, 2, 1> {
  static constexpr bool is_asymmetric = Asymmetric;
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned) {
    const std::uint64_t held = this->submit(1);
    this->wait(this->submit(0));
    this->wait(held);
    this->wait_for_completion();
  }
  void body(unsigned task) {
    this->start(task);
    if (task != 0) return;
    this->submit(2, nullptr, true);
    this->wait_started(2);
  }
};

// Tasks with mutexes may take half of the last slots, which is one here. A task has it that waits
// until another one has begun. Only when the host collects a ticket is there a slot for that one,
// and the other worker must be woken for it.
struct collected : pipeline<collected, 2, 1> {
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned) {
    for (lev::options& each : locked) {
      lev::mutex_id m = 0;
      require(core->mutexes.make(&m), "a mutex");
      each.locks(m);
    }
    const std::uint64_t first = submit(0);
    const std::uint64_t second = submit(1);
    wait(first);
    wait_for_completion();
    wait(second);
  }
  void body(unsigned task) {
    if (task == 0) {
      submit(2, &locked[0], true);
      submit(3, &locked[1], true);
    }
    // The last one posted is the first one taken.
    if (task == 3) wait_started(2);
    if (task == 2) start(2);
  }
  lev::options locked[2];
};

constexpr const char* both_old =
    "rare: the sleeper's last look and the poster's look at sleepers both read the old value";

}  // namespace

int main() {
  constexpr budget b{.random = 3'000, .random_planted = 10'000, .steps_max = 20'000};
  return explorer("backlog", b, {"flow/backlog.hpp", "flow/backlog.cpp"})
      .check<posted<false>>("posted")
      .check<posted<true>>("posted, asymmetric")
      .check<collected>("collected")
      .plant("push_backlog: nobody is woken")
      .plant("looks_idle: the backlog is not looked at")
      .plant("tell_space: the backlog is not told", "collected")
      .spare("try_push change seq_cst -> acq_rel", both_old)
      .spare("looks_empty load seq_cst -> acquire", both_old)
      .end();
}
