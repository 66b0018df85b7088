// A program as plain data: what the generator makes, the interpreter runs, the shrinker takes apart
// and the printer writes as C++.
//
// A program is blocks of steps. Block hosts[0] runs on the thread that opens the runtime, the other
// hosts on threads that it starts; a task's body is a block, and so are a callback, what a spawned
// thread does, and what one index of a loop does. A task is submitted by one step, and what was
// submitted belongs to the block with that step until it is handed on: tickets need no other name
// than their task's number.
#pragma once

#include <leveret/leveret.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace lev::exercise {

constexpr std::uint32_t nobody = ~std::uint32_t{0};
constexpr unsigned mutexes_max = 4;
constexpr unsigned flags_max = 16;
constexpr unsigned shared_max = 4;  // tickets that one host thread shows to others
constexpr unsigned tasks_max = 64;
constexpr unsigned pieces_max = 32;
constexpr unsigned scopes_max = 4;  // of ordered tasks
constexpr unsigned field_rows = 8;
constexpr unsigned field_row_bytes = 8;

enum class place : std::uint8_t { threads, sim, processes, pool };
constexpr unsigned place_count = 4;
const char* place_name(place p) noexcept;

constexpr bool is_local(place p) noexcept {
  return p == place::threads || p == place::sim;
}

struct settings {
  place machine = place::threads;
  int workers = 1;
  std::uint32_t tickets = 64;
  std::uint32_t nest_max = 256;
  std::uint32_t contexts = 0;
  std::uint32_t depth = 0;
  std::uint32_t dice_threshold = 16;
  std::uint32_t spin_ns = 50'000;
  std::uint32_t local_store_kib = 256;
  std::uint32_t max_attempts = 3;
  lev::staging staging = lev::staging::automatic;
  lev::wait_policy wait = lev::wait_policy::help;
  lev::when_full full = lev::when_full::help;
  std::uint64_t seed = 1;
  std::uint32_t trace_events = 0;
  std::uint32_t chaos = 0;
  const char* sim_machine = nullptr;  // a name of the library's own
  bool is_pinned = false;
  bool is_confined = false;
  bool operator==(const settings&) const = default;
};

enum class shape : std::uint8_t { plain, bulk, sliced };

// How a body ends; of a sliced task, that of the piece with its bad element.
enum class ending : std::uint8_t {
  ok,
  throws,   // a std::runtime_error that names the task
  code,     // another value than 0
  crash,    // `processes`: kills its process, on each of its first `attempts` attempts
  scribble  // `processes`: spoils what it can of its lane, and kills its process
};

// The memory that a task writes: rows of 8-byte words, with words between them that nobody may
// touch. Of a bulk each piece has a row of its own.
struct memory_spec {
  lev::kind what = lev::kind::value;  // out or inout; value: the task writes no memory
  std::uint32_t rows = 1;
  std::uint32_t words = 4;  // of a row
  std::uint32_t gap = 0;    // words between rows
  bool is_shared = false;   // lies in shared memory
  bool is_far = false;      // inout only
  bool is_left = false;     // out only: the body does not write it
  bool operator==(const memory_spec&) const = default;
};

// A block of the memory that the tasks of a scope share, its field: bytes of some of its rows.
struct field_block {
  std::uint8_t row = 0;
  std::uint8_t rows = 1;
  std::uint8_t byte = 0;
  std::uint8_t bytes = 1;  // of a row
  bool operator==(const field_block&) const = default;
};

struct task_spec {
  shape what = shape::plain;
  // of a bulk: tasks; sliced: indices, and elements or rows of its memory
  std::uint32_t pieces = 1;
  std::uint32_t body = nobody;
  ending end = ending::ok;
  std::uint32_t attempts = 0;     // crash: how many of its processes it kills
  std::uint32_t bad_pieces = 0;   // of a bulk, as bits: which do what `end` says
  std::uint32_t bad_element = 0;  // of a sliced task: the one that does
  bool by_columns = false;        // a bulk whose pieces are told by columns
  bool is_backward = false;       // a bulk whose rows are its pieces' from the last to the first
  bool shares_input = false;      // a bulk whose pieces read all rows of the input
  bool has_hooks = false;         // sliced: cut by a function of its own, which may decline
  bool made_anywhere = false;     // a bulk whose tasks are made where they run
  std::uint32_t turns = 0;        // what the body computes
  memory_spec own;
  bool has_input = false;
  std::uint32_t reads = nobody;  // whose memory is the input; nobody: one that is never written
  bool has_result = false;
  bool leaves_result = false;  // does not assign it
  bool may_rerun = true;
  // Of an ordered task whose arguments lie in the field of its scope: its number, and where. `own`
  // says only what kind it is, and has_input and has_result whether there are any.
  std::uint32_t field = nobody;
  field_block field_input;
  field_block field_own;
  std::uint8_t field_result_row = 0;
  // For bodies that are no blocks, as on worker processes:
  std::uint32_t sets_flag = nobody;
  std::uint32_t spins_on = nobody;
  bool operator==(const task_spec&) const = default;
  // Of a bulk: each of its tasks is made where it runs, is not plain, and takes a ticket there.
  bool takes_more() const noexcept { return made_anywhere && has_input && shares_input; }
};

// How a task is handed in: by submit() or post(), or by what else there is for one without options;
// `within` waits no longer for a ticket than the step says.
enum class entrance : std::uint8_t { submit, try_submit, at_once, within };

enum class verb : std::uint8_t {
  submit,          // a: task; list: after; locks, priority, key, grain; handed
  wait,            // a: task
  wait_any,        // list: tasks
  wait_all,        // list: tasks
  poll,            // a: task
  cancel,          // a: task
  end,             // a: task; also one that runs, in a worker process
  release,         // a: task
  keep,            // a: task; its ticket is released when the thread ends
  await_done,      // a: task; looks at its ticket until it is done, in a task or on a host
  then,            // a: task, b: block; handed
  await,           // list: tasks that a coroutine submits and awaits, one after the other
  loop,            // parallel_for: list: the blocks of its indices, or nobody
  ordered,         // a: task, b: scope; submitted in its order, with list and options as of submit
  wait_ordered,    // b: scope; it ends with the block that submits in it
  cancel_ordered,  // a: task
  share,           // a: task, b: place; its ticket's number is shown to other threads
  cancel_shown,    // b: place
  end_shown,       // b: place
  poll_shown,      // b: place
  set_flag,        // a: flag
  await_flag,      // a: flag; yields, in a task only
  spin_flag,       // a: flag; looks without giving way, on a worker only
  filters,         // a: which, as bits
  begin_phase,
  end_phase,
  complete,  // wait_for_completion
  start,     // a: host
  join,      // a: host
  yield,
  nap,      // a: microseconds
  spawn,    // list: blocks that run on contexts of their own, then are joined
  visit,    // a: tasks that another runtime (b is 0), or the same from a new thread each, runs
  cross,    // a task of another runtime waits for one of this, a deep
  strands,  // interleave: list: the blocks of its items, or nobody; a: how many are in flight
  toss,     // throws, in a callback, a piece of a loop, or a spawned thread: it ends there
  look,     // reads all that tells of the runtime
  misuse,   // a: which call that must be refused
  shut,     // close(), with a time limit or without, while others go on; a: 1: cancels
  split,  // forks, also in a body or a callback; the child does what it may, a: opens a runtime of
          // its own, and ends
  aside,  // a host calls in no more until all others have ended, keep aside, too, or join
  verb_count
};
// Those from there on have a place of their own in a program, and are not drawn.
constexpr unsigned drawn_verbs = static_cast<unsigned>(verb::aside);
const char* verb_name(verb v) noexcept;

struct step {
  verb what = verb::yield;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::vector<std::uint32_t> list = {};
  std::vector<std::uint32_t> handed = {};  // tasks whose tickets the new task, or callback, gets
  std::uint32_t locks = 0;                 // as bits
  std::uint32_t grain = 0;
  std::int32_t priority = 0;
  std::uint32_t key = 0;
  std::uint32_t repeat = 1;            // submit: how often each of `list` is named
  std::uint32_t attempts = 0;          // submit: in place of the runtime's max_attempts
  std::uint32_t after_shown = nobody;  // submit: the place of a ticket of another thread
  std::int64_t timeout_ns = lev::no_timeout;
  lev::wait_policy policy = lev::wait_policy::of_runtime;
  entrance by = entrance::submit;
  bool is_post = false;
  bool is_typed = false;
  bool in_c = false;  // through the C API
  bool operator==(const step&) const = default;
};

// Whether a submit says more than what its task is.
inline bool has_options(const step& s) noexcept {
  return !s.list.empty() || s.after_shown != nobody || s.locks != 0 || s.priority != 0 ||
         s.key != 0 || s.grain != 0 || s.attempts != 0;
}
// One that says no more takes another way through the runtime where it names no options at all, as
// most do here.
inline bool is_bare(const step& s) noexcept {
  return !has_options(s) && s.a % 4 != 0;
}

using block = std::vector<step>;

struct program {
  std::uint64_t seed = 0;
  settings config;
  std::vector<task_spec> tasks;
  std::vector<block> blocks;
  std::vector<std::uint32_t> hosts;  // blocks; the first is the main thread's
  bool close_cancels = false;
  bool close_ends = false;     // with close_cancels, on worker processes: what runs, too, at once
  bool drops_runtime = false;  // the destructor in place of close()
  bool is_opened_in_c = false;
  bool operator==(const program&) const = default;
};

// Elements of a sliced task that kill, do so each time.
constexpr std::uint32_t every_attempt = ~std::uint32_t{0};

// How large the memory of an argument is, gaps included.
constexpr std::uint32_t words_of(const memory_spec& m) noexcept {
  return m.rows * (m.words + m.gap);
}

}  // namespace lev::exercise
