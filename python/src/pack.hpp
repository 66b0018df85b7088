// From Python's arguments to descriptors.
#pragma once

#include "hold.hpp"
#include "values.hpp"

namespace lev::python {

// leveret.sliced(a): dicing may cut this array along its first axis.
struct sliced_array {
  nb::object array;
};

// leveret.whole(a): in submit_bulk, every task gets all of this array.
struct whole_array {
  nb::object array;
};

// Gives up the hold when packing fails half-way.
class hold_guard {
 public:
  explicit hold_guard(hold* h) : hold_(h) {
    if (h != nullptr) h->add_user();
  }
  ~hold_guard() {
    if (hold_ != nullptr) hold_->drop_user();
  }
  hold_guard(hold_guard&&) = delete;
  hold* get() const noexcept { return hold_; }

 private:
  hold* hold_;
};

// make_hold() makes what `tasks` tasks need kept; null when they need nothing.
hold* make_hold(session* owner, const plan& p, std::size_t tasks);

// check_argument_count() raises TypeError unless `given` is what a caller passes to the procedure.
void check_argument_count(const plan& p, std::size_t given, bool are_ranges_passed);

// check_has_range() raises TypeError for a procedure that parallel() has no indices for.
void check_has_range(const plan& p);

// pack_memory() exports an array into `h`. A sliced_array sets the argument's flag.
argument pack_memory(const place& where, nb::handle value, hold* h);

// pack_task() fills `arguments` for one task, whose results are the `index`-th in `h`. With `whole`
// valid, range parameters are not passed by the caller but stand for that range.
void pack_task(const plan& p, nb::tuple values, hold* h, std::size_t index, const lev::range* whole,
               argument* arguments);
// The same for values in a row, of one task that is not parallel.
void pack_task(const plan& p, PyObject* const* values, hold* h, argument* arguments);

// position_of() tells where a caller passes the task's argument `index`, counted from 0; -1 for
// what it does not pass.
int position_of(const plan& p, int index, bool are_ranges_passed) noexcept;

// name_of() is the task's argument `index` as the caller knows it: "argument 0 (in f8)".
std::string name_of(const plan& p, std::size_t index, bool are_ranges_passed);

// raise_refusal() raises what the core says of a task that it refuses, or of one argument. The core
// counts the arguments of the task, the message for Python those that the caller passes.
[[noreturn]] void raise_refusal(const plan& p, status code, const std::string& message,
                                int argument, bool are_ranges_passed);

// check_lengths() raises ValueError naming the array that is shorter than the signature says, and
// the one it is measured by. Arrays that dicing cuts must be cut together.
void check_lengths(const plan& p, const argument* arguments, bool are_ranges_passed);

// Small parts, also for bulk packing.
argument pack_value(const place& where, nb::handle value);
argument pack_range(lev::range r) noexcept;  // not sliced
argument pack_result(const slot& s, char* place) noexcept;

}  // namespace lev::python
