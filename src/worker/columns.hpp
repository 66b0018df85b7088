// columns: a bulk of one procedure whose arguments are columns. It is one task over a range of
// indices, sliced like any: its body calls the procedure for each index of its piece, in whatever
// thread or process it runs.
//
//   the bulk's procedure     takes the arguments of the procedure, each a column (rows of memory,
//                            one a task) or the same for all; then each_task; then the range
//   run_columns              its body: steps through the columns and calls the procedure
//   stopped_range            what the body throws at a task that fails: the task's index
//   go_on_behind             the tasks behind it go on as a task of their own, in the same slot;
//                            those before it have been written back
//
// So a task that fails costs one more turn, keeps no other from running, and its outputs are not
// written back. A worker process tells which index it begins: after its death the same is done.
#pragma once

#include "base/text.hpp"
#include "task/slice.hpp"
#include "worker/engine.hpp"

#include <cstdio>
#include <cstring>

namespace lev {

// The value argument before the range: which procedure, and which of its arguments are values and
// results, whose columns are memory for the bulk.
struct each_task {
  procedure_id procedure = 0;
  std::uint32_t values = 0;   // one bit an argument: a column of values
  std::uint32_t results = 0;  // a column of results
  std::uint32_t none = 0;
};
constexpr unsigned column_arguments_max = 16;
static_assert(column_arguments_max + 2 == argument_count_max);  // each_task and the range

int run_columns(const call& c);

inline bool is_of_columns(procedure_id id) noexcept {
  return procedure_at(id).info.run == &run_columns;
}
template <class Piece>
each_task each_task_of(const Piece& piece) noexcept {
  const std::span<const argument> all = arguments_of(piece);
  LEV_DCHECK(all.size() >= 2 && all.back().what == kind::range);
  return detail::parameter<each_task>::unpack(all[all.size() - 2]);
}
// The user's procedure: that of the task, or the one that it calls for each index.
procedure_id own_procedure(engine& e, std::uint32_t task) noexcept;

// load_value() makes the bytes at `place` a value argument's, which is 0 before.
inline void load_value(argument& a, std::uint64_t place, std::uint16_t bytes) noexcept {
  const auto* from = reinterpret_cast<const void*>(place);
  switch (bytes) {
    case 4: {
      std::uint32_t word;
      std::memcpy(&word, from, 4);
      a.address = word;
      return;
    }
    case 8:
      std::memcpy(&a.address, from, 8);
      return;
    default: {
      std::uint64_t both[2] = {0, 0};
      std::memcpy(both, from, bytes);
      a.address = both[0];
      a.row_bytes = both[1];
    }
  }
}

// What a bulk says of a task that it has refused, or that has failed.
struct text_of_bulk {
  text_of_bulk(std::size_t index, const char* why) noexcept {
    const int begin = std::snprintf(text, sizeof text, "task %zu of the bulk: ", index);
    copy_text(text + begin, sizeof text - static_cast<std::size_t>(begin), why);
  }
  char text[256];
};

// The body stops at a task that fails, or must not begin.
class stopped_range : public error {
 public:
  stopped_range(status code, std::uint32_t at, int task_code, const char* text) noexcept
      : error(code, -1, text), at_(at), task_code_(task_code) {}
  std::uint32_t at() const noexcept { return at_; }
  int task_code() const noexcept { return task_code_; }

 private:
  std::uint32_t at_;
  int task_code_;
};

// The worker process of a body, as the body asks it.
class column_watch {
 public:
  struct callee {
    body run = nullptr;
    void* context = nullptr;
  };
  // find() returns null, or why the procedure cannot be found.
  virtual const char* find(procedure_id id, callee* found) = 0;
  // begin() comes before each task; false: the task must not begin.
  virtual bool begin(std::uint32_t index) noexcept = 0;

 protected:
  ~column_watch() = default;
};
// Null in the host.
extern column_watch* worker_columns;

// stop_at() notes where a job that another process has run has stopped. `at` is not trusted: the
// process was given the indices of the job, which may be a part of the task (remote/strip.hpp). In
// a thread of the host execute() does that.
void stop_at(engine& e, const job& j, std::uint32_t at) noexcept;

// How many tasks of a piece with these arguments of the caller's are over when it stops.
inline std::uint64_t items_before(std::uint32_t at, const argument& indices) noexcept {
  return at >= indices.address && at < indices.row_bytes ? at - indices.address : 0;
}

// go_on_at() cuts the piece in the slot to the index at which it has stopped and those behind it,
// go_on_behind() to the latter. False: there are none.
void go_on_at(engine& e, std::uint32_t task) noexcept;
bool go_on_behind(engine& e, std::uint32_t task) noexcept;

}  // namespace lev
