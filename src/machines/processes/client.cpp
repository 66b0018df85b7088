// Runs one task of one host, in its worker process, and tells the host.
#include "machines/processes/client.hpp"

#include "base/anew.hpp"
#include "base/text.hpp"
#include "worker/execute.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>

namespace lev::processes {

namespace {

status fail(end_details& how, status code, const char* text) noexcept {
  how.stopped_at = no_index;
  how.task_code = 0;
  LEV_DCHECK(code != status::ok);
  copy_text(how.text, sizeof how.text, text);
  how.text_bytes = static_cast<std::uint16_t>(strnlen(how.text, end_details::text_max));
  return code;
}

// Times the task for the grain of the procedure's next one, as execute_timed() does.
[[gnu::noinline]] int run_timed(const resolved& procedure, const lane<>::record& task,
                                end_details& how) {
  const std::uint64_t begin_ns = monotonic_ns();
  const int task_code = procedure.run(call{task.arguments, task.argument_count, procedure.context});
  const std::uint64_t spent_ns = monotonic_ns() - begin_ns;
  end_if_forked(task_code != 0);  // it would have no `how` to write to
  how.spent_ns = static_cast<std::uint32_t>(smaller<std::uint64_t>(spent_ns, 0xffffffffu));
  return task_code;
}

}  // namespace

void client::arrive() noexcept {
  LEV_DCHECK(!is_ordered_ && next_ == lane_.first);
  lane_.arrived.store(1, memory_order_relaxed);
  notify();
  fault_at("worker.arrived");
}

void client::pass_test(chaos_step step, fault_name point) noexcept {
  fault_at(point);
  if (about_.chaos == 0 || random_.below(about_.chaos) != 0) return;
  lane_.died_at.store(static_cast<std::uint32_t>(step), memory_order_relaxed);
  kill(getpid(), SIGKILL);
}

// The steps of one task, from its claim to the publication of its end. A plain one (is_plain()) is
// neither tested nor confined, and prints where the worker does.
template <bool is_plain>
[[gnu::always_inline]] inline void client::run_task(lane<>& own, const lane<>::record& task,
                                                    std::uint32_t number) noexcept {
  LEV_DCHECK(is_ordered_ && number == next_ && own.has_record(number));
  LEV_DCHECK(&task == &own.record_of(number));
  own.claim(number);
  status code;
  if (task.is_skipped(number)) [[unlikely]] {
    code = fail(own.new_details(number), status::cancelled, "");
  } else {
    if (!is_plain) pass(chaos_step::claimed, "worker.claimed");
    code = run_body<is_plain>(task, number);
    if (!is_plain && !is_confined()) prints_.write_out();  // the worker may turn to another host
    if (!is_plain) pass(chaos_step::executed, "worker.executed");
  }
  if (!is_plain) has_rung_ = false;
  next_ = number + 1;
  own.finish(number, code);
}

void client::run() noexcept {
  run_task<false>(lane_, lane_.record_of(next_), next_);
}

// The lane and the number are kept where a body cannot change them, for all the compiler knows, and
// the address of a record is computed once.
void client::run_plainly(std::uint64_t mode) noexcept {
  LEV_DCHECK(is_plain() && is_ordered_ && !is_tested_);
  lane<>& own = lane_;
  std::uint32_t number = next_;
  const lane<>::record* task = &own.record_of(number);
  has_rung_ = false;
  for (;;) {
    run_task<true>(own, *task, number);
    restore_float_mode(mode);
    if (is_retiring) return;
    task = &anew(own.record_of(++number));
    if (!task->is_there(number)) return;
    if (may_be_awaited()) [[unlikely]]
      tell_before(number);
  }
}

// Tells of the ends before that of a task that is there, and of none twice.
void client::tell_before(std::uint32_t number) noexcept {
  LEV_DCHECK(number == next_ && lane_.has_record(number));
  if (are_ends_wanted() || runs_low()) notify_if_unwatched();
}

template <bool is_plain>
[[gnu::always_inline]] inline status client::run_body(const lane<>::record& task,
                                                      std::uint32_t number) noexcept {
  const resolved* const known =
      is_plain || unconfined_ == nullptr ? procedures_.find_known(task.procedure) : nullptr;
  if (known == nullptr) [[unlikely]]
    return run_unknown(task, number);
  return call_body<is_plain>(task, *known, number);
}

// For the first time here; or the procedure cannot be found, or nothing may run.
[[gnu::noinline]] status client::run_unknown(const lane<>::record& task,
                                             std::uint32_t number) noexcept {
  resolved procedure;
  const char* why =
      unconfined_ != nullptr ? unconfined_ : procedures_.find(task.procedure, &procedure);
  if (why != nullptr) return fail(lane_.new_details(number), status::bad_procedure, why);
  return call_body<false>(task, procedure, number);
}

// The details are written if the body does not succeed. A process that the body has forked has
// none.
template <bool is_plain>
[[gnu::always_inline]] inline status client::call_body(const lane<>::record& task,
                                                       const resolved& procedure,
                                                       std::uint32_t number) noexcept {
  try {
    if (!is_plain) pass(chaos_step::resolved, "worker.resolved");
    const int task_code =
        task.is_timed ? run_timed(procedure, task, lane_.new_details(number))
                      : procedure.run(call{task.arguments, task.argument_count, procedure.context});
    end_if_forked(task_code != 0);
    if (task_code == 0) [[likely]]
      return status::ok;
    end_details& how = lane_.new_details(number);
    fail(how, status::task_failed, "");
    how.task_code = task_code;
  } catch (const stopped_range& s) {
    end_if_forked(true);
    end_details& how = lane_.new_details(number);
    fail(how, s.code(), s.what());
    how.task_code = s.task_code();
    how.stopped_at = s.at();
    return s.code();
  } catch (...) {
    end_if_forked(true);
    fail(lane_.new_details(number), status::task_failed, text_of_thrown());
  }
  return status::task_failed;
}

// Libraries of the procedure that a piece of columns calls count as its own.
bool client::lacks_library_of_next() noexcept {
  const lane<>::record& task = lane_.record_of(next_);
  if (!procedures_.has_all_of(task.procedure)) return true;
  // A context is rebuilt by user code, which may end the process: only when the task has begun. The
  // bulk's procedure has none.
  if (procedures_.has_rebuild(task.procedure)) return false;
  resolved procedure;
  if (procedures_.find(task.procedure, &procedure) != nullptr || procedure.run != &run_columns)
    return false;
  return !procedures_.has_all_of(each_task_of(task).procedure);
}

void client::tell_idle(std::uint64_t waited_ns) noexcept {
  if (has_rung_) return;
  // A worker that polls for less than patience_ns tells of its ends before it sleeps.
  const bool is_wanted = are_ends_wanted() || is_patient();
  if (waited_ns < patience_ns && waited_ns < about_.spin_ns && !is_wanted) return;
  tell_of_ends();
}

void client::notify_if_unwatched() noexcept {
  // Pairs with unwatch(): a host that watches takes the end; one that leaves looks once more.
  if (board_.watch.watchers.load(memory_order_seq_cst) != 0) return;
  if (lane_.rung.load(memory_order_relaxed) != 0 ||
      lane_.rung.exchange(1, memory_order_acq_rel) != 0)  // Pairs with the host's clearing
    return;
  notify();
}

void client::notify() noexcept {
  fault_at("worker.ring");
  const std::uint64_t one = 1;
  // The counter of the bell saturates at 2^64: the write does not fail, and no thread could help
  // it.
  [[maybe_unused]] const ssize_t n = write(bell_, &one, sizeof one);
}

}  // namespace lev::processes
