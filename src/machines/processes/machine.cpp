// The machine `processes`: a worker is a process, and a fault in it ends that process and nothing
// else. See README.md beside this file.
#include "base/decimal.hpp"
#include "base/numbers.hpp"
#include "machines/processes/pool.hpp"
#include "machines/processes/text.hpp"
#include "remote/remote_line.hpp"
#include "share/faults.hpp"
#include "share/role.hpp"
#include "share/zone.hpp"
#include "sync/elsewhere.hpp"
#include "sync/futex.hpp"
#include "sync/switches.hpp"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace lev {

namespace {

using processes::lane;
using processes::pool;

// The pipeline keeps no more of a line than a lane has room for.
static_assert(line_jobs_max <= processes::lane_records);
// The text of an end fits, with the zero that terminates it.
static_assert(sizeof(remote_end::text) == processes::end_details::text_max + 1);

// Host threads sleep on a futex; the service sleeps where workers and the zygote reach it. A
// service that a callback has brought into another runtime is a host like any other there.
class process_machine;
thread_local const process_machine* served_here = nullptr;

// What a task calls is at the beginning of the object: calls of the second base need one step more.
class process_machine final : public remote_workers, public machine {
 public:
  explicit process_machine(const config& c) noexcept : pool_(c), start_ns_(monotonic_ns()) {}

  capability capabilities() const noexcept override { return {false, false, false, true}; }
  remote_workers* remote() noexcept override { return this; }
  const char* why_not() const noexcept override { return pool_.why(); }
  status why_status() const noexcept override { return pool_.why_status(); }

  bool start(std::uint32_t workers, worker_entry entry, void* context) noexcept override;
  void abandon() noexcept override {
    served_here = nullptr;  // if the service forked, in a callback
    pool_.abandon();
  }
  void join() noexcept override {
    if (is_started_) pthread_join(service_, nullptr);
    is_started_ = false;
    pool_.close();
  }

  std::uint64_t now_ns() noexcept override { return monotonic_ns() - start_ns_; }
  void relax() noexcept override { relax_core(); }
  void yield_core() noexcept override { sched_yield(); }
  std::uint64_t core_switches() noexcept override { return switches_of_thread(); }
  std::uint32_t core_number() noexcept override {
    const int core = sched_getcpu();
    return core < 0 ? 0 : static_cast<std::uint32_t>(core);
  }
  void wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns) noexcept override;
  void wake_word(atomic<std::uint32_t>& word) noexcept override {
    if (service_sleep_.must_ring(word)) {
      pool_.notify();
    } else {
      wake_sleeper(word, sleepers::here);
    }
  }

  // The stores are the lanes': see store_of().
  void* open_store(std::size_t) noexcept override { return nullptr; }
  void close_store(void*, std::size_t) noexcept override {}
  void* open_spill(std::size_t bytes) noexcept override {
    return shared_allocate_for_overwrite(bytes);
  }
  void close_spill(void* spill) noexcept override { shared_free(spill); }
  void get(std::uint32_t, void* local, const argument& remote) noexcept override {
    fault_at("host.copy_in");
    auto* packed = static_cast<char*>(local);
    auto* row = reinterpret_cast<const char*>(remote.address);
    for (std::uint32_t r = 0; r < remote.rows; ++r) {
      shared_copy(packed, row, remote.row_bytes);
      packed += remote.row_bytes;
      row += remote.stride_bytes;
    }
  }
  void put(std::uint32_t, const void* local, const argument& remote) noexcept override {
    fault_at("host.copy_out");
    copy_rows(const_cast<void*>(local), remote, false);
  }

  bool open(std::uint32_t workers) noexcept override;
  void* store_of(std::uint32_t worker) noexcept override { return pool_.store_of(worker); }
  const char* can_run(procedure_id id) noexcept override {
    return pool_.procedures().has(id) ? nullptr : pool_.procedures().write(id);
  }
  const atomic<std::uint8_t>* known() const noexcept override {
    return pool_.procedures().written();
  }
  void write(std::uint32_t worker, std::uint32_t ahead, remote_call c) noexcept override;
  void post(std::uint32_t worker, std::uint32_t count) noexcept override;
  void send(std::uint32_t worker, remote_call c) noexcept override;
  bool take_back(std::uint32_t worker, std::uint32_t n) noexcept override;
  bool has_end(std::uint32_t worker) const noexcept override {
    const pool::worker_state& s = pool_.at(worker);
    return s.lane->has_end(s.oldest());
  }
  remote_ends ends_of(std::uint32_t worker) const noexcept override;
  std::uint64_t spent_ns(std::uint32_t worker, std::uint32_t n) const noexcept override;
  void take_successes(std::uint32_t worker, std::uint32_t count) noexcept override;
  bool collect(std::uint32_t worker, remote_end* end) noexcept override;

  bool is_crowded() const noexcept override { return pool_.is_crowded(); }
  bool is_away(std::uint32_t worker) const noexcept override { return pool_.is_away(worker); }
  void watch() noexcept override {
    // Pairs with the worker's look after an end.
    pool_.its_board().watch.watchers.fetch_add(1, memory_order_seq_cst);
  }
  void unwatch() noexcept override {
    // Pairs with the worker's look after an end; the caller looks at the ends once more.
    const std::uint32_t before =
        pool_.its_board().watch.watchers.fetch_sub(1, memory_order_seq_cst);
    LEV_DCHECK(before != 0);
  }
  void want_ends(bool wanted, bool is_patient) noexcept override {
    processes::end_watch<>& watch = pool_.its_board().watch;
    auto& wishes = is_patient ? watch.patient : watch.ends_wanted;
    // Pairs with the worker's look after an end, as watch().
    const std::uint32_t before = wishes.fetch_add(wanted ? 1u : ~0u, memory_order_seq_cst);
    LEV_DCHECK(wanted || before != 0);
  }
  void notify_service() noexcept override { pool_.notify(); }

  bool next_death(remote_death* death) noexcept override { return pool_.next_death(death); }
  bool was_begun(std::uint32_t worker) noexcept override;
  bool has_begun_none(std::uint32_t worker) const noexcept override {
    return pool_.has_begun_none(worker);
  }
  std::uint32_t index_begun(std::uint32_t worker) noexcept override;
  bool replace(std::uint32_t worker) noexcept override { return pool_.replace(worker); }
  bool kill(std::uint32_t worker, bool is_lost) noexcept override {
    return pool_.kill(worker, is_lost);
  }
  bool spared(std::uint32_t worker) noexcept override { return pool_.spared(worker); }
  bool revisit(std::uint32_t worker) noexcept override;
  void rouse_parent() noexcept override { pool_.rouse_zygote(); }

 private:
  [[gnu::noinline]] void send_with_care(std::uint32_t worker, remote_call c) noexcept;
  [[gnu::noinline]] void post_with_faults(std::uint32_t worker, std::uint32_t first,
                                          std::uint32_t count) noexcept;
  static void* run_service(void* self) {
    const auto& m = *static_cast<process_machine*>(self);
    served_here = &m;
    pthread_setname_np(pthread_self(), "leveret-service");
    m.entry_(m.context_, m.service_index_);
    return nullptr;
  }

  pool pool_;
  std::uint64_t start_ns_;
  worker_entry entry_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t service_index_ = 0;
  pthread_t service_{};
  bool is_started_ = false;
  elsewhere<> service_sleep_;
};

bool process_machine::open(std::uint32_t workers) noexcept try {
  return pool_.open(workers);
} catch (const std::bad_alloc&) {
  return false;
}

bool process_machine::start(std::uint32_t workers, worker_entry entry, void* context) noexcept {
  LEV_ASSERT(!is_started_ && workers <= workers_max);
  entry_ = entry;
  context_ = context;
  service_index_ = workers;
  if (fault_at("host.start_service")) return false;
  errno = pthread_create(&service_, nullptr, &run_service, this);
  is_started_ = errno == 0;
  return is_started_;
}

void process_machine::wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                                std::uint64_t deadline_ns) noexcept {
  std::uint64_t end_ns = no_deadline;
  if (!checked_add(deadline_ns, start_ns_, &end_ns)) end_ns = no_deadline;
  if (served_here != this) return sleep_while(word, expected, end_ns, sleepers::here);
  if (service_sleep_.may_sleep(word, expected)) pool_.wait(end_ns);
}

// No task behind one without an end was begun; nor was any by a worker that has not been ordered to
// work, or that serves another host (berth.hpp).
bool process_machine::take_back(std::uint32_t worker, std::uint32_t n) noexcept {
  pool::worker_state& s = pool_.at(worker);
  const std::uint32_t number = s.oldest() + n;
  LEV_DCHECK(n < s.tasks());
  const bool is_back = s.lane->take_back(number) || pool_.has_begun_none(worker) ||
                       (pool_.has_left_us(worker, number) && !s.lane->has_end(number));
  if (is_back) s.taken_back |= pool::bit_of(number);
  return is_back;
}

void process_machine::write(std::uint32_t worker, std::uint32_t ahead, remote_call c) noexcept {
  pool::worker_state& s = pool_.at(worker);
  const std::uint32_t number = s.next() + ahead;
  LEV_DCHECK(number - s.oldest() < processes::lane_records);
  LEV_DCHECK(c.argument_count <= argument_count_max && c.attempt != 0);
  LEV_DCHECK(pool_.procedures().has(c.procedure));
  if (s.taken_back != 0) [[unlikely]]
    s.taken_back &= ~pool::bit_of(number);  // the task before that had this place
  lane<>::record& r = s.lane->new_record(number);
  lane<>::describe(r, c);
  for (unsigned i = 0; i < c.argument_count; ++i) r.arguments[i] = c.arguments[i];
}

void process_machine::post(std::uint32_t worker, std::uint32_t count) noexcept {
  pool::worker_state& s = pool_.at(worker);
  const std::uint32_t first = s.next();
  // Pairs with show_victim(): publishes the records.
  s.posted.store(first + count - 1, memory_order_release);
  LEV_DCHECK(s.tasks() <= processes::lane_records);
  if (has_fault_plan()) [[unlikely]]
    return post_with_faults(worker, first, count);
  if (s.lane->post(first, count)) [[unlikely]]
    pool_.wake(worker);
}

// In a straight line, with nothing behind a call, for a task without arguments.
void process_machine::send(std::uint32_t worker, remote_call c) noexcept {
  pool::worker_state& s = pool_.at(worker);
  if (c.argument_count != 0 || s.taken_back != 0 || has_fault_plan()) [[unlikely]]
    return send_with_care(worker, c);
  lane<>& own = *s.lane;
  const std::uint32_t number = s.next();
  LEV_DCHECK(number - s.oldest() < processes::lane_records);
  LEV_DCHECK(c.attempt != 0 && pool_.procedures().has(c.procedure));
  lane<>::describe(own.new_record(number), c);
  // Pairs with show_victim(): publishes the record.
  s.posted.store(number, memory_order_release);
  if (own.post(number, 1)) [[unlikely]]
    return pool_.wake(worker);
}
void process_machine::send_with_care(std::uint32_t worker, remote_call c) noexcept {
  write(worker, 0, c);
  post(worker, 1);
}

void process_machine::post_with_faults(std::uint32_t worker, std::uint32_t first,
                                       std::uint32_t count) noexcept {
  fault_at("host.post");
  if (pool_.at(worker).lane->post(first, count)) pool_.wake(worker);
}

// The words that a worker may say of a task; any other is a failure.
status checked_result(std::uint8_t code) noexcept {
  const auto said = static_cast<status>(code);
  const bool is_known =
      said == status::ok || said == status::bad_procedure || said == status::cancelled;
  return is_known ? said : status::task_failed;
}

remote_ends process_machine::ends_of(std::uint32_t worker) const noexcept {
  const pool::worker_state& s = pool_.at(worker);
  const lane<>& own = *s.lane;
  const std::uint32_t oldest = s.oldest();
  const std::uint32_t tasks = s.next() - oldest;
  const std::uint32_t successes = own.successes(oldest, tasks);
  if (successes == tasks) return remote_ends(successes);
  return remote_ends(successes, own.has_end(oldest + successes));
}

std::uint64_t process_machine::spent_ns(std::uint32_t worker, std::uint32_t n) const noexcept {
  const pool::worker_state& s = pool_.at(worker);
  const std::uint32_t number = s.oldest() + n;
  LEV_DCHECK(n < s.tasks());
  const volatile processes::end_details& how = s.lane->details_of(number);
  return how.spent_ns;
}

// By itself, so that its caller saves no registers.
[[gnu::cold, gnu::noinline]] void take_with_faults(pool::worker_state& s,
                                                   std::uint32_t last) noexcept {
  fault_at("host.collect");
  s.collected.store(last, memory_order_relaxed);
}

void process_machine::take_successes(std::uint32_t worker, std::uint32_t count) noexcept {
  pool::worker_state& s = pool_.at(worker);
  const std::uint32_t before = s.collected.load(memory_order_relaxed);
  LEV_DCHECK(count != 0 && count <= s.tasks());
  if (has_fault_plan()) [[unlikely]]
    return take_with_faults(s, before + count);
  s.collected.store(before + count, memory_order_relaxed);
}

bool process_machine::collect(std::uint32_t worker, remote_end* end) noexcept {
  pool::worker_state& s = pool_.at(worker);
  const std::uint32_t number = s.oldest();
  if (number == s.next()) return false;
  const std::uint64_t said = s.lane->end_of(number);
  if (lane<>::number_of(said) != number) return false;
  LEV_DCHECK(s.posted.load(memory_order_relaxed) - number < processes::lane_records);
  fault_at("host.collect");
  end->result = checked_result(lane<>::code_of(said));
  s.collected.store(number, memory_order_relaxed);
  end->text[0] = 0;
  if (end->result == status::ok) return true;
  const volatile processes::end_details& how = s.lane->details_of(number);
  const std::size_t bytes = smaller<std::size_t>(how.text_bytes, processes::end_details::text_max);
  end->task_code = how.task_code;
  end->stopped_at = how.stopped_at;
  char text[processes::end_details::text_max];
  for (std::size_t i = 0; i < bytes; ++i) text[i] = how.text[i];
  const std::size_t text_bytes = bytes == 0 ? 0 : processes::make_printable(text, bytes, end->text);
  LEV_DCHECK(text_bytes <= bytes && end->result != status::pending);
  end->text[text_bytes] = 0;
  return true;
}

// A worker takes its tasks in order, so it has begun the oldest one without an end, or none. Any
// other claim is a lie; the oldest task is then taken as begun.
bool process_machine::was_begun(std::uint32_t worker) noexcept {
  const pool::worker_state& s = pool_.at(worker);
  const std::uint32_t oldest = s.oldest();
  const std::uint32_t said = s.lane->claimed.load(memory_order_relaxed);
  return said + 1 != oldest;
}

std::uint32_t process_machine::index_begun(std::uint32_t worker) noexcept {
  const pool::worker_state& s = pool_.at(worker);
  const std::uint32_t oldest = s.oldest();
  const std::uint64_t said = s.lane->index_begun.load(memory_order_relaxed);
  return said >> 32 == oldest ? static_cast<std::uint32_t>(said) : no_index;
}

// In a sound lane the words that only the host writes are unchanged, ends come in order, and a
// worker that was woken does not fall asleep again before the same task. Anything else means that
// the lane has been overwritten. A slow or stopped worker shows none of this.
bool process_machine::revisit(std::uint32_t worker) noexcept {
  pool::worker_state& s = pool_.at(worker);
  lane<>& lane = *s.lane;
  const std::uint32_t oldest = s.oldest();
  bool is_whole = true;
  bool has_later_end = false;
  for (std::uint32_t n = oldest; n != s.next(); ++n) {
    is_whole &= lane.has_record(n);
    has_later_end |= n != oldest && lane.has_end(n);
  }
  if (lane.has_end(oldest)) {                  // after the check of later ones
    lane.rung.store(0, memory_order_relaxed);  // or it would not tell of the next end either
    return true;
  }
  pool_.rouse_tracer();
  const bool is_asleep = lane.wake();
  pool_.wake(worker);  // even if it seems to be awake
  if (!is_whole || has_later_end) return false;
  if (is_asleep && s.roused == oldest) return false;
  if (is_asleep) s.roused = oldest;
  return true;
}

const char* why_unavailable() noexcept {
  if (is_privileged())
    return "the program has rights that its user does not have (set-user-id, set-group-id, "
           "file capabilities), and its worker processes would take orders from that "
           "user's environment; use the machine threads";
  if (acts_for_another()) return pool::two_users;
  if (!can_watch_processes())
    return "worker processes need Linux 5.3 or later, and a container that allows pidfd_open; "
           "use the machine threads";
  return nullptr;
}

machine* make_processes(const config& c, const void*) {
  return new (std::nothrow) process_machine(c);
}

// The name becomes part of a socket's name, and of messages.
void check_pool(const char* name) {
  constexpr std::size_t name_bytes_max = 60;
  const std::size_t bytes = strnlen(name, name_bytes_max + 1);
  bool is_good = bytes != 0 && bytes <= name_bytes_max;
  for (std::size_t i = 0; is_good && i < bytes; ++i) {
    is_good = is_letter_or_digit(name[i]) || std::strchr("._-", name[i]) != nullptr;
  }
  if (!is_good)
    throw error(status::bad_config, -1,
                "config.processes.pool: must be 1 to 60 letters, digits, '.', '-' or '_'");
}

std::shared_ptr<const void> check_processes(config& c) {
  if (c.processes.pool != nullptr) check_pool(c.processes.pool);
  const char* const* command = c.processes.worker_command;
  if (command != nullptr && (command[0] == nullptr || command[0][0] == 0))
    throw error(status::bad_config, -1,
                "config.processes.worker_command: names no program; its first word must, null "
                "means this one");
  return nullptr;
}

}  // namespace

extern const machine_kind processes_kind;
const machine_kind processes_kind = {"processes", &why_unavailable, &make_processes, true,
                                     &check_processes};

}  // namespace lev
