// machine: what differs between the places where tasks run. The pipeline is written once, on top of
// this.
//
// To add a machine:
//   1. a folder src/machines/NAME with a README that says what serves as worker, local store,
//      copy engine and doorbell there;
//   2. a class that derives from `machine`; its constructor may fail, its start() reserves
//      everything;
//   3. a `machine_kind` with its name, and its line in registry.cpp;
//   4. its name in the conformance suite.
//
// Every wait goes through relax() or wait_word(), so a machine with virtual time decides which
// actor runs next.
#pragma once

#include <leveret/config.hpp>
#include <leveret/status.hpp>
#include <leveret/task.hpp>

#include "store/arena.hpp"
#include "sync/env.hpp"
#include "sync/futex.hpp"
#include "sync/thread_notes.hpp"

#include <sched.h>

#include <cstdlib>
#include <memory>

namespace lev {

// What a machine can do. The pipeline asks this, never the machine's name.
struct capability {
  bool in_place;              // tasks may use the caller's memory where it is
  bool async_copies;          // get and put proceed while the worker runs: staging ahead pays
  bool virtual_time;          // now_ns() is simulated, and cost() is to be told
  bool many_hosts;            // more than one host thread may call in
  bool working_hosts = true;  // host threads that wait may run tasks
};

// A task on its way to a worker in another process. Addresses mean the same there as here. It is
// passed in two registers, and what stands before its arguments is copied as one word.
struct remote_call {
  procedure_id procedure = 0;
  std::uint8_t argument_count = 0;
  bool is_timed = false;
  std::uint16_t attempt = 1;
  std::uint16_t unused = 0;
  const argument* arguments = nullptr;
};
static_assert(std::is_trivially_copyable_v<remote_call> && sizeof(remote_call) == 16);

// The end of the task: bytes from another process, which are copied once, then checked, then used.
struct remote_end {
  status result = status::ok;
  int task_code = 0;
  std::uint32_t stopped_at = 0;  // of a piece of columns that has failed, or was told to stop
  char text[224];                // of an exception, terminated; empty when there was none
};

// The ends that a worker has written: how many of its oldest tasks in a row have succeeded, and
// whether the next one has ended otherwise.
class remote_ends {
 public:
  explicit constexpr remote_ends(std::uint32_t successes, bool has_other = false) noexcept
      : word_(successes | (has_other ? other : 0)) {}
  constexpr std::uint32_t successes() const noexcept { return word_ & ~other; }
  constexpr bool has_other() const noexcept { return (word_ & other) != 0; }
  bool operator==(const remote_ends&) const = default;

 private:
  static constexpr std::uint32_t other = 1u << 31;
  std::uint32_t word_;
};

// Whether a procedure was made known to the workers. If it was, whether its tasks have only values,
// and no more than lie in a slot.
struct known_as {
  enum : std::uint8_t { none = 0, any = 1, of_near_values = 2 };
};

// Where config.processes.chaos may kill a worker. Between `claimed` and `executed` its task is run
// again.
enum class chaos_step : std::uint32_t {
  started = 1,
  received,
  claimed,
  resolved,
  executed,
  finished,
  count
};

// The death of a worker, confirmed by the kernel.
struct remote_death {
  std::uint32_t worker = 0;
  int how = 0;                // as waitpid() says, for death_hook; -1: not known
  char text[48] = "";         // the same in words: "signal 11 (SIGSEGV)"
  int task_code = 0;          // of the task that it ended: the signal, negative, or the exit code
  bool is_violation = false;  // it asked for what it may not have, and would ask again
  std::uint32_t step = 0;     // where config.processes.chaos killed it; 0: it was something else
  bool had_work = false;      // it had begun a task, some time in its life
  bool was_ordered = false;   // kill() was called for it
  bool was_away = false;      // it served another host, so it was in no task of this one
  int start_code = 0;         // errno, if it could not be started, or its death not be watched
  bool was_there = true;      // false: it could not be started
  bool is_late = false;       // it was killed as it was not ready for its first task for too long
  bool is_further = false;    // its parent has ended, and the death of another child was told
};

// remote_workers: workers in other processes. Each has a line of tasks that were posted to it, up
// to line_jobs_max (remote/remote_line.hpp), which it runs in order. Calls for one worker come from
// one caller at a time, unless they say otherwise; the pipeline chooses the caller, and handles the
// tasks (remote/tend.cpp).
class remote_workers {
 public:
  // open() starts the processes; false leaves machine::why_not(). Before machine::start().
  virtual bool open(std::uint32_t workers) noexcept = 0;
  virtual void* store_of(std::uint32_t worker) noexcept = 0;

  // can_run() makes a procedure known to the workers; null, or why it cannot run there. Any thread.
  virtual const char* can_run(procedure_id id) noexcept = 0;
  // known() says of each procedure whether it was made known; acquired, it publishes that. Any
  // thread.
  virtual const atomic<std::uint8_t>* known() const noexcept = 0;
  // write() writes a task for the worker, `ahead` places behind its next one; post() sends off the
  // next `count`, which were written since the last post(). send() does both for one task.
  virtual void write(std::uint32_t worker, std::uint32_t ahead, remote_call c) noexcept = 0;
  virtual void post(std::uint32_t worker, std::uint32_t count) noexcept = 0;
  virtual void send(std::uint32_t worker, remote_call c) noexcept = 0;
  // take_back() asks the worker not to begin the n-th uncollected task (from 0). True: it has not,
  // and will not; the task's end means nothing. False: that is not certain, and the end will tell:
  // `cancelled` if the worker did not begin it.
  virtual bool take_back(std::uint32_t worker, std::uint32_t n) noexcept = 0;
  // has_end() tells whether collect() would take something; a hint, for any thread.
  virtual bool has_end(std::uint32_t worker) const noexcept = 0;
  // is_away() tells that the worker serves another host process now; a hint, for any thread.
  virtual bool is_away(std::uint32_t worker) const noexcept = 0;
  // is_crowded() tells that so many host processes share the workers that a polling host takes the
  // core from a thread that could work. Any thread.
  virtual bool is_crowded() const noexcept = 0;
  // ends_of() tells which ends can be taken, and take_successes() takes that many of its successes.
  // spent_ns() is the time that the n-th of them (from 0) took, if it was timed; the worker's word.
  // collect() takes the end of the worker's oldest task; false when it has not ended. The worker
  // may say `cancelled` of a task that it was not asked to leave.
  virtual remote_ends ends_of(std::uint32_t worker) const noexcept = 0;
  virtual std::uint64_t spent_ns(std::uint32_t worker, std::uint32_t n) const noexcept = 0;
  virtual void take_successes(std::uint32_t worker, std::uint32_t count) noexcept = 0;
  virtual bool collect(std::uint32_t worker, remote_end* end) noexcept = 0;

  // A thread that polls for ends calls watch(), and after unwatch() polls once more. While there is
  // no watcher, workers ring the service. A thread that sleeps until a task ends calls
  // want_ends(true) before, to be told at once or, if it is patient, when a line runs low, and
  // want_ends(false) afterwards. Any thread.
  virtual void watch() noexcept = 0;
  virtual void unwatch() noexcept = 0;
  virtual void want_ends(bool wanted, bool is_patient = false) noexcept = 0;
  // notify_service() wakes the service. Any thread.
  virtual void notify_service() noexcept = 0;

  // The service's part. next_death() takes news from the machine. was_begun() says whether the
  // worker has begun its oldest uncollected task; the worker may lie about it. replace() empties
  // the worker's line and starts another process for it.
  //
  // kill() ends a worker in its oldest task. False: it cannot be done now; try again. True: its
  // death will be reported. If other host processes share it and it is in none of this one's tasks,
  // spared() reports that instead, once. Nothing may be posted to the worker until then. `is_lost`:
  // it begins none of its tasks, so it is not spared, but ends behind the task of another host.
  virtual bool next_death(remote_death* death) noexcept = 0;
  virtual bool was_begun(std::uint32_t worker) noexcept = 0;
  // has_begun_none() is certain: the worker is not ready for its first task yet.
  virtual bool has_begun_none(std::uint32_t worker) const noexcept = 0;
  // index_begun() is the index of a piece of columns, its oldest task, that the worker says it has
  // begun; no_index: none.
  virtual std::uint32_t index_begun(std::uint32_t worker) noexcept = 0;
  virtual bool replace(std::uint32_t worker) noexcept = 0;
  virtual bool kill(std::uint32_t worker, bool is_lost) noexcept = 0;
  virtual bool spared(std::uint32_t worker) noexcept = 0;
  // revisit() wakes a worker that has tasks and has ended none for a while: it may have overwritten
  // the words that tell it of tasks, or tell the host of ends. False: that will not help. In the
  // line's turn.
  virtual bool revisit(std::uint32_t worker) noexcept = 0;
  // rouse_parent() is called now and then while there are tasks. If the parent of the workers has
  // owed a report since the last call, it may be stopped, and is continued.
  virtual void rouse_parent() noexcept = 0;

 protected:
  ~remote_workers() = default;
};

// sleeper_thread: a thread of the system that sleeps until it is woken for work. A waker may keep
// it off a core while it wakes it; never while it runs.
//
//   awake   it runs, or its cores are as they were      begin_sleep(): -> asleep
//   asleep  or about to sleep, or to look               a waker: -> busy; end_sleep(): -> awake
//   busy    its waker changes its cores                 the waker: -> moved, or awake
//   moved   it is kept off a core                       the waker, when it has woken it: -> busy,
//                                                       and gives the core back; or end_sleep(),
//                                                       which does that itself: -> awake
//
// So the sleeper goes on with all its cores. It waits for its waker for one system call at most,
// and not at all if the waker has lost its core between two.
struct sleeper_thread {
  enum : std::uint32_t { awake, asleep, busy, moved };
  // Written by the sleeper and its waker, read by both, as above: publishes the rest.
  atomic<std::uint32_t> state{awake};
  std::uint32_t thread = 0;  // the system's number of it
  std::uint32_t core = 0;    // on which it ran; moved: which it is kept off
  cpu_set_t cores{};         // moved: on which it ran before
};

class machine {
 public:
  using worker_entry = void (*)(void* context, std::uint32_t worker);

  virtual ~machine() = default;
  virtual capability capabilities() const noexcept = 0;

  // start() runs entry(context, i) for each worker i on an actor of its own; false when one cannot
  // be made (then none runs). A machine with remote workers runs one actor, the service, with i =
  // workers.
  virtual bool start(std::uint32_t workers, worker_entry entry, void* context) noexcept = 0;
  // why_not() is a sentence about a start() that failed; may be empty, and then errno says more.
  virtual const char* why_not() const noexcept { return ""; }
  // why_status() is the code of that error.
  virtual status why_status() const noexcept { return status::out_of_memory; }
  // join() returns when every entry has returned.
  virtual void join() noexcept = 0;
  // abandon() is called in a process that was forked from the one that opened the machine, in place
  // of join() and destruction: it must not touch anything that the two share.
  virtual void abandon() noexcept {}

  // Time since the machine was made.
  virtual std::uint64_t now_ns() noexcept = 0;
  // relax() is one turn of a loop that polls; yield_core() is one that first offers the core to
  // other threads. core_switches() counts how often another thread has had the caller's core, where
  // waits linger (sync/linger.hpp). core_number() is the core on which the caller runs, or ran
  // until now.
  virtual void relax() noexcept = 0;
  virtual void yield_core() noexcept = 0;
  virtual std::uint64_t core_switches() noexcept { return 0; }
  virtual std::uint32_t core_number() noexcept { return 0; }
  // wait_word() returns when `word` is no longer `expected`, at the deadline, or for no reason;
  // wake_word() ends waits.
  virtual void wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                         std::uint64_t deadline_ns) noexcept = 0;
  virtual void wake_word(atomic<std::uint32_t>& word) noexcept = 0;
  // begin_wake() and end_wake() surround the wake of a thread by one that goes on working. If a
  // thread last ran on its waker's core, the system often puts it there again while another core is
  // idle. Then one of the two waits for milliseconds. The sleeper calls begin_sleep() and
  // end_sleep().
  virtual void begin_sleep(sleeper_thread&) noexcept {}
  virtual void end_sleep(sleeper_thread&) noexcept {}
  virtual void begin_wake(sleeper_thread&) noexcept {}
  virtual void end_wake(sleeper_thread&) noexcept {}

  // is_stuck() tells that every actor sleeps and nothing can wake one: a wait without a deadline
  // should give up. Only a machine that runs all actors itself can know.
  virtual bool is_stuck() noexcept { return false; }

  // is_in_worker() tells that the caller's turn belongs to a worker, on a machine that runs all
  // actors itself.
  virtual bool is_in_worker() const noexcept { return false; }

  // The workers in other processes; null where workers are actors of this one.
  virtual remote_workers* remote() noexcept { return nullptr; }

  // A local store for one participant; null when memory is short.
  virtual void* open_store(std::size_t bytes) noexcept = 0;
  virtual void close_store(void* store, std::size_t bytes) noexcept = 0;
  // Memory for one task that finds no room in its store, with the same alignment; null when memory
  // is short. `bytes` is a multiple of that alignment.
  virtual void* open_spill(std::size_t bytes) noexcept {
    return std::aligned_alloc(arena::alignment, bytes);
  }
  virtual void close_spill(void* spill) noexcept { std::free(spill); }

  // The copy engine. get() packs the rows of `remote` into `local`; put() is the way back. A
  // transfer is over when wait_tag() of its tag returned; tags are small numbers chosen by the
  // caller, one set per actor. Where get() and put() have copied everything, there is no wait.
  virtual void get(std::uint32_t tag, void* local, const argument& remote) noexcept = 0;
  virtual void put(std::uint32_t tag, const void* local, const argument& remote) noexcept = 0;
  virtual void wait_tag(std::uint32_t) noexcept {}
  virtual bool is_tag_done(std::uint32_t) noexcept { return true; }  // wait_tag() would not wait

  // On machines with virtual time: cost() passes the time a procedure takes, pay_switch() that of a
  // switch between contexts of a worker; schedule_hash() is over all turns so far: actor and time.
  virtual void cost(std::uint64_t) noexcept {}
  virtual void pay_switch() noexcept {}
  virtual std::uint64_t schedule_hash() const noexcept { return 0; }
};

// copy_rows() moves the rows of `remote` to (to_local) or from packed memory: the data part of any
// copy engine.
void copy_rows(void* local, const argument& remote, bool to_local) noexcept;

// machine_kind: how a machine is found and made.
struct machine_kind {
  const char* name;
  const char* (*unavailable)() noexcept;  // null when it works here, else why not and what to do
  // Null when memory is short; throws lev::error. `settled` is what settle() has returned.
  machine* (*make)(const config& c, const void* settled);
  bool is_remote = false;  // the host's cores run no tasks
  // The machine's own changes to a configuration, and checks of its own part of it, before the rest
  // is checked; throws lev::error. What it has read for that, for make(): a pipe cannot be read
  // twice. Null: there is none of this.
  std::shared_ptr<const void> (*settle)(config& c) = nullptr;
};

// The machines of this library, in the order they are listed; null at the end.
const machine_kind* machine_kind_at(unsigned index) noexcept;
const machine_kind* find_machine_kind(const char* name) noexcept;

constexpr std::uint32_t workers_max = 1024;  // of one runtime

}  // namespace lev
