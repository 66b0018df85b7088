// The life of a worker process: take the next record of its lane, run it, say how it ended.
#include "machines/processes/zygote.hpp"

#include "base/random.hpp"
#include "share/faults.hpp"
#include "sync/futex.hpp"
#include "worker/execute.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

namespace lev::processes {

namespace {

// How long an idle worker waits before it tells the host of an end that nobody seems to look for:
// a host that submits without a pause comes back sooner, and would only be disturbed.
constexpr std::uint64_t patience_ns = 5'000;
constexpr std::uint32_t looks_per_clock = 64;

bool is_retiring = false;  // retire_worker() was called in this process

class worker_process {
 public:
  explicit worker_process(const worker_start& start) noexcept
      : about_(*start.about),
        watch_(start.shared->watch),
        desk_(*start.desk),
        bell_(start.bell),
        procedures_(&start.shared->procedures),
        is_tested_(start.about->chaos != 0 || has_fault_plan()),
        random_(start.about->seed * 0x10001u ^ std::uint64_t{start.desk->first} << 20 ^
                static_cast<std::uint64_t>(getpid())) {}

  [[noreturn]] void run() noexcept {
    pass(chaos_step::started, "worker.started");
    if (is_confined()) {
      procedures_.load_all();
      unconfined_ = confine(bell_);
    }
    float_mode_ = float_mode();
    desk_.arrived.store(1, memory_order_relaxed);
    ring();
    fault_at("worker.arrived");
    wait_for_orders();
    fault_at("worker.ordered");
    for (std::uint32_t number = desk_.first;; ++number) {
      await(number);
      if (is_confined() && !procedures_.has_all_of(desk_.record_of(number).procedure))
        leave(new_library_code);
      pass(chaos_step::received, "worker.received");
      desk_.claim(number);
      pass(chaos_step::claimed, "worker.claimed");
      run_task(number);
      pass(chaos_step::executed, "worker.executed");
      desk_.finish(number);
      pass(chaos_step::finished, "worker.finished");
      if (is_retiring) leave();
      if (desk_.has_record(number + 1)) ring_if_wanted();
    }
  }

 private:
  // A step of the protocol, at which a worker of a test may end.
  void pass(chaos_step step, fault_name point) noexcept {
    if (!is_tested_) return;
    fault_at(point);
    if (about_.chaos == 0 || random_.below(about_.chaos) != 0) return;
    desk_.died_at.store(static_cast<std::uint32_t>(step), memory_order_relaxed);
    kill(getpid(), SIGKILL);
  }
  void wait_for_orders() noexcept {
    for (;;) {
      obey();
      if (desk_.orders.load(memory_order_relaxed) == lane<>::order_work) return;
      sleep(0);
    }
  }
  void obey() noexcept {
    if (desk_.orders.load(memory_order_relaxed) == lane<>::order_stop) leave();
  }
  [[noreturn]] static void leave(int code = 0) noexcept {
    fault_at("worker.leave");
    std::fflush(nullptr);
    _exit(code);
  }
  bool is_confined() const noexcept { return about_.level == lev::isolation::confined; }

  // Returns when the record is there.
  void await(std::uint32_t number) noexcept {
    if (desk_.has_record(number)) return;
    const std::uint64_t begin_ns = monotonic_ns();
    bool has_rung = false;
    for (;;) {
      for (std::uint32_t look = 0; look < looks_per_clock; ++look) {
        if (desk_.has_record(number)) return;
        real_env::pause();
      }
      obey();
      const std::uint64_t waited_ns = monotonic_ns() - begin_ns;
      if (!has_rung && (has_rung = waited_ns >= patience_ns || is_eager())) ring_if_unwatched();
      if (waited_ns < about_.spin_ns) continue;
      if (!std::exchange(has_rung, true)) ring_if_unwatched();  // spin_ns is less than the patience
      sleep(number);
    }
  }

  void sleep(std::uint32_t number) noexcept {
    desk_.fall_asleep();
    fault_at("worker.fall_asleep");
    const bool is_wanted = number != 0 && desk_.has_record(number);
    const std::uint32_t order = desk_.orders.load(memory_order_seq_cst);  // Pairs with give_order()
    if (!is_wanted && order != lane<>::order_stop && (number != 0 || order == lane<>::order_wait))
      sleep_while(desk_.asleep, 1, no_deadline, sleepers::anywhere);
    fault_at("worker.woken");
    desk_.wake_up();
  }

  // Somebody waits asleep for ends: they are told at once. Otherwise the host takes them when it
  // next comes by, or when this lane runs dry.
  bool is_eager() const noexcept { return watch_.eager.load(memory_order_relaxed) != 0; }
  void ring_if_wanted() noexcept {
    if (is_eager()) ring_if_unwatched();
  }
  void ring_if_unwatched() noexcept {
    // Pairs with board: a host that watches takes the end; one that leaves looks once more.
    if (watch_.watchers.load(memory_order_seq_cst) != 0) return;
    if (desk_.rung.load(memory_order_relaxed) != 0 ||
        desk_.rung.exchange(1, memory_order_acq_rel) != 0)  // Pairs with the host's clearing
      return;
    ring();
  }
  void ring() noexcept {
    fault_at("worker.ring");
    const std::uint64_t one = 1;
    // The counter of the bell saturates at 2^64: the write does not fail, and nobody could mend it.
    [[maybe_unused]] const ssize_t n = write(bell_, &one, sizeof one);
  }

  void run_task(std::uint32_t number) noexcept {
    const lane<>::record& task = desk_.record_of(number);
    ending& how = desk_.end_of(number).how;
    how.code = static_cast<std::uint8_t>(status::ok);
    how.task_code = 0;
    how.text_bytes = 0;
    if (task.skip.load(memory_order_relaxed) == number) {
      how.code = static_cast<std::uint8_t>(status::cancelled);
      return;
    }
    resolved procedure;
    const char* why =
        unconfined_ != nullptr ? unconfined_ : procedures_.find(task.procedure, &procedure);
    if (why != nullptr) return fail(how, status::bad_procedure, why);
    try {
      pass(chaos_step::resolved, "worker.resolved");
      how.task_code = procedure.run(call{task.arguments, task.argument_count, procedure.context});
      if (how.task_code != 0) how.code = static_cast<std::uint8_t>(status::task_failed);
    } catch (const std::exception& e) {
      fail(how, status::task_failed, e.what());
    } catch (...) {
      fail(how, status::task_failed, "an exception that is no std::exception");
    }
    if (float_mode() != float_mode_) set_float_mode(float_mode_);
  }

  static void fail(ending& how, status code, const char* text) noexcept {
    how.code = static_cast<std::uint8_t>(code);
    const std::size_t bytes = smaller(std::strlen(text), ending::text_max);
    std::memcpy(how.text, text, bytes);
    how.text_bytes = static_cast<std::uint16_t>(bytes);
  }

  const introduction& about_;
  const board<>& watch_;
  lane<>& desk_;
  int bell_;
  book_reader procedures_;
  const bool is_tested_;
  random_source random_;
  const char* unconfined_ = nullptr;  // why the worker could not be confined; then it runs nothing
  std::uint64_t float_mode_ = 0;
};

}  // namespace

[[noreturn]] void serve(const worker_start& start) noexcept {
  static worker_process* self = new worker_process(start);  // outlives atexit handlers
  self->run();
}

void retire() noexcept {
  is_retiring = true;
}

}  // namespace lev::processes

namespace lev {

void retire_worker() noexcept {
  processes::retire();
}

}  // namespace lev
