// The world that a program runs in: the memory its tasks work on, and what is written down while it
// runs. All that bodies in worker processes read and write lies in one piece of shared memory.
#pragma once

#include "exercise/program.hpp"

#include <leveret/leveret.h>
#include <leveret/ordered.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lev::exercise {

// A fault that a body can find; the oracle says it in words.
enum class fault : std::uint32_t {
  none,
  ran_twice,
  too_early,      // a task named in after() has not ended with ok
  beside_holder,  // another task has one of its mutexes
  wrong_input,
  wrong_initial,   // inout or result: not what the caller had there
  flag_never_set,  // a task that sets a flag did not run, although a worker could
  wrong_range,
  body_gone,  // a piece of a loop ran when parallel_for() had returned
  left_early  // a body did not run to its end
};
const char* fault_text(fault f) noexcept;

// A task as it was seen. Bodies write it, wherever they run; the oracle reads it at the end.
struct record {
  std::atomic<std::uint32_t> begun{0};   // bodies that began, those of pieces too
  std::atomic<std::uint32_t> ended{0};   // bodies that came to their end
  std::atomic<std::uint32_t> good{0};    // of those, the ones that ended with ok
  std::atomic<std::uint32_t> items{0};   // sliced: indices done
  std::atomic<std::uint32_t> what{0};    // the first fault
  std::atomic<std::uint64_t> detail{0};  // and what it was about
  std::atomic<std::uint8_t> piece_runs[pieces_max]{};
  std::atomic<std::uint8_t> piece_good[pieces_max]{};  // those that ended with ok
  // Written by the submitter, before the task can begin:
  std::uint64_t after = 0;  // tasks it was put behind, as bits
  std::uint32_t locks = 0;
  std::uint64_t* own = nullptr;    // first row
  std::uint64_t* input = nullptr;  // first row
  std::uint64_t* result = nullptr;
  task_spec spec;  // without its vectors: there are none
  memory_spec input_shape;
  std::uint32_t attempts = 0;  // of this task, in place of the runtime's
  bool changes_inputs = false;
};

// In shared memory where there are worker processes.
struct board {
  std::atomic<std::uint32_t> flags[flags_max]{};
  std::atomic<std::uint32_t> holders[mutexes_max]{};
  std::atomic<std::uint32_t> ticks{0};     // tasks of visitors that ran
  std::atomic<std::uint32_t> gives_up{0};  // spinners no longer wait: the program has failed
  std::uint32_t is_remote = 0;
  std::uint32_t is_confined = 0;
  std::int64_t spin_limit_ns = 0;
  struct world* home = nullptr;  // in the host only
  record tasks[tasks_max];
};

// How a task was seen to end, and what became of its submit. Written by the one that has its
// ticket.
struct sighting {
  std::atomic<std::uint64_t> id{0};  // of its ticket, for other threads: written before it is shown
  status refused = status::ok;       // what submit threw
  bool is_submitted = false;
  bool is_posted = false;
  bool is_collected = false;
  bool is_released = false;
  bool may_be_full = false;  // when it was refused
  bool was_closing = false;  // the same
  bool is_child = false;     // a task handed it in, which close() waits for
  std::uint32_t depth = 0;   // of the block that submitted it
  outcome seen;
  std::string text;  // of the exception
  std::atomic<bool> cancel_asked{false};
  std::atomic<bool> end_asked{false};
  std::atomic<std::uint32_t> called_back{0};
  bool wants_call = false;
  bool is_ordered = false;  // its ticket is a scope's
  bool is_settled = false;  // on confined workers: what its bodies did is known, see confined.cpp
};

// A scope of ordered tasks, for the block that opens it; the oracle reads it at the end.
struct scope_state {
  std::unique_ptr<lev::ordered> tasks;
  const block* owner = nullptr;
  std::vector<std::uint32_t> members;  // in the order of their submits
  std::size_t first = 0;               // of those that no wait has told of
  std::uint32_t slots = 0;             // that it may hold
  std::uint8_t* field = nullptr;
};

struct world {
  explicit world(const program& p);
  ~world();
  world(world&&) = delete;

  // The task that is shown at a place, or nobody.
  std::uint32_t shown_at(std::uint32_t place) const noexcept { return shown[place].load() - 1; }
  // Things that pieces and callbacks refer to live as long as the world.
  void keep_alive(std::shared_ptr<void> what);
  // Adds a violation; only the first few are kept.
  void blame(const std::string& text);
  bool is_blamed() const { return is_blamed_.load(); }
  std::string blames();

  // Whether a task may have been ended while it ran, or right after: what its body says of itself
  // is not to be trusted, as nobody may have seen its end.
  bool may_be_ended(std::uint32_t task) const noexcept {
    const bool is_asked = seen[task].end_asked.load() || plan.config.chaos != 0 ||
                          (plan.close_ends && is_cancelling.load());
    return is_asked && shared->is_remote != 0 && seen[task].seen.code != status::ok;
  }
  // Whether the record of a task says what its bodies did.
  bool is_told(std::uint32_t task) const noexcept {
    // Tasks of a bulk that was refused in its middle have run.
    const bool is_out = seen[task].refused != status::ok && plan.tasks[task].what != shape::bulk;
    return !plan.config.is_confined || seen[task].is_settled || is_out;
  }
  // How far a task, or the piece of a bulk that a row belongs to, has come.
  enum class fate { never_began, ended_well, other };
  fate fate_of(std::uint32_t task, std::uint32_t row) const;
  fate fate_of_element(std::uint32_t task, std::uint32_t element) const;
  // Whether a body in a worker process writes where it reads (promises I1): if its worker dies, it
  // is not run again.
  bool changes_inputs(std::uint32_t task) const;
  // The arguments' memory, as it was before and has to be now.
  std::uint64_t first_word(std::uint32_t task, std::uint32_t at) const noexcept;
  void check_memory();

  const program& plan;
  board* shared = nullptr;
  std::unique_ptr<lev::runtime> home;
  std::unique_ptr<lev::runtime> twin;  // another one, where it is visited
  std::atomic<std::uint32_t> ticks_expected{0};
  std::atomic<std::uint32_t> ticks_missing{0};  // of those, the ones that may have been cancelled
  std::uint32_t crossings = 0;                  // tasks of two runtimes that may wait at a time
  mutex_id mutexes[mutexes_max] = {};
  ticket tickets[tasks_max];
  sighting seen[tasks_max];
  scope_state scopes[scopes_max];
  std::atomic<std::uint32_t> shown[shared_max]{};  // a task's number and one; 0: none
  std::atomic<std::uint32_t> live{0};              // slots in use at most, see oracle
  std::atomic<std::uint32_t> live_most{0};
  std::atomic<std::uint32_t> edges_named{0};
  std::atomic<std::uint32_t> coroutines{0};
  bool may_all_wait = false;  // as many tasks may wait as there are contexts, see sound.hpp
  std::atomic<bool> is_closing{false};
  std::atomic<bool> is_cancelling{false};  // and what has not begun is cancelled
  bool is_sliced = false;
  std::uint64_t deaths = 0;            // of worker processes
  const block* owner[tasks_max] = {};  // whose end releases a task's ticket
  std::vector<std::uint32_t> handed[tasks_max];
  std::uint32_t handed_count = 0;  // a task may run on top of the one that its ticket was handed to
  std::atomic<std::uint32_t> at[16]{};  // where each host is, for the watchdog

 private:
  struct cell {
    std::uint64_t* first = nullptr;  // of the guard words before it
    std::uint32_t words = 0;
    bool is_shared = false;
  };
  std::uint64_t* make_cell(std::uint32_t words, bool is_shared);
  void make_memory(std::uint32_t task);
  void make_fields();
  bool is_strided(std::uint32_t task) const;
  bool is_copied(std::uint32_t task) const;
  void check_own(std::uint32_t task);
  void check_result(std::uint32_t task);

  std::vector<cell> cells_;
  std::mutex lock_;
  std::vector<std::string> blames_;
  std::vector<std::shared_ptr<void>> kept_;
  std::atomic<bool> is_blamed_{false};
};

// The C API sees the same runtime: its handle is the runtime itself (src/runtime/c_api.cpp).
inline lev_runtime* in_c(world& w) {
  return reinterpret_cast<lev_runtime*>(w.home.get());
}

// Words of memory arguments say whose they are, so that a word of another task shows.
enum class word_kind : std::uint64_t { before = 1, after = 2, input = 3, guard = 0 };
constexpr std::uint64_t word_mark = 0xe9;
std::uint64_t make_word(word_kind k, std::uint32_t task, std::uint32_t at) noexcept;
// A result's; of a bulk each piece has one.
inline std::uint64_t result_word(word_kind k, std::uint32_t task, std::uint32_t piece) noexcept {
  return make_word(k, task, 0xffff + piece);
}
// The row of a bulk's memory that is a piece's.
inline std::uint32_t row_of_piece(const task_spec& t, std::uint32_t piece) noexcept {
  return t.is_backward ? t.pieces - 1 - piece : piece;
}
// The next value of an inout word; two steps give something else than one.
constexpr std::uint64_t word_step(std::uint64_t word) noexcept {
  return word + 0x0000'0000'1357'9bdf;
}
constexpr bool is_marked(std::uint64_t word) noexcept {
  return word >> 56 == word_mark;
}

}  // namespace lev::exercise
