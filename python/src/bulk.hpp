// Many tasks of one procedure in one call: arrays are cut along their first axis.
#pragma once

#include "pack.hpp"

namespace lev::python {

// How one argument changes from task to task. Set with the GIL, read without it while tasks are
// filled in.
struct column {
  enum class change : std::uint8_t { address, value, listed_value, listed_range };
  unsigned index;  // among the task's arguments
  change how;
  scalar type;                        // value
  const char* data = nullptr;         // value: element of task 0. address: place of task 0
  std::int64_t step_bytes = 0;        // from task to task
  std::vector<std::uint64_t> listed;  // values, or begin and end of ranges
};

class bulk {
 public:
  // From one array, list or constant for each parameter. `count` is None or the number of tasks.
  bulk(const plan& p, nb::tuple values, nb::handle count, session* owner);
  // From a list with a tuple of arguments for each task.
  bulk(const plan& p, nb::list given, nb::handle count, session* owner);

  std::size_t count() const noexcept { return count_; }
  hold* held() const noexcept { return held_.get(); }

  // describe() sets what submit_bulk() takes of a bulk over columns, whose values it copies: they
  // may change when the call is over. False: each task must be filled in. Without the GIL.
  bool describe(descriptor& all) const;

  // fill() sets the i-th task; called without the GIL, in order, always with the same descriptor.
  void fill(std::size_t i, descriptor& task) const noexcept;

 private:
  void start();
  void note_count(nb::handle count);
  void add_columns(nb::tuple values);
  void add_column(unsigned index, const place& where, nb::handle value);
  void add_memory(unsigned index, const place& where, nb::handle value);
  void add_value_array(unsigned index, const place& where, nb::handle value);
  void add_list(unsigned index, const place& where, nb::list given);
  void add_results();
  void agree(Py_ssize_t length, const place& where);

  const plan& plan_;
  hold_guard held_;
  std::size_t count_ = 0;
  bool is_counted_ = false;
  descriptor first_;  // task 0, and what all tasks have in common
  std::vector<column> columns_;
  std::vector<argument> packed_;  // from a list of tasks: their arguments, one after the other
};

}  // namespace lev::python
