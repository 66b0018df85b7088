// traced: times one step of a task for the trace.
#pragma once

#include "worker/columns.hpp"
#include "worker/contexts.hpp"

namespace lev {

// Costs a test of one pointer when there is no trace.
class traced {
 public:
  traced(engine& e, participant& self, step what, const job& j) noexcept
      : engine_(e),
        self_(self),
        job_(j),
        what_(what),
        begin_ns_(self.events.is_open() ? e.machine->now_ns() : 0) {
    if (self.events.is_open() && is_busy() && self.executing++ == 0) self.busy_since_ns = begin_ns_;
  }
  ~traced() {
    if (!self_.events.is_open()) return;
    const std::uint64_t end_ns = engine_.machine->now_ns();
    const std::uint32_t context = self_.contexts == nullptr ? 0 : self_.contexts->current->number;
    const procedure_id shown =
        is_of_columns(job_.procedure) ? own_procedure(engine_, job_.task) : job_.procedure;
    self_.events.record(
        {begin_ns_, end_ns, job_.task, shown, what_, static_cast<std::uint8_t>(context)});
    LEV_DCHECK(!is_busy() || self_.executing != 0);
    // Tasks of several contexts overlap: their time is counted once.
    if (is_busy() && --self_.executing == 0)
      self_.counters.busy_ns.add(end_ns - self_.busy_since_ns);
  }
  traced(traced&&) = delete;

 private:
  bool is_busy() const noexcept { return what_ == step::execute && self_.nest == 0; }

  engine& engine_;
  participant& self_;
  const job& job_;
  step what_;
  std::uint64_t begin_ns_;
};

}  // namespace lev
