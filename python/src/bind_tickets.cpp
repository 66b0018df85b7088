// Binds Ticket and the waits for several.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "choices.hpp"
#include "wait_set.hpp"

namespace lev::python {

namespace {

constexpr const char* ticket_doc = R"(The handle of a submitted task, or of all tasks of a bulk.

It remembers its outcome: it may be waited for again and again, by any thread. The arrays of the
task are kept alive until the task is complete, also when the Ticket is dropped; the failure of a
dropped one is raised by Runtime.wait_for_completion() and by the end of the `with` block.)";

constexpr const char* wait_doc = R"(Waits until the task is complete, without the GIL.

timeout: seconds; None waits for ever, 0 polls. Ctrl-C interrupts the wait, not the task.
policy: 'help', 'park', 'spin', 'yield' or 'directed', what this thread does meanwhile; None is the
runtime's. With 'help' it may run a task, and looks at time and Ctrl-C when that is done.
Raises TaskFailed, DependencyFailed or Cancelled by what became of the task, TimeoutError when
the time is over (nothing is consumed), ValueError for a negative time-out or NaN.
Cost: a wait for a complete task does not give up the GIL.)";

constexpr const char* result_doc = R"(Waits like wait(), then returns the task's results.

None for a procedure without `result` parameters, an int or float for one, a tuple for several. For
a bulk each is a NumPy array of shape (tasks,) in place of the number.)";

constexpr const char* cancel_doc =
    R"(Asks that the task not run. Returns whether it may have come in time.

It is a request: wait() tells, by raising Cancelled. A running task is not interrupted:
see end().)";

constexpr const char* end_doc =
    R"(Asks for the task's end wherever it is. Returns False if it had its outcome already.

A task that waits does not run. One that a worker process runs is ended with that process, and is
neither run again nor counted as an attempt; other tasks of the worker go on elsewhere. wait()
raises Cancelled, or tells that the task was quicker. What it has written in place stays. Raises
Unavailable on machines without worker processes: a running task goes on there, a waiting one does
not run. Returns at once; any thread. The ticket is done 1 to 3 ms later.)";

constexpr const char* await_doc =
    R"(Awaits the task on an event loop of asyncio, and gives what result() does.

When whoever awaits it is cancelled, so is the task; on 'processes' one that runs is ended. To keep
it, await asyncio.shield(ticket). Cost: a system call of the thread that completes the task.)";

constexpr const char* wait_any_doc = R"(Waits until one of the tickets is complete and returns it.

Its failure is not raised: its wait() or result() does that. A ticket given twice counts once.
Raises TimeoutError when the time is over, ValueError when there is no ticket or they are of
different runtimes. Cost: linear in the number of tickets; see as_completed() for many.
policy: as in Ticket.wait().)";

constexpr const char* wait_all_doc = R"(Waits until all tickets are complete.

Raises the first failure, by position; its `failures` counts the tasks that failed in all.
TimeoutError when the time is over; the tickets can be waited for again. No tickets: returns.
policy: as in Ticket.wait().)";

#if NB_VERSION_MAJOR >= 3
// A Ticket that is dropped is the place of the next one: most programs have few at a time.
constexpr std::uint32_t tickets_kept = 64;
#endif

}  // namespace

void bind_tickets(nb::module_& m) {
#if NB_VERSION_MAJOR >= 3
  nb::class_<ticket_object>(m, "Ticket", ticket_doc, nb::pooled(tickets_kept))
#else
  nb::class_<ticket_object>(m, "Ticket", ticket_doc)
#endif
      .def(
          "wait",
          [](ticket_object& t, nb::handle timeout, nb::handle policy) {
            const deadline end(timeout);
            t.wait(end, policy_of(policy));
          },
          nb::arg("timeout") = nb::none(), nb::arg("policy") = nb::none(), wait_doc)
      .def(
          "result",
          [](ticket_object& t, nb::handle timeout, nb::handle policy) {
            const deadline end(timeout);
            return t.result(end, policy_of(policy));
          },
          nb::arg("timeout") = nb::none(), nb::arg("policy") = nb::none(), result_doc)
      .def("done", &ticket_object::done, "Whether a wait would return at once. Never blocks.")
      .def("cancel", &ticket_object::cancel, cancel_doc)
      .def("end", &ticket_object::end, end_doc)
      .def(
          "_ring", &ticket_object::ring, nb::arg("bell"),
          "Has a bell rung when the task is complete. False: it is, or is run by its waiter alone.")
      .def("_give_up", &ticket_object::give_up,
           "Notes that its awaiter was told that it is cancelled: dropped, it is no failure.")
      .def(
          "__await__",
          [](nb::handle self) {
            return nb::module_::import_("leveret.awaiting")
                .attr("outcome")(self)
                .attr("__await__")();
          },
          nb::sig("def __await__(self) -> Generator[Any, None, Any]"), await_doc)
      .def_prop_ro(
          "status_code", [](ticket_object& t) { return static_cast<int>(t.code()); },
          "Outcome as a number of leveret.Status, or pending when it was not waited for yet.")
      .def_prop_ro(
          "procedure", [](ticket_object& t) -> const plan& { return t.procedure(); },
          nb::rv_policy::reference, "What the task runs.")
      .def("__repr__", [](ticket_object& t) {
        const bool is_news = !t.is_finished() && t.done();
        const std::string state = is_news ? "complete, not waited for" : status_name(t.code());
        return "<leveret.Ticket of '" + t.procedure().name + "', " + state + ">";
      });
  m.def("wait_any", &wait_any, nb::arg("tickets").none(), nb::arg("timeout") = nb::none(),
        nb::arg("policy") = nb::none(),
        nb::sig("def wait_any(tickets: Ticket | Iterable[Ticket], timeout: float | None = None, "
                "policy: WaitPolicy | None = None) -> Ticket"),
        wait_any_doc);
  m.def("look_over", &looked_over, nb::arg("tickets").none(), nb::arg("timeout") = nb::none(),
        nb::arg("policy") = nb::none(), "The tickets once each, for leveret.as_completed().");
  m.def("wait_all", &wait_all, nb::arg("tickets").none(), nb::arg("timeout") = nb::none(),
        nb::arg("policy") = nb::none(),
        nb::sig("def wait_all(tickets: Ticket | Iterable[Ticket], timeout: float | None = None, "
                "policy: WaitPolicy | None = None) -> None"),
        wait_all_doc);
}

}  // namespace lev::python
