// ordered: tasks whose order follows from the memory that they declare.
//
//   lev::ordered tasks(runtime);
//   for (int step = 0; step < steps; ++step)
//     for (block& b : blocks) tasks.submit(relax, b.left, b.right, b.own);
//   tasks.wait();
//
// The tasks of a scope leave memory as if each had run where it is submitted, one after the other.
// A task that reads comes after earlier ones that write the same bytes; a task that writes comes
// after those that read or write them. Others run side by side. A task uses what it declares: in,
// out, inout and far memory, each row to the byte, and the variable of a result. Values are read at
// the submit; pointers within them are not followed. No order is inferred between tasks of the
// scope and others: lev::after() orders those.
//
// A task that comes after a failed one does not run, and is a failure, too (dependency_failed).
//
// Thread safety: one call at a time; another one, of another thread or of a callback within the
// first, is refused with would_block. A runtime must outlive its scopes. Cost: about 0.05 us for
// each block of a matrix (docs/how-to/order-work.md), and memory for each block until some time
// after the last task that names it. When all config::tickets are in use, a submit waits for the
// scope's oldest tasks. A task that comes after more than 32 takes a ticket more for each 31 of the
// others: empty tasks stand for them. A complete task keeps its ticket until its scope looks, in
// some later submits and in every wait. A submitter that finds no ticket free collects the complete
// tasks of all scopes. If it sleeps for a ticket, it looks every millisecond, because the end of
// such a task does not wake it.
//
// Paper: TPC leaves the analysis of dependences out, though its design allows for it (section 5,
// which says that CellSs has it).
#ifndef LEVERET_ORDERED_HPP
#define LEVERET_ORDERED_HPP

#include <leveret/runtime.hpp>

namespace lev {

class ordered {
 public:
  explicit ordered(runtime& home);
  // Waits for all tasks. Failures that no wait() has reported go to wait_for_completion().
  // Destroying it within a call of the scope, as by a task that runs while that call waits, or in a
  // task of the scope, ends the program. exit() may do so with a static one, which stays as it is.
  ~ordered();
  ordered(const ordered&) = delete;
  ordered& operator=(const ordered&) = delete;

  // submit() is runtime::submit() without a ticket. Throws the same, and std::bad_alloc; then
  // nothing was submitted. May run other tasks while it waits, as a wait does.
  template <class... Parameters, class... Arguments>
  void submit(procedure<void(Parameters...)> p, Arguments&&... arguments) {
    submit(lev::pack(p, static_cast<Arguments&&>(arguments)...));
  }
  template <class... Parameters, class... Arguments>
  void submit(const options& o, procedure<void(Parameters...)> p, Arguments&&... arguments) {
    submit(lev::pack(p, static_cast<Arguments&&>(arguments)...), &o);
  }
  // The same for a function registered with LEV_PROCEDURE.
  template <auto Function, class... Arguments>
    requires(!detail::starts_with_options<Arguments...>)
  void submit(Arguments&&... arguments) {
    submit(detail::procedure_of<Function>(), static_cast<Arguments&&>(arguments)...);
  }
  template <auto Function, class... Arguments>
  void submit(const options& o, Arguments&&... arguments) {
    submit(o, detail::procedure_of<Function>(), static_cast<Arguments&&>(arguments)...);
  }
  // The same for a descriptor; `o` may be null.
  void submit(const descriptor& task, const options* o = nullptr) { submit_id(task, o); }
  // submit_id() returns the number of the task's ticket, which the scope holds, for language
  // bindings; 0: the task follows one that has failed.
  std::uint64_t submit_id(const descriptor& task, const options* o);

  // wait() waits for all tasks submitted so far. Rethrows the exception of the first that failed;
  // throws lev::error for every other failure. The scope may be used again: later tasks follow no
  // failure that was reported here, and find memory as the failed tasks left it.
  void wait();
  // wait_outcome() is wait() without exceptions, with a time-out: 0 polls, `no_timeout` waits. The
  // outcome is that of the first task that failed, in the order of the submits, with the number of
  // failures in all. Errors: timed_out, would_deadlock and the like, as of ticket::wait_outcome();
  // would_block: another call of the scope is under way. The tasks stay then, and only complete
  // ones give back their tickets.
  outcome wait_outcome(std::int64_t timeout_ns = no_timeout) noexcept;

 private:
  struct state;
  state* state_;  // stays where exit() leaves the scope as it is: others still call it
};

}  // namespace lev

#endif
