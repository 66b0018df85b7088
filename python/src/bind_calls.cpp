// Call and CallPort as Python sees them.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <utility>

#include "bindings.hpp"
#include "call_port.hpp"
#include "shared.hpp"
#include "waiting.hpp"

namespace lev::python {

namespace {

int traverse_port(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<call_port>(self)->traverse(visit, arg);
}
int clear_port(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<call_port>(self)->clear();
  return 0;
}
PyType_Slot port_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_port)},
                            {Py_tp_clear, reinterpret_cast<void*>(&clear_port)},
                            {0, nullptr}};

}  // namespace

void bind_calls(nb::module_& m) {
  nb::class_<port_call>(m, "Call", "A Python call on its way; see leveret.ProcessExecutor.")
      .def(
          "set_urgent", [](port_call& c) { c.is_urgent.store(true, std::memory_order_relaxed); },
          "The port's own thread is to deliver it as soon as it ends.");
  nb::class_<call_port>(m, "CallPort", nb::type_slots(port_slots),
                        "Sends Python calls to worker processes; see leveret.ProcessExecutor.")
      .def(nb::init<nb::object, nb::object, nb::object, bool, nb::object, nb::object>(),
           nb::arg("runtime"), nb::arg("deliver"), nb::arg("call_back"), nb::arg("may_rerun"),
           nb::arg("setup"), nb::arg("deaths").none())
      .def(
          "submit",
          [](nb::handle self, nb::object cookie, nb::object request, nb::list buffers,
             nb::object block, nb::object timeout, std::uint32_t max_attempts,
             nb::object may_rerun) {
            const call_port::limits own{task_ns("timeout", timeout), max_attempts,
                                        std::move(may_rerun)};
            return nb::inst_ptr<call_port>(self)->submit(self, std::move(cookie),
                                                         std::move(request), std::move(buffers),
                                                         std::move(block), own);
          },
          nb::arg("cookie"), nb::arg("request"), nb::arg("buffers"), nb::arg("reply").none(),
          nb::arg("timeout") = nb::none(), nb::arg("max_attempts") = 0,
          nb::arg("may_rerun") = nb::none(),
          "Sends a call; None when all tickets are in use. timeout, max_attempts, may_rerun: None, "
          "0 and None as the runtime and the port say.")
      .def("end", &call_port::end, nb::arg("call"),
           "Asks for the end of a call, also if it runs; False if it has ended. It is delivered as "
           "one that was cancelled, unless it was quicker.")
      .def("wait", &call_port::wait, nb::arg("call"), nb::arg("timeout").none(),
           "Waits for a call as Ticket.wait() does; True when it was delivered.")
      .def("tend", &call_port::tend, nb::arg("call"),
           "Lets calls come and go without waiting; call: one that is under way.")
      .def(
          "drain", [](call_port& p) { p.drain(p.is_own_thread()); },
          "Delivers the calls that are finished.")
      .def("hurry", &call_port::hurry,
           "Lets the port's own thread deliver what is finished, then run call_back().")
      .def("leave", &call_port::leave, nb::arg("is_urgent"),
           "Lets the port's own thread run call_back(): soon, or when others leave the port alone.")
      .def("close", &call_port::close, "Ends the port's thread; the runtime must be closed.")
      .def_prop_ro("is_own_thread", &call_port::is_own_thread,
                   "Whether the caller is the port's thread.")
      .def_prop_ro("has_finished", &call_port::has_finished, "Whether drain() has work.");
}

}  // namespace lev::python
