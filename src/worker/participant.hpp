// participant: a worker, or a host thread while it calls in: everything it owns. Only participants
// run tasks, so a host that helps while it waits runs the same pipeline as a worker.
// Its inbox is the owner's, but for thieves at the other end, and its mailbox that of submitters
// with a lease. An atomic field says who writes and reads it; the rest is the owner's.
#pragma once

#include <leveret/counters.hpp>
#include <leveret/procedure.hpp>
#include <leveret/task.hpp>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "flow/ready_queue.hpp"
#include "flow/slot_pool.hpp"
#include "machine/machine.hpp"
#include "queue/inbox.hpp"
#include "queue/mailbox.hpp"
#include "store/arena.hpp"
#include "sync/doorbell.hpp"
#include "sync/parker.hpp"
#include "sync/spin_lock.hpp"
#include "task/arguments.hpp"
#include "trace/events.hpp"
#include "worker/asides.hpp"

#include <cstddef>
#include <cstring>

namespace lev {

namespace detail {
class batch;
}

struct engine;
struct contexts;
struct participant;
struct transfer_set;

// The content of a mailbox: a task's fixed part and its first arguments, so that a small task needs
// only the mailbox's line. Copying copies only the arguments that exist.
struct letter {
  static constexpr unsigned arguments_max = 3;

  letter() noexcept {}
  letter(const letter& other) noexcept { *this = other; }
  letter& operator=(const letter& other) noexcept {
    task = other.task;
    generation = other.generation;
    procedure = other.procedure;
    argument_count = other.argument_count;
    flags = other.flags;
    for (unsigned i = 0; i < carried(); ++i) arguments[i] = other.arguments[i];
    return *this;
  }
  unsigned carried() const noexcept {
    return argument_count < arguments_max ? argument_count : arguments_max;
  }

  std::uint32_t task = no_slot;
  std::uint32_t generation = 0;
  procedure_id procedure = 0;
  std::uint8_t argument_count = 0;
  std::uint8_t flags = 0;
  union {
    argument arguments[arguments_max];
  };
};
static_assert(sizeof(letter) <= 120);

// The end of a task, which complete() tells all others.
struct ending {
  std::uint64_t seen;  // its state word, or what it is believed to be
  std::uint32_t task;
  // In the slot's order: the three are read as one word.
  procedure_id procedure;
  std::uint8_t argument_count;
  std::uint8_t flags;
  // For most tasks the rest is 0, written as one word.
  status result;
  bool is_direct;      // in hand: it came as a letter
  bool has_transfers;  // in hand: gets and puts of its own
  std::uint8_t spare;  // always 0
  int task_code;
};
static_assert(sizeof(ending) == 24);

inline ending ending_of(const slot& s, std::uint32_t task, status result) noexcept {
  return {s.state.word(), task, s.procedure, s.argument_count, s.flags, result, false, false, 0, 0};
}

constexpr ending no_ending{0, no_slot, 0, 0, 0, status::ok, false, false, 0, 0};

// One task in hand, from take to complete.
struct job : ending {
  job() noexcept
      : ending(no_ending),
        parent(no_slot),
        transfers(nullptr),
        body{nullptr, 0, nullptr},
        tag(0),
        store_offset(arena::none),
        spill(nullptr),
        below(nullptr),
        is_shown(false),
        posted_ns(0) {}
  // For a job that is run at once: load_job() or take_letter(), and execute(), set its fields.
  struct to_be_taken {};
  explicit job(to_be_taken) noexcept {}

  std::uint32_t parent;
  transfer_set* transfers;  // if it has_transfers
  // What its body is called with. The local views lie in the slot or the letter, or in `arguments`,
  // as long as the task is in hand; the rest is set when it is called.
  call body;
  std::uint32_t tag;  // of its transfers
  // These two are only for tasks whose memory is copied.
  std::size_t store_offset;
  void* spill;              // local store of a nested task that found the arena full
  job* below;               // the task that waits for this one, on the same participant
  bool is_shown;            // staged ahead, where a thief may take it
  std::uint64_t posted_ns;  // to a worker that runs it elsewhere; for the trace
  union {                   // not cleared first: most tasks use little of it
    argument arguments[argument_count_max];
  };
};

// Whether its body has left more to do than to tell of a success, by its job's last word.
inline bool has_more_to_end(const ending& how) noexcept {
  constexpr std::size_t begin = offsetof(ending, result);
  static_assert(begin % sizeof(std::uint64_t) == 0 && begin + sizeof(std::uint64_t) == sizeof how);
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&how) + begin, sizeof word);
  return word != 0;
}

// Null until its first get or put.
inline transfer_set* transfers_of(const job& j) noexcept {
  return j.has_transfers ? j.transfers : nullptr;
}

// Half of the generation of a task in hand, as its children note it.
inline std::uint16_t generation_of(const job& j) noexcept {
  return static_cast<std::uint16_t>(state_bits::generation(j.seen));
}

// The task to which a piece belongs; for other tasks, the task itself.
inline std::uint32_t whole_of(const job& j) noexcept {
  return (j.flags & task_is_piece) != 0 ? j.parent : j.task;
}

// Whether `child`, which is no piece, was submitted by the task `of`.
inline bool is_child(const job& of, const slot& child) noexcept {
  return child.parent == of.task && of.task != no_slot &&
         child.parent_generation == generation_of(of);
}

// A core asks for 8 to 10 lines at once; more stall on its fill buffers.
constexpr std::uint32_t burst_lines_max = 8;

// Memory to be prefetched.
struct row_place {
  std::uint64_t address;
  std::uint64_t bytes;
};
inline row_place row_to_fetch(const argument& a) noexcept {
  constexpr std::uint64_t bytes_max = burst_lines_max * line_bytes;
  return {a.address, is_far(a) || a.rows == 0 ? 0 : smaller(a.row_bytes, bytes_max)};
}

// Where the data of a task in a queue is, as far as its slot tells, noted while the task was this
// worker's alone: with a bit for each argument that is to be prefetched. A line long, so that it is
// found by a shift.
struct alignas(line_bytes) task_hint {
  row_place places[near_arguments];
  std::uint32_t which = 0;
};

constexpr std::uint32_t frames_max = 33;  // ahead_max, one that drains, and one for each context

struct own_counters {
  owned_counter submitted, completed, failed, direct, stolen, diced, passes, parks, staged_bytes,
      bad_filters, busy_ns;
  // Of a worker in another process: tasks it ran, its deaths, and the tasks that were run again
  // after those.
  owned_counter executed, deaths, reruns;
  // Submits that were refused when they were counted as submitted: count_out().
  owned_counter refused;
  // By chaos_step.
  owned_counter chaos[static_cast<std::size_t>(chaos_step::count)];
};

// Room for the tasks that a recursion leaves waiting: config::nest_max tasks on top of each other
// with seven children to come. A task that finds no room queues behind all others, and its parent
// waits that long: an unbalanced tree took 40 times as long with 256 (bench irregular).
constexpr std::uint32_t inbox_capacity = 2048;
// By place in the inbox. Older ones are written over: only the next few tasks are looked ahead to.
constexpr std::uint32_t hint_count = 256;
static_assert((hint_count & (hint_count - 1)) == 0);  // found by a mask
constexpr std::uint32_t ahead_max = 16;               // Jack Rabbit section 4.5: up to 16 buffers

// The state of a participant, as others see it: whether waiting for it may help.
struct activity {
  enum : std::uint32_t {
    elsewhere,    // a host in its own program
    serves,       // it runs tasks, or is about to
    waits_until,  // nothing to do, up to a deadline
    waits,        // nothing to do
  };
};

// Where a host thread sleeps while it waits in a task of another runtime; see guest.hpp.
struct guest_place {
  spin_lock<> lock;
  participant* outer = nullptr;  // runs that task; under the lock
  // Written by the owner, read by its wakers: how many contexts of `outer` wait. Publishes nothing:
  // a waker has read the word that the wait armed after this.
  atomic<std::uint32_t> waits{0};
};

// In the middle of what calls a participant is.
struct calls_below {
  // Its thread is below in a call of this runtime, as another participant, perhaps on a stack that
  // it has left.
  bool comes_back = false;
  // It tends lines of workers in other processes: what its completions make ready is posted
  // afterwards.
  bool is_tending = false;

  // By one comparison.
  bool is_any() const noexcept {
    std::uint16_t both = 0;
    static_assert(sizeof(calls_below) == sizeof both);
    std::memcpy(&both, this, sizeof both);
    return both != 0;
  }
};

struct alignas(line_pair_bytes) participant {
  lev::engine* engine = nullptr;
  std::uint32_t index = 0;
  bool is_worker = false;

  parker<> park;
  // Written by the owner and by its waker (doorbell), read by submitters.
  alignas(line_pair_bytes) doorbell<>::flag asleep{0};
  // Written by the owner, read by submitters: it polls its mailbox, and may be sent a letter.
  // Publishes nothing.
  alignas(line_pair_bytes) atomic<std::uint32_t> is_mailbox_open{0};
  // Written by the owner, read by completers and by those that free slots: what it sleeps for
  // (want_*). Publishes nothing.
  atomic<std::uint32_t> wants{0};
  // Written by the owner, read by completers of its tasks: its core and 1 while it waits by
  // wait_policy::directed, else 0. Publishes nothing; the word that it arms afterwards publishes
  // it.
  atomic<std::uint32_t> directed_core{0};
  sleeper_thread sleeper;  // a worker that sleeps for want of work
  // Written by the owner, read by others that ask whether any participant still works. Publishes
  // nothing.
  atomic<std::uint32_t> doing{activity::elsewhere};
  // Written by the host thread that binds or leaves it, read by other threads: 1 while a thread is
  // bound to this participant.
  atomic<std::uint32_t> is_bound{0};

  guest_place guest;

  lev::mailbox<letter> mailbox;
  lev::inbox<real_env, inbox_capacity> inbox;
  own_counters counters;

  alignas(line_pair_bytes) index_cache free_slots;
  ready_queue<>::place ready;  // its place at the ready queue
  index_cache free_edges;
  std::uint32_t letters_seen = 0;
  // Of a host: tasks that may still go to workers which poll, before it waits again (note_wait()).
  std::uint32_t letters_left = 0;
  // Posts that it still runs at once before it looks for a free slot again (run_at_once()).
  std::uint32_t posts_at_once = 0;
  std::uint32_t turns_of_others = 0;   // looks elsewhere after pieces in a row: take_other()
  std::uint64_t backlog_most = 0;      // above it, a post waits: is_backlog_short()
  std::uint32_t turns_of_piles = 0;    // of the backlog: which one is first
  std::uint32_t turns_of_backlog = 0;  // looks at the ready queue while there is one
  std::int32_t small_catches = 0;      // few tasks were ready, that often in a row: count_ready()
  std::uint32_t staying = 0;           // tasks on the current stack that stay_on_stack()
  random_source random;
  asides aside;
  std::uint32_t ended_pieces_join = no_slot;
  std::uint32_t open_joins = 0;      // of bulks that it is submitting, and in none of its tasks
  detail::batch* batches = nullptr;  // theirs, not queued yet
  std::uint32_t failing = no_slot;   // tasks to be failed without running, see fail_unrun()
  // How many ends it had counted when it last told the barrier in this wait; untold: it has not.
  std::uint64_t told = untold;
  static constexpr std::uint64_t untold = ~std::uint64_t{0};
  bool is_telling = false;   // an end: its consequences wait until it is told
  bool queues_late = false;  // the crew must then be told of tasks queued meanwhile
  std::uint32_t nest = 0;
  // every task starts with the mode of its server, see serve_until()
  std::uint64_t float_mode = 0;
  job* running = nullptr;
  lev::contexts* contexts = nullptr;  // once a task asked for one
  // The participant of another runtime in whose task or callback this one's thread serves.
  participant* serves_in = nullptr;
  bool calls_others = false;  // a task of its has called into another runtime
  calls_below calls;
  job* ahead[ahead_max];  // staged, oldest first
  std::uint32_t ahead_count = 0;
  job* draining = nullptr;  // executed; its outputs are in flight
  job* frames = nullptr;    // for the two lines above, and one for each context; null when copies
                            // are not asynchronous
  std::uint64_t frames_used = 0;  // one bit a frame; a frame's number is its tag
  // By frame: the task that is staged there and not begun, or no_slot. Written by the owner, and by
  // the thread that takes the task; read by both and by those that look for work. Publishes the
  // slot.
  atomic<std::uint32_t> staged[frames_max];
  arena store_map;
  char* store = nullptr;
  event_ring events;
  std::uint32_t executing = 0;  // of its contexts, while it is traced
  std::uint64_t busy_since_ns = 0;
  task_hint* hints = nullptr;     // hint_count of them
  std::uint32_t hints_below = 0;  // the places in the inbox from here on have none
};

// runs_here() is for assertions: the caller is the owner of the participant. For a host that does
// not serve it cannot tell, and says true.
inline bool runs_here(const participant& self) noexcept {
#ifdef LEVERET_MODEL_CHECKER
  return self.engine != nullptr;  // its threads are one thread
#else
  const auto* actor = static_cast<const participant*>(current_actor());
  return actor == nullptr || actor == &self || actor->engine != self.engine;
#endif
}

// is_at_work() tells whether a participant runs something, or is about to because a token wakes it.
// The token of a host in its own program, or of one whose thread has ended, is left over from an
// earlier sleep and does not count.
inline bool is_at_work(const participant& p) noexcept {
  const std::uint32_t now = p.doing.load(memory_order_relaxed);
  return now == activity::serves || (now != activity::elsewhere && p.park.has_token());
}

// is_at_rest() is for assertions: a participant has nothing left that it took or owes.
inline bool is_at_rest(const participant& p) noexcept {
  return p.running == nullptr && p.nest == 0 && p.aside.ended_pieces == 0 &&
         p.draining == nullptr && p.ahead_count == 0 && !p.is_telling && !p.queues_late;
}

// want_slot: one slot, for a submit of a host (wake_for_slot()).
enum : std::uint32_t { want_space = 1, want_barrier = 2, want_slot = 4 };

}  // namespace lev
