// wait_any: lend the core all tickets that no other thread waits for, take them back, remember the
// outcome of one.
#include "wait_set.hpp"

#include <deque>

#include "choices.hpp"

namespace lev::python {

// The core's tickets of several ticket_objects side by side, as lev::wait_any wants them; given
// back at the end.
class claimed_set {
 public:
  explicit claimed_set(const std::vector<nb::object>& tickets) {
    // The room comes first: without memory for it each ticket keeps what it has.
    for (const nb::object& t : tickets) {
      ticket_object& one = ticket_in(t);
      if (one.is_waited_for()) continue;
      claims_.emplace_back(one);
      objects_.push_back(t);
    }
    cores_.reserve(objects_.size());
    for (const nb::object& t : objects_) cores_.push_back(std::move(ticket_in(t).core_));
  }
  ~claimed_set() {
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (ticket_in(objects_[i]).is_finished()) cores_[i].forget();
      ticket_in(objects_[i]).core_ = std::move(cores_[i]);
    }
  }
  claimed_set(claimed_set&&) = delete;

  std::size_t size() const noexcept { return cores_.size(); }

  // One wait; the ticket that got its outcome, or a null object.
  nb::object wait(const deadline& end, wait_policy how) {
    std::size_t index = none_ready;
    const outcome o = wait_in_slices(end, [&](std::int64_t ns) {
      return lev::wait_any(cores_.data(), cores_.size(), &index, ns, how);
    });
    if (o.code == status::timed_out) return {};
    if (index >= objects_.size()) raise_status(o.code, why_refused(o.code));
    // Another thread may have looked at just the right time: then it knows how the task ended.
    ticket_object& found = ticket_in(objects_[index]);
    if (!found.is_finished()) found.finish(o);
    return objects_[index];
  }

 private:
  std::deque<claim> claims_;
  std::vector<nb::object> objects_;
  std::vector<lev::ticket> cores_;
};

namespace {

nb::object find_finished(const std::vector<nb::object>& tickets) {
  for (const nb::object& t : tickets)
    if (ticket_in(t).is_finished()) return ticket_in(t).collect(), t;
  return {};
}

// Tickets that this thread waits for already, below a signal's handler: nobody else looks at them
// until the handler returns. Raises when there are no others, as a wait for one of them does.
void look_at_own(const std::vector<nb::object>& tickets) {
  std::size_t waiting = 0;
  for (const nb::object& t : tickets) {
    ticket_object& one = ticket_in(t);
    if (one.is_own()) one.look();
    waiting += one.is_own() && !one.is_finished();
  }
  if (waiting == tickets.size())
    raise_status(status::would_deadlock, "this thread waits for all of the tickets already");
}

void check_one_runtime(const std::vector<nb::object>& tickets) {
  for (const nb::object& t : tickets)
    if (ticket_in(t).owner() != ticket_in(tickets[0]).owner())
      raise_value_error("the tickets are of different runtimes; wait for each runtime's");
  if (!tickets.empty()) ticket_in(tickets[0]).owner()->runtime();
}

}  // namespace

[[noreturn]] static void refuse_tickets(const char* what, nb::handle given) {
  raise_type_error(std::string(what) + " must be a Ticket or an iterable of Tickets, not " +
                   name_of_type(given));
}

// Of the calls below. With the GIL.
static std::uint64_t marks = 0;

static std::vector<nb::object> without_repeats(const std::vector<nb::object>& tickets) {
  std::vector<nb::object> list;
  const nb::set seen;
  for (const nb::object& t : tickets) {
    if (seen.contains(t)) continue;
    PySet_Add(seen.ptr(), t.ptr());
    list.push_back(t);
  }
  return list;
}

std::vector<nb::object> tickets_of(nb::handle tickets, const char* what) {
  std::vector<nb::object> list;
  if (is_empty_tuple(tickets)) return list;
  if (is_made<ticket_object>(tickets)) return list.push_back(nb::borrow(tickets)), list;
  if (!is_iterable(tickets)) refuse_tickets(what, tickets);
  const std::uint64_t mark = ++marks;
  for (nb::handle t : nb::iter(tickets)) {
    if (!is_made<ticket_object>(t)) refuse_tickets(what, t);
    if (nb::inst_ptr<ticket_object>(t)->is_marked(mark)) continue;
    list.push_back(nb::borrow(t));
  }
  // The iterator may have called this, or another thread meanwhile.
  return marks == mark ? list : without_repeats(list);
}

nb::list looked_over(nb::object tickets, nb::object timeout, nb::object policy) {
  const std::vector<nb::object> given = tickets_of(tickets, "tickets");
  const deadline end(timeout);
  policy_of(policy);
  check_one_runtime(given);
  nb::list list;
  for (const nb::object& t : given) list.append(t);
  return list;
}

nb::object wait_any(nb::object tickets, nb::object timeout, nb::object policy) {
  const std::vector<nb::object> list = tickets_of(tickets, "tickets");
  const deadline end(timeout);
  const wait_policy how = policy_of(policy);
  if (list.empty()) raise_value_error("wait_any needs at least one ticket");
  check_one_runtime(list);
  while (true) {
    look_at_own(list);
    if (nb::object finished = find_finished(list); finished.is_valid()) return finished;
    claimed_set free(list);
    if (free.size() == list.size()) {
      if (nb::object finished = free.wait(end, how); finished.is_valid()) return finished;
    } else {
      // Another thread waits for some of these: look at short intervals at what it was told.
      const deadline slice(nb::float_(std::min(0.001, end.remaining_seconds())));
      if (free.size() == 0) {
        await_other_waiter(slice);
      } else if (nb::object finished = free.wait(slice, how); finished.is_valid()) {
        return finished;
      }
    }
    if (end.remaining_ns() == 0) break;
  }
  raise_status(status::timed_out,
               "none of " + std::to_string(list.size()) + " tickets is complete yet");
}

void wait_all(nb::object tickets, nb::object timeout, nb::object policy) {
  const std::vector<nb::object> list = tickets_of(tickets, "tickets");
  const deadline end(timeout);
  const wait_policy how = policy_of(policy);
  std::size_t missing = 0;
  unsigned failures = 0;
  const ticket_object* first = nullptr;
  for (const nb::object& t : list) {
    ticket_object& one = ticket_in(t);
    if (!one.try_wait(end, how)) {
      ++missing;
    } else if (one.code() != status::ok) {
      failures += one.failures() == 0 ? 1 : one.failures();
      if (first == nullptr) first = &one;
    }
  }
  if (missing > 0)
    raise_status(status::timed_out, std::to_string(missing) + " of " + std::to_string(list.size()) +
                                        " tickets are not complete");
  if (first != nullptr) first->raise_failure(failures);
}

}  // namespace lev::python
