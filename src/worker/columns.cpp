// The body of a bulk over columns, and the rest of a piece that has stopped.
#include "worker/columns.hpp"

#include "base/text.hpp"
#include "worker/execute.hpp"
#include "worker/take.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

namespace lev {

column_watch* worker_columns = nullptr;

namespace {

// Steps one argument of the procedure from task to task.
struct stepper {
  argument* to;
  std::uint64_t place;
  std::int64_t step;
  std::uint16_t value_bytes;  // 0: it is memory
};

// Prefetches the rows of a later task. With gaps between them the core does not do so by itself.
struct rows_ahead {
  row_place places[near_arguments];
  std::int64_t steps[near_arguments];
  std::uint32_t count = 0;
};

// Makes a column of the bulk an argument of one task, whose place is still to be set. Returns the
// bytes of a value; 0: it is memory or a result.
std::uint16_t make_single(argument& a, unsigned i, const each_task& of) noexcept {
  a.rows = 1;
  a.flags &= static_cast<std::uint8_t>(~(argument_sliced | argument_rows | argument_packed));
  a.stride_bytes = static_cast<std::int64_t>(a.row_bytes);
  if ((of.results >> i & 1) != 0) a.what = kind::result;
  if ((of.values >> i & 1) == 0) return 0;
  const std::uint16_t bytes = a.unit_bytes;
  a = argument{};
  a.unit_bytes = bytes;
  return bytes;
}
inline void set_place(argument& a, std::uint64_t place, std::uint16_t value_bytes) noexcept {
  if (value_bytes != 0) {
    load_value(a, place, value_bytes);
  } else {
    a.address = place;
  }
}

// One piece of a bulk: its tasks one after the other.
class tasks_of_columns {
 public:
  explicit tasks_of_columns(const call& c) noexcept
      : own_(each_task_of(c)),
        indices_(detail::parameter<range>::unpack(arguments_of(c).back())),
        count_(c.argument_count - 2) {
    for (unsigned i = 0; i < count_; ++i) open(i, c.arguments[i]);
  }
  template <class Watch>
  void run(Watch& watch) {
    column_watch::callee p;
    if (const char* why = watch.find(own_.procedure, &p)) stop(status::bad_procedure, 0, why);
    call_ = {arguments_, count_, p.context};
    look_ahead(watch.tasks_ahead());
    if (ahead_.count != 0) return run_all<true>(watch, p);
    run_all<false>(watch, p);
  }

 private:
  template <bool looks_ahead, class Watch>
  void run_all(Watch& watch, const column_watch::callee& p) {
    for (at_ = indices_.begin; at_ != indices_.end; ++at_) {
      if (!watch.begin(index())) stop(status::cancelled, 0, "");
      if constexpr (looks_ahead) fetch_ahead();
      load();
      call_one(p);
      watch.end();
    }
  }
  std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(at_); }
  void open(unsigned i, const argument& from) noexcept {
    argument& to = arguments_[i];
    to = from;
    if ((from.flags & argument_sliced) == 0) return;
    const std::uint16_t value_bytes = make_single(to, i, own_);
    steppers_[stepper_count_++] = {&to, from.address, from.stride_bytes, value_bytes};
  }
  void look_ahead(std::uint32_t tasks) noexcept {
    for (unsigned i = 0; i < stepper_count_ && tasks != 0; ++i) {
      const stepper& s = steppers_[i];
      const auto bytes = static_cast<std::int64_t>(s.to->row_bytes);
      const bool has_gaps = s.step > bytes || s.step < -bytes;
      if (!is_memory(s.to->what) || !has_gaps || ahead_.count == near_arguments) continue;
      ahead_.steps[ahead_.count] = s.step;
      row_place& to = ahead_.places[ahead_.count++];
      to = row_to_fetch(*s.to);
      to.address = s.place + tasks * static_cast<std::uint64_t>(s.step);
    }
  }
  // Behind the last task it prefetches in vain, which does no harm.
  [[gnu::always_inline]] void fetch_ahead() noexcept {
    for (unsigned i = 0; i < ahead_.count; ++i) {
      prefetch_rows(ahead_.places[i]);
      ahead_.places[i].address += static_cast<std::uint64_t>(ahead_.steps[i]);
    }
  }
  void load() noexcept {
    for (unsigned i = 0; i < stepper_count_; ++i) {
      stepper& s = steppers_[i];
      set_place(*s.to, s.place, s.value_bytes);
      s.place += static_cast<std::uint64_t>(s.step);
    }
  }
  void call_one(const column_watch::callee& p) {
    int code = 0;
    try {
      code = p.run(call_);
    } catch (...) {
      stop(status::task_failed, 0, text_of_thrown());
    }
    if (code == 0) return;
    char text[64];
    std::snprintf(text, sizeof text, "its procedure returned %d", code);
    stop(status::task_failed, code, text);
  }
  [[noreturn]] void stop(status code, int task_code, const char* why) const {
    throw stopped_range(code, index(), task_code, text_of_bulk(index(), why).text);
  }

  each_task own_;
  range indices_;
  std::uint64_t at_ = indices_.begin;
  unsigned count_;
  unsigned stepper_count_ = 0;
  call call_;
  argument arguments_[argument_count_max];
  stepper steppers_[argument_count_max];
  rows_ahead ahead_;
};

// In a thread of the host.
class host_watch {
 public:
  explicit host_watch(participant& self) noexcept : self_(self) {}
  const char* find(procedure_id id, column_watch::callee* found) noexcept {
    const procedure_entry* p = find_procedure(id);
    if (p == nullptr) return "no procedure has its id";
    *found = {p->info.run, p->info.context};
    return nullptr;
  }
  std::uint32_t tasks_ahead() const noexcept { return self_.engine->depth - 1; }
  bool begin(std::uint32_t index) noexcept {
    constexpr std::uint32_t tasks_per_look = 16;
    if (index % tasks_per_look != 0) return true;
    return !is_unwanted(*self_.engine, *self_.running);
  }
  void end() noexcept {
    end_if_forked(*self_.engine);
    restore_float_mode(self_.float_mode);
  }

 protected:
  participant& self_;
};

// One task of the piece, as a task of its own with the caller's memory.
void read_one(engine& e, std::uint32_t piece, std::uint32_t index, descriptor& one) noexcept {
  read_descriptor(e.task_slots, piece, one);
  const each_task of = each_task_of(one);
  const std::uint64_t at = index - arguments_of(one).back().address;
  one.procedure = of.procedure;
  one.argument_count -= 2;
  for (unsigned i = 0; i < one.argument_count; ++i) {
    argument& a = one.arguments[i];
    if ((a.flags & argument_sliced) == 0) continue;
    const std::uint64_t place = a.address + static_cast<std::uint64_t>(a.stride_bytes) * at;
    const std::uint16_t value_bytes = make_single(a, i, of);
    set_place(a, place, value_bytes);
  }
}

// In a thread of the host, where time is virtual: each task has its price, which passes before it
// begins, as that of a task of its own. So tasks behind one that fails are charged once.
class virtual_watch : public host_watch {
 public:
  using host_watch::host_watch;
  bool begin(std::uint32_t index) noexcept {
    if (!host_watch::begin(index)) return false;
    engine& e = *self_.engine;
    descriptor one;
    read_one(e, self_.running->task, index, one);
    e.machine->cost(cost_of(e, procedure_at(one.procedure).info, one));
    return true;
  }
};

// In a worker process.
class process_watch {
 public:
  const char* find(procedure_id id, column_watch::callee* found) {
    return worker_columns->find(id, found);
  }
  // Its rows are copies, which follow each other.
  static constexpr std::uint32_t tasks_ahead() noexcept { return 0; }
  bool begin(std::uint32_t index) noexcept { return worker_columns->begin(index); }
  void end() noexcept { restore_float_mode(float_mode_); }

 private:
  std::uint64_t float_mode_ = float_mode();
};

}  // namespace

int run_columns(const call& c) {
  tasks_of_columns tasks(c);
  if (worker_columns != nullptr) {
    process_watch here;
    tasks.run(here);
    return 0;
  }
  auto& self = *static_cast<participant*>(current_actor());
  if (self.engine->caps.virtual_time) {
    virtual_watch here(self);
    tasks.run(here);
  } else {
    host_watch here(self);
    tasks.run(here);
  }
  return 0;
}

procedure_id own_procedure(engine& e, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  if (!is_of_columns(s.procedure)) return s.procedure;
  return detail::parameter<each_task>::unpack(e.task_slots.argument_at(task, s.argument_count - 2u))
      .procedure;
}

void stop_at(engine& e, const job& j, std::uint32_t at) noexcept {
  // Its own `arguments` are those of another job if the task had no need of copies.
  const argument& indices = std::span(j.body.arguments, j.argument_count).back();
  LEV_DCHECK(indices.what == kind::range);
  const bool is_within = at >= indices.address && at < indices.row_bytes;
  e.task_slots.extra(j.task).stopped_at =
      is_within ? at : static_cast<std::uint32_t>(indices.address);
}

namespace {

void keep_from(engine& e, std::uint32_t task, std::uint64_t index) noexcept {
  const unsigned count = e.task_slots.at(task).argument_count;
  const argument indices = e.task_slots.argument_at(task, count - 1);
  LEV_DCHECK(indices.what == kind::range && index >= indices.address && index < indices.row_bytes);
  for (unsigned i = 0; i < count; ++i) {
    argument& a = e.task_slots.argument_at(task, i);
    if ((a.flags & argument_sliced) != 0)
      cut(a, index - indices.address, indices.row_bytes - indices.address);
  }
}

}  // namespace

bool go_on_behind(engine& e, std::uint32_t task) noexcept {
  const std::uint64_t next = std::uint64_t{e.task_slots.extra(task).stopped_at} + 1;
  const argument& indices =
      e.task_slots.argument_at(task, e.task_slots.at(task).argument_count - 1u);
  if (next <= indices.address || next >= indices.row_bytes) return false;
  keep_from(e, task, next);
  return true;
}

void go_on_at(engine& e, std::uint32_t task) noexcept {
  keep_from(e, task, e.task_slots.extra(task).stopped_at);
}

}  // namespace lev
