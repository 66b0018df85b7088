// Submitting from Python: pack with the GIL, submit without it (a full runtime makes the submitter
// run tasks or sleep).
#include "runtime_object.hpp"

#include <algorithm>
#include <chrono>

#include "builtins.hpp"
#include "bulk.hpp"
#include "gil.hpp"

namespace lev::python {

namespace {

constexpr std::size_t quick_arguments_max = 6;

// A turn in the core's close(), which is shorter than the wait for one: the main thread looks for
// signals every 50 ms, and must not miss each moment at which another thread's turn ends.
constexpr std::int64_t close_turn_ns = 20'000'000;
constexpr std::int64_t close_wait_ns = 1'000'000'000;

std::int64_t within(std::int64_t most, std::int64_t ns) noexcept {
  return ns == no_timeout ? most : std::min(ns, most);
}

[[noreturn]] void refuse_locks(nb::handle given) {
  raise_type_error("locks must be a Mutex or an iterable of them, made with Runtime.mutex(), not " +
                   name_of_type(given));
}

void add_locks(nb::handle locks, const session* owner, options& o) {
  const auto add = [&](nb::handle lock) {
    if (!is_made<task_mutex>(lock)) refuse_locks(lock);
    const task_mutex& m = *nb::inst_ptr<task_mutex>(lock);
    if (m.owner.get() != owner) raise_value_error("a mutex in locks= is of another runtime");
    o.locks(m.id);
  };
  if (is_made<task_mutex>(locks)) return add(locks);
  if (is_empty_tuple(locks)) return;
  if (!is_iterable(locks)) refuse_locks(locks);
  for (nb::handle lock : nb::iter(locks)) add(lock);
}

// Waits in slices for something the core answers with a plain status.
template <class Step>
status wait_for_status(const deadline& end, Step&& step) {
  return wait_in_slices(end,
                        [&](std::int64_t ns) {
                          outcome o;
                          o.code = step(ns);
                          return o;
                        })
      .code;
}

// Whether a wait for all tasks was refused: nothing is known of them then.
bool is_refusal(status code) noexcept {
  return code == status::would_deadlock || code == status::closed || code == status::would_block;
}

// A list of tuples, one per task, perhaps of none; but the list of pairs for the only parameter, a
// range, is a column.
bool is_task_list(const plan& p, nb::tuple values) {
  if (values.size() != 1 || (p.slots.size() == 1 && p.slots[0].what == kind::range)) return false;
  PyObject* list = PyTuple_GetItem(values.ptr(), 0);
  return PyList_Check(list) && (PyList_Size(list) == 0 || PyTuple_Check(PyList_GetItem(list, 0)));
}

std::string text_of_dropped(const outcome& o) {
  if (o.code == status::would_deadlock) return "a task cannot wait for all tasks: it is one itself";
  if (o.code == status::would_block) return why_refused(o.code);
  return "a task whose Ticket was dropped: " + what_failed(o);
}

filter filter_named(const std::string& name) {
  if (name == "fifo") return filters::fifo();
  if (name == "priority") return filters::priority();
  if (name == "locality") return filters::locality();
  if (name == "by_procedure") return filters::by_procedure();
  raise_value_error("there is no filter '" + name +
                    "'; the filters are fifo, priority, locality, by_procedure");
}

// Where a ticket is to be made. It comes before the submit: without memory for it nothing may have
// been submitted.
class ticket_room {
 public:
  ticket_room() : place_(::operator new(sizeof(ticket_object))) {}
  ~ticket_room() { ::operator delete(place_); }
  ticket_room(ticket_room&&) = delete;

  template <class... Given>
  ticket_object* make(Given&&... given) {
    return new (std::exchange(place_, nullptr)) ticket_object(std::forward<Given>(given)...);
  }

 private:
  static_assert(alignof(ticket_object) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  void* place_;
};

// Tasks that join others, until what comes after them has been submitted.
struct joins {
  explicit joins(session& s) noexcept : owner(s) {}
  joins(joins&&) = delete;
  ~joins() {
    for (lev::ticket& t : tickets) owner.leave_to_end(std::move(t), status::dependency_failed);
  }

  session& owner;
  std::vector<lev::ticket> tickets;
};

}  // namespace

options options_of(const submit_options& asked, const session* owner) {
  options o;
  o.priority(asked.priority).key(asked.key).grain(asked.grain);
  o.task_ns_max(asked.task_ns_max).max_attempts(asked.max_attempts);
  add_locks(asked.locks, owner, o);
  return o;
}

// It may wait for a ticket; handlers of signals run meanwhile, and what they raise is raised. On
// `sim`, whose time is no clock's, it waits in one piece.
lev::ticket runtime_object::try_submit(const descriptor& task, const options& o, refusal* why) {
  lev::runtime& r = runtime();
  const bool is_simulated = std::string_view(r.machine()) == "sim";
  const std::int64_t slice_ns = is_simulated ? no_timeout : deadline(nb::none()).slice_ns();
  for (;;) {
    {
      const gil_released released;
      lev::ticket t = r.submit_within(task, &o, why, slice_ns);
      if (t || why->code != status::timed_out) return t;
    }
    run_handlers();
  }
}

// An empty task after as many tickets as the core takes at once; its ticket takes their place in
// `ids`.
lev::ticket runtime_object::join(std::vector<std::uint64_t>& ids, refusal* why) {
  options o;
  for (unsigned i = 0; i < options::after_max; ++i) {
    o.after_id(ids.back());
    ids.pop_back();
  }
  descriptor nothing;
  nothing.procedure = builtin("null").id;
  lev::ticket t = try_submit(nothing, o, why);
  ids.insert(ids.begin(), t.id());
  return t;
}

// Submits a task after the tickets of after=. An empty ticket with `why` tells of a refusal;
// dependency_failed of a ticket that has failed already.
lev::ticket runtime_object::submit_after(const descriptor& task, const options& o, nb::handle after,
                                         refusal* why) {
  // Once: it may be an iterator.
  const std::vector<nb::object> tickets = tickets_of(after, "after");
  for (const nb::object& t : tickets) {
    if (ticket_in(t).owner() != session_)
      raise_value_error("a ticket in after= is of another runtime");
  }
  for (;;) {
    why->code = status::ok;
    lev::ticket t = try_submit_after(task, o, tickets, why);
    if (t || why->code != status::stale_ticket) return t;
    // Another thread's wait has consumed a ticket meanwhile: it knows how that ended, or will soon.
    bool is_one_consumed = false;
    for (const nb::object& one : tickets)
      is_one_consumed |= ticket_in(one).is_finished() || ticket_in(one).is_waited_for();
    if (!is_one_consumed) return t;
  }
}

lev::ticket runtime_object::try_submit_after(const descriptor& task, options o,
                                             const std::vector<nb::object>& tickets, refusal* why) {
  std::vector<std::uint64_t> ids;
  for (const nb::object& t : tickets) {
    ticket_object& one = ticket_in(t);
    if (one.is_own()) {
      one.look();
    } else if (one.is_waited_for() && one.done()) {
      one.try_wait(deadline(nb::none()));
    }
    if (!one.is_finished()) {
      ids.push_back(one.id());
    } else if (one.code() != status::ok) {
      why->code = status::dependency_failed;
      return {};
    }
  }
  joins made(*session_);
  while (ids.size() > options::after_max) {
    lev::ticket t = join(ids, why);
    if (!t) return {};
    made.tickets.push_back(std::move(t));
  }
  for (const std::uint64_t id : ids) o.after_id(id);
  return try_submit(task, o, why);
}

ticket_object* runtime_object::submit(const plan& p, nb::tuple values, const submit_options& asked,
                                      const lev::range* whole) {
  runtime();
  if (whole != nullptr) check_has_range(p);
  check_argument_count(p, values.size(), whole == nullptr);
  const hold_guard held(make_hold(session_.get(), p, 1));
  descriptor task;
  task.procedure = p.id;
  task.argument_count = static_cast<std::uint8_t>(p.slots.size());
  task.grain = asked.grain;
  task.priority = asked.priority;
  task.key = asked.key;
  pack_task(p, values, held.get(), 0, whole, task.arguments);

  ticket_room room;
  refusal why;
  lev::ticket t = submit_after(task, options_of(asked, session_.get()), asked.after, &why);
  if (!t && why.code == status::dependency_failed)
    return room.make(session_, p, status::dependency_failed);
  if (!t) raise_refusal(p, why.code, why.message, why.argument, whole == nullptr);
  return room.make(session_, p, std::move(t), held.get(), std::size_t{1}, false);
}

bool runtime_object::submit_at_once(const plan& p, PyObject* const* values, std::size_t count,
                                    void* place) {
  lev::runtime& r = runtime();
  check_argument_count(p, count, true);
  if (p.slots.size() > quick_arguments_max) return false;
  const hold_guard held(make_hold(session_.get(), p, 1));
  argument packed[quick_arguments_max];
  pack_task(p, values, held.get(), packed);
  lev::ticket t = r.submit_at_once(p.id, packed, static_cast<unsigned>(p.slots.size()));
  if (!t) return false;
  new (place) ticket_object(session_, p, std::move(t), held.get(), 1, false);
  return true;
}

ticket_object* runtime_object::submit_bulk(const plan& p, nb::tuple values, nb::object count) {
  lev::runtime& r = runtime();
  const bulk tasks = is_task_list(p, values)
                         ? bulk(p, nb::borrow<nb::list>(values[0]), count, session_.get())
                         : bulk(p, values, count, session_.get());
  ticket_room room;
  if (tasks.count() == 0) return room.make(session_, p, tasks.held());
  lev::ticket t;
  try {
    const gil_released released;
    descriptor all;
    t = tasks.describe(all)
            ? r.submit_bulk(tasks.count(), all)
            : r.submit_bulk(tasks.count(), [&](std::size_t i, descriptor& d) { tasks.fill(i, d); });
  } catch (const error& e) {
    // What it holds is let go: the tasks before the refused one are done.
    raise_refusal(p, e.code(), e.what(), e.argument(), true);
  }
  hold* held = tasks.held()->is_empty() ? nullptr : tasks.held();
  return room.make(session_, p, std::move(t), held, tasks.count(), true);
}

void runtime_object::wait_for_completion(nb::object timeout) {
  lev::runtime& r = runtime();
  const deadline end(timeout);
  outcome o = wait_in_slices(end, [&](std::int64_t ns) { return r.wait_for_completion(ns); });
  session_->collect();
  if (o.code == status::timed_out) raise_status(o.code, "tasks are still waiting or running");
  if (!is_refusal(o.code)) session_->add_dropped(o);
  if (o.code != status::ok) raise_status(o.code, text_of_dropped(o), -1, o.task_code, o.failures);
}

bool closing_turns::begin(std::int64_t ns) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const auto slice = std::chrono::nanoseconds(within(close_wait_ns, ns));
  const bool is_mine = changed_.wait_for(lock, slice, [&] { return who_ == std::thread::id(); });
  --waiting_;
  if (is_mine) {
    who_ = std::this_thread::get_id();
    ++begun_;
  }
  changed_.notify_all();
  return is_mine;
}

void closing_turns::end() {
  std::unique_lock lock(mutex_);
  who_ = std::thread::id();
  const std::uint64_t seen = begun_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return waiting_ == 0 || begun_ != seen; });
}

bool closing_turns::is_own() {
  const std::lock_guard lock(mutex_);
  return who_ == std::this_thread::get_id();
}

// Without the GIL. None: it was not this thread's turn within that time.
template <class Close>
std::optional<status> runtime_object::close_in_turn(std::int64_t ns, Close&& close) {
  if (closing_.is_own()) return status::would_deadlock;
  if (!closing_.begin(ns)) return std::nullopt;
  const status code = close();
  closing_.end();
  return code;
}

void runtime_object::close(nb::object timeout, bool cancel_waiting, bool end_running) {
  if (is_closed_ || session_->is_forked()) return;
  const deadline end(timeout);
  lev::runtime& r = runtime();
  status code = wait_for_status(end, [&](std::int64_t ns) {
    const auto close = [&] {
      return r.close(within(close_turn_ns, end.remaining_ns()), cancel_waiting || end_running);
    };
    return close_in_turn(ns, close).value_or(status::timed_out);
  });
  if (code == status::timed_out && end_running) {
    wait_for_status(deadline(nb::none()), [&](std::int64_t ns) {
      const auto said = close_in_turn(ns, [&] { return r.close(0, true, true); });
      code = said.value_or(code);
      return said ? status::ok : status::timed_out;
    });
  }
  if (code != status::ok)
    raise_status(code, code == status::timed_out
                           ? "tasks are still running; call close() again"
                           : "the runtime cannot be closed from a task of its own");
  is_closed_ = true;
  session_->collect();
}

void runtime_object::set_filters(nb::object names) {
  std::vector<filter> chain;
  for (nb::handle name : nb::iter(names)) {
    if (!nb::isinstance<nb::str>(name)) raise_value_error("filters are given by name");
    chain.push_back(filter_named(text_of(name)));
  }
  const status code = runtime().set_filters(chain.data(), chain.size());
  if (code != status::ok) raise_status(code, "a chain has at most 8 filters");
}

task_mutex runtime_object::make_mutex() {
  mutex_id id = 0;
  const status code = runtime().make_mutex(&id);
  if (code != status::ok) raise_status(code, "all 256 mutexes of the runtime are in use");
  return {session_, id};
}

nb::dict runtime_object::counters() {
  const lev::counters c = runtime().count();
  nb::dict d;
  d["submitted"] = c.submitted;
  d["completed"] = c.completed;
  d["failed"] = c.failed;
  d["direct"] = c.direct;
  d["stolen"] = c.stolen;
  d["diced"] = c.diced;
  d["passes"] = c.passes;
  d["parks"] = c.parks;
  d["staged_bytes"] = c.staged_bytes;
  d["bad_filters"] = c.bad_filters;
  d["helped"] = c.helped;
  d["deaths"] = c.deaths;
  d["reruns"] = c.reruns;
  return d;
}

nb::list runtime_object::worker_counters() {
  lev::runtime& r = runtime();
  nb::list list;
  for (unsigned i = 0; i <= r.workers(); ++i) {
    const lev::worker_counters c = r.count_worker(i);
    nb::dict d;
    d["completed"] = c.completed;
    d["busy_ns"] = c.busy_ns;
    list.append(d);
  }
  return list;
}

void runtime_object::write_trace(nb::bytes path) {
  lev::runtime& r = runtime();
  const status code = without_gil([&] { return r.write_trace(path.c_str()); });
  if (code == status::not_supported)
    raise_status(code, "there is no trace; open the Runtime with trace_events > 0");
  if (code != status::ok)
    raise_status(code, std::string("cannot write the trace to ") + path.c_str() +
                           "; is there such a folder, and room in it?");
}

}  // namespace lev::python
