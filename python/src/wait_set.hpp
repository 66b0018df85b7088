// Waits for several tickets.
#pragma once

#include "ticket.hpp"

namespace lev::python {

// tickets_of() lists a Ticket, or an iterable of them, each once. Raises TypeError about the
// argument `what`.
std::vector<nb::object> tickets_of(nb::handle tickets, const char* what);

inline ticket_object& ticket_in(const nb::object& t) {
  return *nb::inst_ptr<ticket_object>(t);
}

// looked_over() is the list of what waiting.as_completed() takes. It raises as wait_any() does, but
// not for a set of none.
nb::list looked_over(nb::object tickets, nb::object timeout, nb::object policy);

// wait_any() returns the first finished Ticket of an iterable; raises TimeoutError when the time is
// over, ValueError when there is none or they are of different runtimes. The ticket's failure is
// not raised.
nb::object wait_any(nb::object tickets, nb::object timeout, nb::object policy);

// wait_all() waits for every Ticket, then raises the first failure by position.
void wait_all(nb::object tickets, nb::object timeout, nb::object policy);

}  // namespace lev::python
