// The machine `threads`: a worker is a thread, a local store is memory, a copy is a memcpy. See
// README.md beside this file.
#include "machine/machine.hpp"
#include "machine/store_memory.hpp"

#include "machines/threads/cores.hpp"
#include "sync/futex.hpp"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <new>
#include <vector>

namespace lev {

namespace {

class thread_machine final : public machine {
 public:
  explicit thread_machine(const config& c) noexcept : pin_(c.pin), start_ns_(monotonic_ns()) {}

  capability capabilities() const noexcept override { return {true, false, false, true}; }

  bool start(std::uint32_t workers, worker_entry entry, void* context) noexcept override;
  void join() noexcept override {
    for (launch& l : launches_) pthread_join(l.thread, nullptr);
    launches_.clear();
  }

  std::uint64_t now_ns() noexcept override { return monotonic_ns() - start_ns_; }
  void relax() noexcept override { relax_core(); }
  void yield_core() noexcept override { sched_yield(); }
  std::uint32_t core_number() noexcept override {
    const int core = sched_getcpu();
    return core < 0 ? 0 : static_cast<std::uint32_t>(core);
  }

  void wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns) noexcept override {
    if (deadline_ns != no_deadline) deadline_ns += start_ns_;
    sleep_while(word, expected, deadline_ns, sleepers::here);
  }
  void wake_word(atomic<std::uint32_t>& word) noexcept override {
    wake_sleeper(word, sleepers::here);
  }

  void begin_sleep(sleeper_thread& s) noexcept override { lev::begin_sleep(s); }
  void end_sleep(sleeper_thread& s) noexcept override { lev::end_sleep(s); }
  // The system also puts a thread that slept on another core onto this one if the other is busy
  // now. That happens where cores are few, and there keeping it off is worth another microsecond.
  void begin_wake(sleeper_thread& s) noexcept override {
    keep_off(s, core_number(), !has_few_cores_);
  }
  void end_wake(sleeper_thread& s) noexcept override { give_back(s); }

  void* open_store(std::size_t bytes) noexcept override { return map_store(bytes); }
  void close_store(void* store, std::size_t bytes) noexcept override { unmap_store(store, bytes); }

  void get(std::uint32_t, void* local, const argument& remote) noexcept override {
    copy_rows(local, remote, true);
  }
  void put(std::uint32_t, const void* local, const argument& remote) noexcept override {
    copy_rows(const_cast<void*>(local), remote, false);
  }

 private:
  struct launch {
    pthread_t thread;
    worker_entry entry;
    void* context;
    std::uint32_t worker;
    int core;  // to be bound to; -1: none
  };

  static void* run(void* argument) {
    const launch& l = *static_cast<launch*>(argument);
    if (l.core >= 0) bind_to_core(l.core);
    char name[16] = "leveret-worker";
    pthread_setname_np(pthread_self(), name);
    l.entry(l.context, l.worker);
    return nullptr;
  }

  static constexpr unsigned few_cores = 4;
  bool pin_;
  bool has_few_cores_ = available_cores() <= few_cores;
  std::uint64_t start_ns_;
  std::vector<launch> launches_;
};

bool thread_machine::start(std::uint32_t workers, worker_entry entry, void* context) noexcept try {
  launches_.reserve(workers);  // addresses must not move
  for (std::uint32_t i = 0; i < workers; ++i) {
    // The last cores first: the host program is likely to run on the first.
    const int core = pin_ ? core_at(available_cores() - 1 - i % available_cores()) : -1;
    launches_.push_back({pthread_t{}, entry, context, i, core});
    errno = pthread_create(&launches_.back().thread, nullptr, &run, &launches_.back());
    if (errno != 0) {
      launches_.pop_back();
      return false;
    }
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

extern const machine_kind threads_kind;
const machine_kind threads_kind = {"threads", []() noexcept -> const char* { return nullptr; },
                                   [](const config& c, const void*) noexcept -> machine* {
                                     return new (std::nothrow) thread_machine(c);
                                   }};

}  // namespace lev
