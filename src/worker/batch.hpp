// batch: tasks of a bulk submit on their way to the queue together: one doorbell and one
// reservation for many.
//
// Until it is sent, no participant runs its tasks. The function that makes the tasks is the
// caller's, and may wait for a slot or for something else: so every wait, and a task that yields,
// first sends the batches of its participant.
#pragma once

#include "worker/enqueue.hpp"

namespace lev::detail {

class batch {
 public:
  batch(engine& e, participant& self) noexcept
      : engine_(e), self_(self), below_(std::exchange(self.batches, this)) {}
  ~batch() {
    // A batch of another context may have come since, and stays.
    batch** link = &self_.batches;
    while (*link != this) link = &(*link)->below_;
    *link = below_;
  }
  batch(batch&&) = delete;

  void add(std::uint32_t task) noexcept {
    LEV_DCHECK(count_ < batch_max);
    tasks_[count_++] = task;
    if (count_ == batch_max) send();
  }
  void send() noexcept {
    if (count_ == 0) return;
    self_.counters.submitted.add(count_);
    if (self_.running == nullptr || self_.running->task == no_slot) {
      while (!self_.ready.home->try_push_all(tasks_, count_)) real_env::pause();
    } else {
      // In a task: it runs them on top of itself, the first one first.
      for (std::uint32_t i = count_; i-- > 0;) {
        if (!push_own(engine_, self_, tasks_[i])) push_ready(engine_, self_, tasks_[i]);
      }
    }
    count_ = 0;
    wake_worker(engine_, self_);
  }
  static void send_all(participant& self) noexcept {
    for (batch* b = self.batches; b != nullptr; b = b->below_) b->send();
  }

 private:
  static constexpr std::uint32_t batch_max = 32;
  engine& engine_;
  participant& self_;
  batch* below_;
  std::uint32_t count_ = 0;
  std::uint32_t tasks_[batch_max];
};

}  // namespace lev::detail
