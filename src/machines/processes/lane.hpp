// lane: the memory through which the host and one worker process speak. (Memory that tasks name is
// shared beside it.) README.md beside this file has the protocol and its proof.
//
//   member       written by  read by
//   records      host        worker: tasks posted to it, in a ring
//   ended        worker      host: their ends, each with its status, in a ring
//   details      worker      host: of ends that are no success, how; the times of others
//   arrived      worker      host, before the first task: whether the worker is ready
//   index_begun  worker      host, after the worker's death: how far it is in a bulk's piece
//   claimed      worker      host, after the worker's death or turn: the last task it has begun
//   died_at      worker      host, after a death that a test caused: at which step
//   asleep       both        both: the futex the worker sleeps on
//   rung         both        worker: whether the host has been told of an end since it looked
//   orders       host        worker: wait, work, or stop
//   first        host        worker, at its start: the number of its first task
//
// Tasks on a lane are numbered from 1, without an end: 0 follows 2^32 - 1, and no number means
// "none". The numbers go on when a worker is replaced; all words that are compared with them are
// then set to the number before the new worker's first task, and match no later one. A record or an
// end is there when its own word has its number. That word is the task's state, attempt and owner
// in one, because each attempt has a number of its own and each lane one worker. The worker writes
// only to its own lane, and holds no lock.
#pragma once

#include <leveret/status.hpp>
#include <leveret/task.hpp>

#include "sync/env.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace lev::processes {

constexpr std::uint32_t lane_records = 16;
static_assert((lane_records & (lane_records - 1)) == 0);  // numbers of tasks wrap at 2^32
static_assert(lane_records <= 32);                        // pool::bit_of()
// Words are shared by processes: no lock of one process protects them, and futexes are 32 bits.
static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// How a task that did not succeed, or was timed, has ended, as the worker reports it. Its status is
// in lane::ended.
struct end_details {
  static constexpr std::size_t text_max = 223;
  std::uint16_t text_bytes = 0;
  std::int32_t task_code = 0;
  union {
    std::uint32_t stopped_at = 0;  // of a piece of columns that is not ok
    std::uint32_t spent_ns;        // of a timed task that is
  };
  char text[text_max + 1];  // of an exception; not terminated, `text_bytes` count
};
static_assert(end_details::text_max <= 0xffff && std::is_trivially_copyable_v<end_details>);

template <class Env = real_env>
struct lane {
  using word = typename Env::template atomic<std::uint32_t>;

  struct alignas(line_pair_bytes) record {
    // Written by the host, read by the worker: publishes the record, and the worker's inputs.
    word number{0};
    // Written by the host, read by the worker before it begins: the record's own number if the task
    // was cancelled or taken back for another worker, any other number if not. Publishes nothing.
    word skip{0};
    procedure_id procedure = 0;
    std::uint8_t argument_count = 0;
    bool is_timed = false;
    std::uint16_t attempt = 0;  // from 1; for a looker (look.cpp)
    std::uint16_t unused = 0;
    argument arguments[argument_count_max];

    // has_record() and is_skipped() of a lane.
    bool is_there(std::uint32_t wanted) const noexcept {
      // Pairs with post(). Sequentially consistent: the last look before a sleep comes after
      // fall_asleep(), which an acquire need not do.
      return number.load(memory_order_seq_cst) == wanted;
    }
    bool is_skipped(std::uint32_t own) const noexcept {
      // Pairs with take_back(). Sequentially consistent: it comes after finish() of the task
      // before, and, in a shared pool, after berth::turn().
      return skip.load(memory_order_seq_cst) == own;
    }
  };
  using end_word = typename Env::template atomic<std::uint64_t>;

  // The host's part; one caller at a time.
  //
  // reset() prepares the lane for a new worker, whose first task is number `first`. No other
  // process uses the lane then: everything that the last worker has written is gone, even where it
  // should not have written.
  void reset(std::uint32_t first_number) noexcept;
  record& record_of(std::uint32_t number) noexcept { return records[number % lane_records]; }
  // new_record() is the place for the next task to post.
  record& new_record(std::uint32_t number) noexcept {
    record_of(number).skip.store(number - 1, memory_order_relaxed);
    return record_of(number);
  }
  // describe() copies what stands before the arguments of a call, which is laid out like a record.
  template <class Call>
  static void describe(record& r, const Call& call) noexcept {
    constexpr std::size_t begin = offsetof(record, procedure);
    constexpr std::size_t bytes = offsetof(record, arguments) - begin;
    static_assert(bytes == sizeof(std::uint64_t) && offsetof(Call, arguments) == bytes &&
                  offsetof(Call, procedure) == 0 &&
                  offsetof(Call, argument_count) == offsetof(record, argument_count) - begin &&
                  offsetof(Call, is_timed) == offsetof(record, is_timed) - begin &&
                  offsetof(Call, attempt) == offsetof(record, attempt) - begin);
    std::memcpy(reinterpret_cast<char*>(&r) + begin, &call, bytes);
  }
  // post() publishes `count` records from number `begin` on, the first one last: a worker takes
  // them in order, so it finds none of them or all, and one handshake is enough. Returns whether
  // the worker sleeps and must be woken.
  [[nodiscard]] bool post(std::uint32_t begin, std::uint32_t count) noexcept {
    for (std::uint32_t n = begin + count; --n != begin;) {
      record_of(n).number.store(n, memory_order_relaxed);
    }
    // Pairs with has_record(): publishes all of them. Sequentially consistent: the look at `asleep`
    // comes after it (store-then-load handshake with fall_asleep()).
    record_of(begin).number.store(begin, memory_order_seq_cst);
    return wake();
  }
  // wake() claims the right to wake a sleeping worker: true for one of the threads that try.
  [[nodiscard]] bool wake() noexcept {
    // Pairs with fall_asleep().
    return asleep.load(memory_order_seq_cst) != 0 && asleep.exchange(0, memory_order_seq_cst) != 0;
  }
  bool has_end(std::uint32_t number) const noexcept { return number_of(end_of(number)) == number; }
  // successes() counts those from number `first` on that are there, one behind the other: of `most`
  // tasks.
  std::uint32_t successes(std::uint32_t first_number, std::uint32_t most) const noexcept {
    std::uint64_t success = make_end(first_number, status::ok);
    std::uint32_t n = 0;
    while (n != most && end_of(first_number + n) == success) {
      ++n;
      success += make_end(1, status::ok);
    }
    return n;
  }
  // end_of() reads the word of the task's end; if it has the task's number, code_of() gives the
  // status.
  std::uint64_t end_of(std::uint32_t number) const noexcept {
    // Pairs with finish(). Sequentially consistent: the last look of a host that sleeps or leaves
    // comes after it has left the watch, which an acquire need not do.
    return ended[number % lane_records].load(memory_order_seq_cst);
  }
  static constexpr std::uint64_t make_end(std::uint32_t number, status code) noexcept {
    return std::uint64_t{number} << 32 | static_cast<std::uint8_t>(code);
  }
  static constexpr std::uint32_t number_of(std::uint64_t end) noexcept {
    return static_cast<std::uint32_t>(end >> 32);
  }
  static constexpr std::uint8_t code_of(std::uint64_t end) noexcept {
    return static_cast<std::uint8_t>(end);
  }
  // take_back() asks the worker not to begin a task. True: the worker has not begun it, because it
  // has not published the end of the task before, and it will see the request. False: it may have
  // begun the task, and the end tells.
  [[nodiscard]] bool take_back(std::uint32_t number) noexcept {
    // Pairs with is_skipped(). Sequentially consistent: the look at the end before comes after it
    // (store-then-load handshake with finish() and is_skipped()).
    record_of(number).skip.store(number, memory_order_seq_cst);
    return !has_end(number - 1);
  }
  // was_claimed() tells whether a worker that is in no task now was in this one, or is behind it:
  // the end tells which. Pairs with claim(), through the berth that is looked at before.
  bool was_claimed(std::uint32_t number) const noexcept {
    return claimed.load(memory_order_relaxed) == number;
  }
  // A worker's text may change while it is read: callers copy it once, then check it.
  const end_details& details_of(std::uint32_t number) const noexcept {
    return details[number % lane_records];
  }

  // The worker's part.
  bool has_record(std::uint32_t number) const noexcept {
    return records[number % lane_records].is_there(number);
  }
  void claim(std::uint32_t number) noexcept {
    // The host reads it when the kernel says that the worker is dead: then every store that it made
    // is there. was_claimed() is asked of a live worker, too, by a host that has seen another in
    // the berth: berth::leave() comes after this store and publishes it, because all that change
    // the berth behind it read and write it in one.
    claimed.store(number, memory_order_relaxed);
  }
  void begin_index(std::uint32_t number, std::uint32_t index) noexcept {
    // Pairs with the kernel's word that the worker is dead. A release keeps the outputs of the task
    // before from coming after it.
    index_begun.store(std::uint64_t{number} << 32 | index, memory_order_release);
  }
  // is_skipped() is checked before a task is begun.
  bool is_skipped(std::uint32_t number) const noexcept {
    return records[number % lane_records].is_skipped(number);
  }
  // new_details() is for the details of a task that does not succeed, or is timed.
  end_details& new_details(std::uint32_t number) noexcept { return details[number % lane_records]; }
  void finish(std::uint32_t number, status code = status::ok) noexcept {
    // Pairs with end_of(): publishes its details and the outputs. Sequentially consistent: the look
    // at the watchers comes after it (store-then-load handshake with unwatch() and want_ends()).
    ended[number % lane_records].store(make_end(number, code), memory_order_seq_cst);
  }
  // fall_asleep() announces the sleep; the caller must look for a record and for orders once more,
  // and then wait while `asleep` is 1.
  void fall_asleep() noexcept {
    // Pairs with post() and wake(). Sequentially consistent: the last look comes after it.
    asleep.store(1, memory_order_seq_cst);
  }
  void wake_up() noexcept { asleep.store(0, memory_order_relaxed); }

  enum : std::uint32_t { order_wait = 0, order_work = 1, order_stop = 2 };

  // Written by the host, read by the worker: comes with a wake(). The order to work publishes what
  // was taken back before.
  alignas(line_pair_bytes) word orders{order_wait};
  // Written by reset(), before the worker starts: the number of its first task.
  std::uint32_t first = 1;
  // Written by the worker, read by the host: 1 when it is ready for its first task. Publishes
  // nothing: comes with a ring of the bell.
  alignas(line_pair_bytes) word arrived{0};
  // Written by the worker, read by the host after its death, or after its turn (was_claimed()): the
  // last task it has begun; at first, the number before its first one. Publishes nothing.
  alignas(line_pair_bytes) word claimed{0};
  // Written by the worker, read by the host after its death: the number of the piece of columns it
  // is in, above, and the index that it begins, below. Publishes that the ones before are over.
  typename Env::template atomic<std::uint64_t> index_begun{0};
  // Written by the worker before config.processes.chaos kills it, read by the host after that: at
  // which step.
  word died_at{0};
  // Written by the worker (1) and by its waker (0), read by both.
  alignas(line_pair_bytes) word asleep{0};
  // Written by the worker (1: rang) and by the service when it has been woken, before it looks at
  // the ends (0); read by both.
  alignas(line_pair_bytes) word rung{0};
  record records[lane_records];
  // Written by the worker, read by the host: a task's number above, its status below. Publishes the
  // details, and the task's outputs. All are on one pair of lines: a tender that takes the ends of
  // many successful tasks waits for it once, and a worker that no tender polls keeps it.
  alignas(line_pair_bytes) end_word ended[lane_records];
  end_details details[lane_records];
};

// Words of the host, of the worker and of both are on lines of their own, and a record's arguments
// are whole.
static_assert(alignof(lane<>) == line_pair_bytes && sizeof(lane<>) % line_pair_bytes == 0);
static_assert(sizeof(lane<>::record) % line_pair_bytes == 0 &&
              sizeof(lane<>::ended) == line_pair_bytes);
static_assert(std::is_standard_layout_v<lane<>> && std::is_trivially_copyable_v<argument>);

template <class Env>
void lane<Env>::reset(std::uint32_t first_number) noexcept {
  const std::uint32_t before = first_number - 1;
  orders.store(order_wait, memory_order_relaxed);
  first = first_number;
  for (word* w : {&arrived, &died_at, &asleep, &rung}) w->store(0, memory_order_relaxed);
  claimed.store(before, memory_order_relaxed);
  index_begun.store(std::uint64_t{before} << 32, memory_order_relaxed);
  for (record& r : records) {
    r.number.store(before, memory_order_relaxed);
    r.skip.store(before, memory_order_relaxed);
    r.procedure = 0;
    r.argument_count = 0;
    r.is_timed = false;
    r.attempt = 0;
    for (argument& a : r.arguments) a = argument{};
  }
  for (end_word& e : ended) e.store(make_end(before, status::ok), memory_order_relaxed);
  for (end_details& e : details) {
    e.task_code = 0;
    e.stopped_at = 0;
    e.text_bytes = 0;
    std::memset(e.text, 0, sizeof e.text);
  }
}

// end_watch: one for a runtime, on its board. Written by the host, mapped read-only by its workers.
template <class Env = real_env>
struct end_watch {
  using word = typename Env::template atomic<std::uint32_t>;

  // Host threads that poll the lanes all the time. A worker rings only while there is none. Written
  // by those threads, read by workers. Sequentially consistent on both sides: a host leaves and
  // then looks at the ends once more; a worker writes an end and then looks here.
  alignas(line_pair_bytes) word watchers{0};
  // Not 0: a waiter sleeps until a task is over, or wants to be told of it. Written by the host,
  // read by workers, as `watchers`. On a line of its own: it changes seldom.
  alignas(line_pair_bytes) word ends_wanted{0};
  // Not 0: a waiter sleeps until all tasks are over, or there is room for another. Written by the
  // host, read by workers, as `watchers`.
  word patient{0};
};

}  // namespace lev::processes
