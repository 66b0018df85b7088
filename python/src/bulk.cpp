// Bulk packing: look at every parameter once, with the GIL; then fill descriptors from plain
// memory, without it.
//
//   1. add_columns: each array, list or constant becomes either part of the first task or a column
//      that changes.
//   2. agree: all columns must have the same length, the number of tasks.
//   3. fill: task 0 is copied whole; later tasks change only what their columns say.
#include "bulk.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "calls.hpp"

namespace lev::python {

namespace {

// One value, not an array of them: a Python number, a NumPy scalar or an array without axes.
bool is_array(nb::handle value) {
  if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())) return false;
  if (PyObject_CheckBuffer(value.ptr()) == 0)
    return nb::hasattr(value, "__array__") || nb::hasattr(value, "__dlpack__");
  Py_buffer view;
  if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_STRIDES) != 0)
    return drop_error(PyExc_Exception), true;
  const bool has_axes = view.ndim > 0;
  PyBuffer_Release(&view);
  return has_axes;
}

// What a list has now: its items run code of the program's while they are read, an __index__() say,
// and that may change the list.
nb::tuple as_it_is(nb::list list) {
  const nb::object items = nb::steal(PyList_AsTuple(list.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  return nb::borrow<nb::tuple>(items);
}

// Whether two of `count` tasks have a byte in common when each has the argument's rows, `step`
// bytes behind the task before. A row of one and the row of the other that is `rows` further on in
// its task lie a multiple of `step` from rows times stride.
bool do_tasks_overlap(const argument& a, std::uint64_t step, std::uint64_t count) noexcept {
  const std::uint64_t last = step * (count - 1);
  const auto stride = static_cast<std::uint64_t>(a.stride_bytes);
  if (a.row_bytes == 0 || count < 2) return false;
  for (std::uint64_t rows = 0; rows < a.rows; ++rows) {
    const std::uint64_t apart = rows * stride;
    if (apart >= last + a.row_bytes) break;
    const std::uint64_t below = std::max(apart / step * step, step);
    const std::uint64_t above = below + step;
    const std::uint64_t from_below = below > apart ? below - apart : apart - below;
    if (below <= last && from_below < a.row_bytes) return true;
    if (above <= last && above - apart < a.row_bytes) return true;
  }
  return false;
}

}  // namespace

void bulk::note_count(nb::handle count) {
  if (count.is_none()) return;
  using limits = std::numeric_limits<long long>;
  const long long given = integer_in("count", count, limits::min(), limits::max());
  if (given < 0) raise_value_error("count must be 0 or more");
  count_ = static_cast<std::size_t>(given);
  is_counted_ = true;
}

bulk::bulk(const plan& p, nb::tuple values, nb::handle count, session* owner)
    : plan_(p), held_(new hold(owner, p.slots.size())) {
  start();
  note_count(count);
  add_columns(values);
  if (!is_counted_)
    raise_value_error("submit_bulk cannot tell how many tasks: pass count=n, or an array per task");
  if (count_ > 0) check_lengths(p, first_.arguments, true);
  add_results();
}

bulk::bulk(const plan& p, nb::list given, nb::handle count, session* owner)
    : plan_(p), held_(new hold(owner, p.memory_count * given.size())) {
  const nb::tuple tasks = as_it_is(given);
  start();
  note_count(count);
  if (is_counted_ && count_ != tasks.size())
    raise_value_error("count is " + std::to_string(count_) + ", but the list has " +
                      std::to_string(tasks.size()) + " tasks: leave count out");
  count_ = tasks.size();
  held()->make_results(p, count_);
  packed_.resize(count_ * p.slots.size());
  for (std::size_t i = 0; i < count_; ++i) {
    const nb::handle values = tasks[i];
    if (!PyTuple_Check(values.ptr())) raise_value_error("each task must be a tuple of arguments");
    check_argument_count(p, PyTuple_Size(values.ptr()), true);
    pack_task(p, nb::borrow<nb::tuple>(values), held(), i, nullptr,
              packed_.data() + i * p.slots.size());
  }
}

void bulk::start() {
  first_.procedure = plan_.id;
  first_.argument_count = static_cast<std::uint8_t>(plan_.slots.size());
}

void bulk::add_columns(nb::tuple values) {
  check_argument_count(plan_, values.size(), true);
  int next = 0;
  for (unsigned i = 0; i < plan_.slots.size(); ++i) {
    const place where{next, &plan_.slots[i]};
    if (where.declared->what != kind::result) add_column(i, where, values[next++]);
  }
}

void bulk::add_column(unsigned index, const place& where, nb::handle value) {
  argument& a = first_.arguments[index];
  const kind what = where.declared->what;
  if (is_made<whole_array>(value)) {
    if (!is_memory(what))
      refuse_argument(PyExc_TypeError, where, "whole() is for memory; pass the value itself");
    a = pack_memory(where, nb::inst_ptr<whole_array>(value)->array, held());
  } else if (is_memory(what)) {
    add_memory(index, where, value);
  } else if (nb::isinstance<nb::list>(value)) {
    add_list(index, where, nb::borrow<nb::list>(value));
  } else if (what == kind::range) {
    a = pack_range(to_range(value, where));
  } else if (is_array(value)) {
    add_value_array(index, where, value);
  } else {
    a = pack_value(where, value);
  }
}

void bulk::add_memory(unsigned index, const place& where, nb::handle value) {
  if (is_made<sliced_array>(value))
    refuse_argument(PyExc_TypeError, where,
                    "submit_bulk cuts arrays itself; pass the array, or use Runtime.parallel");
  const Py_buffer& view = held()->open(value, where);
  if (view.ndim == 0)
    refuse_argument(
        PyExc_ValueError, where,
        "the array has no axis to cut; give every task all of it with leveret.whole(a)");
  agree(view.shape[0], where);
  const Py_ssize_t step = view.strides[0];
  if (view.shape[0] > 1 && step == 0 && writes_memory(where.declared->what))
    refuse_argument(PyExc_ValueError, where, "the tasks' rows overlap; pass a.copy()");
  if (view.shape[0] == 0) return;
  const extent row = row_extent(whole_extent(view), 0);
  argument& a = first_.arguments[index] = memory_argument(row, false, where);
  const auto distance = static_cast<std::uint64_t>(std::abs(step));
  if (writes_memory(a.what) && do_tasks_overlap(a, distance, count_))
    raise_status(status::overlap,
                 name_of(plan_, index, true) + ": the tasks' output rows overlap; pass a.copy()",
                 where.position);
  if (step % static_cast<Py_ssize_t>(alignment_of(where.declared->type)) != 0)
    a.flags |= argument_packed;
  columns_.push_back({index, column::change::address, where.declared->type, row.data, step, {}});
}

void bulk::add_value_array(unsigned index, const place& where, nb::handle value) {
  const Py_buffer& view = held()->open(value, where);
  if (view.ndim != 1)
    refuse_argument(PyExc_ValueError, where, "values need an array with one axis; use a.ravel()");
  agree(view.shape[0], where);
  argument& a = first_.arguments[index];
  a.unit_bytes = where.declared->type.bytes;
  columns_.push_back({index,
                      column::change::value,
                      where.declared->type,
                      static_cast<const char*>(view.buf),
                      view.strides[0],
                      {}});
}

void bulk::add_list(unsigned index, const place& where, nb::list given) {
  const nb::tuple list = as_it_is(given);
  agree(static_cast<Py_ssize_t>(list.size()), where);
  const bool is_range = where.declared->what == kind::range;
  column c{index,
           is_range ? column::change::listed_range : column::change::listed_value,
           where.declared->type,
           nullptr,
           0,
           {}};
  argument& a = first_.arguments[index];
  if (is_range) a = pack_range({});
  a.unit_bytes = where.declared->type.bytes;
  for (nb::handle item : list) {
    if (is_range) {
      const lev::range r = to_range(item, where);
      c.listed.insert(c.listed.end(), {r.begin, r.end});
    } else {
      c.listed.push_back(to_bits(item, where.declared->type, where));
    }
  }
  columns_.push_back(std::move(c));
}

void bulk::add_results() {
  if (plan_.result_count == 0) return;
  held()->make_results(plan_, count_);
  std::size_t result = 0;
  for (unsigned i = 0; i < plan_.slots.size(); ++i) {
    const slot& s = plan_.slots[i];
    if (s.what != kind::result) continue;
    char* place_of_first = held()->result(result++);
    first_.arguments[i] = pack_result(s, place_of_first);
    columns_.push_back({i, column::change::address, s.type, place_of_first, s.type.bytes, {}});
  }
}

void bulk::agree(Py_ssize_t length, const place& where) {
  if (is_counted_ && static_cast<std::size_t>(length) != count_)
    refuse_argument(PyExc_ValueError, where,
                    "is for " + std::to_string(length) + " tasks, but there are " +
                        std::to_string(count_) +
                        "; give every task all of it with leveret.whole(a)");
  count_ = static_cast<std::size_t>(length);
  is_counted_ = true;
}

namespace {

// Rows that the runtime can cut by itself.
bool is_plain(const column& c, const argument& a) {
  if (c.how == column::change::listed_range) return false;
  return c.how != column::change::address || (a.rows == 1 && c.step_bytes >= 0);
}

std::uint64_t* copy_values(const column& c, std::size_t count, hold* held) {
  std::uint64_t* const words = held->make_words(count);
  if (c.how == column::change::listed_value) {
    std::copy_n(c.listed.data(), count, words);
  } else {
    for (std::size_t i = 0; i < count; ++i)
      words[i] = load_scalar(c.data + static_cast<std::int64_t>(i) * c.step_bytes, c.type);
  }
  return words;
}

}  // namespace

bool bulk::describe(descriptor& all) const {
  if (!packed_.empty()) return false;
  bool is_changed[argument_count_max] = {};
  for (const column& c : columns_) {
    if (!is_plain(c, first_.arguments[c.index])) return false;
    is_changed[c.index] = true;
  }
  for (unsigned i = 0; i < first_.argument_count; ++i) {
    const argument& a = first_.arguments[i];
    const bool is_output = writes_memory(a.what) || a.what == kind::result;
    if (is_output && !is_changed[i] && count_ > 1) return false;
  }
  all = first_;
  for (const column& c : columns_) {
    argument& a = all.arguments[c.index];
    a.flags |= argument_each;
    if (c.how == column::change::address) {
      a.stride_bytes = c.step_bytes;
      continue;
    }
    a.address = reinterpret_cast<std::uintptr_t>(copy_values(c, count_, held()));
    a.unit_bytes = sizeof(std::uint64_t);
    a.stride_bytes = sizeof(std::uint64_t);
  }
  return true;
}

void bulk::fill(std::size_t i, descriptor& task) const noexcept {
  if (!packed_.empty()) {
    if (i == 0) task = first_;
    std::copy_n(packed_.data() + i * plan_.slots.size(), plan_.slots.size(), task.arguments);
    return;
  }
  if (i == 0) task = first_;
  for (const column& c : columns_) {
    argument& a = task.arguments[c.index];
    const char* data = c.data + static_cast<std::int64_t>(i) * c.step_bytes;
    switch (c.how) {
      case column::change::address:
        a.address = reinterpret_cast<std::uintptr_t>(data);
        break;
      case column::change::value:
        a.address = load_scalar(data, c.type);
        break;
      case column::change::listed_value:
        a.address = c.listed[i];
        break;
      case column::change::listed_range:
        a.address = c.listed[2 * i];
        a.row_bytes = c.listed[2 * i + 1];
        break;
    }
  }
}

}  // namespace lev::python
