// Binds Runtime and Mutex: reads the configuration, and checks what C++ types cannot say.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "bindings.hpp"
#include "builtins.hpp"
#include "calls.hpp"
#include "choices.hpp"
#include "given_options.hpp"
#include "runtime_object.hpp"
#include "waiting.hpp"

namespace lev::python {

namespace {

constexpr const char* runtime_doc = R"(Workers of one machine, and the way tasks reach them.

Use it as a context manager: the end of the block waits for all tasks and stops the workers; when
the block is left by an exception, tasks that have not started are cancelled first, and by a Ctrl-C
those that run in worker processes are ended.

machine: a name listed by leveret.machines(). workers: 0 for one less than the cores.
staging: 'auto', 'in_place' or 'copy'. wait: 'help', 'park', 'spin', 'yield' or 'directed', what a
waiting thread does. full: 'help', 'wait' or 'fail', what a submit does when all tickets are in use.
depth: tasks looked ahead, 0 to choose.
local_store_bytes: per worker. tickets: tasks in flight at most. trace_events: kept per worker.
spin_ns: how long an idle worker polls before it sleeps. seed: of every random choice.

For machine='processes', where a worker is a process and a crash in a task ends only that:
isolation: 'crash' or 'confined'. max_attempts: a task whose worker dies this often is given up
(leveret.Poison). restarts_max: workers that die one after the other without having taken a task,
until the pool is down (leveret.PoolDown). task_timeout: seconds; a task that runs longer is killed
(leveret.Overran). worker_memory: private bytes of a worker at most. worker_cpu_seconds: its CPU
time. pool: host processes that name the same one share its workers (same interpreter and
sys.path); None: workers of its own. local_store_bytes is 64 MiB there by default: it is no memory
until a task uses it.

For machine='sim': sim_machine: 'cell-ps3', 'cell-qs20', 'cell-qs21' or the path of a machine file,
which gives the prices of all steps, how many workers there are if `workers` is 0, how large a local
store can be, and whether hosts that wait run tasks; None: the prices of 'cell-ps3' alone.

Raises ValueError for values that make no sense, Unavailable when the machine does not work here.
Thread safety: every method from any thread.)";

constexpr const char* submit_doc = R"(Hands over one task and returns its Ticket.

args: one for each parameter of the procedure that is not `result`, count(), rows() or stride().
Arrays are not copied: they must not be changed until the task is complete, and are kept alive.
after: tickets (one or more) of tasks that must end well first. locks: mutexes held while it runs.
priority: larger runs earlier under the 'priority' filter. key: data key for the 'locality' filter.
grain: smallest piece dicing may cut. task_timeout, max_attempts: in place of the runtime's, for
'processes'; math.inf: no time limit. A task with sliced() arrays may be diced, and one with a
`range` and no outputs; others run whole.

Raises TypeError, ValueError, OverflowError or BufferError naming the argument that does not fit;
nothing is submitted then. Cost: about a microsecond; waits when all tickets are in use.)";

constexpr const char* submit_bulk_doc =
    R"(Submits many tasks of one procedure behind one Ticket, in one call.

Each argument is cut along its first axis: an array of shape (n, ...) for memory gives row i to
task i; a list or an array of shape (n,) gives value i; a number is for every task; whole(a) gives
every task all of `a`. A `range` takes a list of pairs. count: the number of tasks, needed when no
argument tells. Alternatively one list with a tuple of arguments per task.

A task that fails keeps no other from running: the error names one by its index, and `failures`
has their number. Arrays for memory are used while the tasks run; values are copied. Columns travel
as one range, which is cut into pieces: counters and traces see those. A list of tuples, lists of
ranges and arrays whose rows have gaps or go backwards are tasks of their own.

Raises like submit(). Cost: tens of nanoseconds per task, also with 'processes'; tasks of their own
0.1 us, with 'processes' up to 2 us.)";

constexpr const char* parallel_doc =
    R"(Submits one task over the indices 0..n that dicing may cut into many.

`range` parameters are not passed: they stand for the indices, and there must be one. Arrays wrapped
in leveret.sliced(a) are cut along with them and need n rows (one axis: n elements). Others go whole
to every piece. grain: smallest piece, in indices; 0 lets Leveret choose. Raises and costs like
submit().)";

template <class Field>
void set_number(Field& field, nb::handle options, const char* name) {
  const nb::object value = options[name];
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    drop_error(PyExc_TypeError);
    raise_type_error(std::string(name) + " must be an integer, not " + text_of(nb::repr(value)));
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  using limits = std::numeric_limits<Field>;
  const bool is_low = number < 0 && static_cast<long long>(limits::min()) > number;
  const bool is_high = number > 0 && static_cast<unsigned long long>(number) > limits::max();
  if (overflow != 0 || is_low || is_high)
    raise_value_error(std::string(name) + " must be from " + std::to_string(limits::min()) +
                      " to " + std::to_string(limits::max()) + ", not " + text_of(value));
  field = static_cast<Field>(number);
}

void set_choices(config& c, nb::handle o) {
  const auto text = [&](const char* name) {
    const nb::object value = o[name];
    if (!nb::isinstance<nb::str>(value))
      raise_value_error(std::string(name) + " must be a string, not " + text_of(nb::repr(value)));
    return text_of(value);
  };
  using s = staging;
  using f = when_full;
  const choice<s> stagings[] = {
      {"auto", s::automatic}, {"in_place", s::in_place}, {"copy", s::copy}};
  const choice<f> fulls[] = {{"help", f::help}, {"wait", f::wait}, {"fail", f::fail}};
  c.staging = choose("staging", text("staging"), stagings);
  c.wait = choose("wait", text("wait"), wait_policies);
  c.full = choose("full", text("full"), fulls);
  using i = isolation;
  const choice<i> isolations[] = {{"crash", i::crash}, {"confined", i::confined}};
  c.processes.isolation = choose("isolation", text("isolation"), isolations);
}

void open(runtime_object* self, nb::str machine, nb::kwargs o) {
  config c;
  const std::string machine_name = c_text("machine", machine);
  c.machine = machine_name.c_str();
  set_choices(c, o);
  set_number(c.workers, o, "workers");
  set_number(c.depth, o, "depth");
  set_number(c.tickets, o, "tickets");
  set_number(c.local_store_bytes, o, "local_store_bytes");
  set_number(c.trace_events, o, "trace_events");
  set_number(c.seed, o, "seed");
  set_number(c.dice_threshold, o, "dice_threshold");
  set_number(c.host_threads, o, "host_threads");
  set_number(c.nest_max, o, "nest_max");
  set_number(c.contexts, o, "contexts");
  set_number(c.spin_ns, o, "spin_ns");
  set_number(c.processes.max_attempts, o, "max_attempts");
  set_number(c.processes.restarts_max, o, "restarts_max");
  set_number(c.processes.task_ns_max, o, "task_ns_max");
  set_number(c.processes.worker_bytes_max, o, "worker_memory");
  set_number(c.processes.worker_cpu_seconds_max, o, "worker_cpu_seconds");
  const nb::object pool = o["pool"];
  if (!pool.is_none() && !nb::isinstance<nb::str>(pool))
    raise_type_error("pool must be a name or None, not " + text_of(nb::repr(pool)));
  const std::string pool_name = pool.is_none() ? "" : c_text("pool", pool);
  if (!pool.is_none()) c.processes.pool = pool_name.c_str();
  const nb::object simulated = o["sim_machine"];
  if (!simulated.is_none()) c.sim_machine = nb::cast<nb::bytes>(simulated).c_str();
  const nb::object pin = o["pin"];
  if (!nb::isinstance<nb::bool_>(pin))
    raise_type_error("pin must be True or False, not " + text_of(nb::repr(pin)));
  c.pin = nb::cast<bool>(pin);
  new (self) runtime_object(session::make(
      c, nb::cast<std::vector<std::string>>(o["worker_command"]), nb::object(o["obituaries"])));
}

ticket_object* submit(runtime_object& self, nb::object procedure, nb::args args, nb::object after,
                      nb::object locks, nb::object priority, nb::object key, nb::object grain,
                      nb::object task_timeout, nb::object max_attempts) {
  const given_options given{after, locks, priority, key, grain, task_timeout, max_attempts};
  return self.submit(procedure_in(procedure), args, given.read(), nullptr);
}

ticket_object* parallel(runtime_object& self, nb::object procedure, nb::object n, nb::args args,
                        nb::object after, nb::object locks, nb::object priority, nb::object key,
                        nb::object grain, nb::object task_timeout, nb::object max_attempts) {
  const given_options given{after, locks, priority, key, grain, task_timeout, max_attempts};
  const long long end = integer_in("n", n, 0, std::numeric_limits<long long>::max());
  const lev::range whole{0, static_cast<std::uint64_t>(end)};
  return self.submit(procedure_in(procedure), args, given.read(), &whole);
}

ticket_object* submit_bulk(runtime_object& self, nb::object procedure, nb::args args,
                           nb::object count) {
  return self.submit_bulk(procedure_in(procedure), args, count);
}

// What help() shows: the types that calls.hpp checks.
constexpr const char* submit_sig =
    "def submit(self, procedure: Procedure, *args: object, after: Ticket | Iterable[Ticket] = (), "
    "locks: Mutex | Iterable[Mutex] = (), priority: int = 0, key: int = 0, grain: int = 0, "
    "task_timeout: float | None = None, max_attempts: int = 0) -> Ticket";
constexpr const char* parallel_sig =
    "def parallel(self, procedure: Procedure, n: int, *args: object, "
    "after: Ticket | Iterable[Ticket] = (), locks: Mutex | Iterable[Mutex] = (), "
    "priority: int = 0, key: int = 0, grain: int = 0, task_timeout: float | None = None, "
    "max_attempts: int = 0) -> Ticket";
constexpr const char* submit_bulk_sig =
    "def submit_bulk(self, procedure: Procedure, *args: object, count: int | None = None) "
    "-> Ticket";

void bind_submits(nb::class_<runtime_object>& c) {
  constexpr const char* of_tasks = "after, locks, priority, key, grain, task_timeout, max_attempts";
  const nb::tuple none;
  c.def("submit", &submit, nb::arg("procedure"), nb::arg("args"), nb::arg("after").none() = none,
        nb::arg("locks").none() = none, nb::arg("priority").none() = 0, nb::arg("key").none() = 0,
        nb::arg("grain").none() = 0, nb::arg("task_timeout") = nb::none(),
        nb::arg("max_attempts").none() = 0, nb::sig(submit_sig), submit_doc);
  c.def("parallel", &parallel, nb::arg("procedure"), nb::arg("n").none(), nb::arg("args"),
        nb::arg("after").none() = none, nb::arg("locks").none() = none,
        nb::arg("priority").none() = 0, nb::arg("key").none() = 0, nb::arg("grain").none() = 0,
        nb::arg("task_timeout") = nb::none(), nb::arg("max_attempts").none() = 0,
        nb::sig(parallel_sig), parallel_doc);
  c.def("submit_bulk", &submit_bulk, nb::arg("procedure"), nb::arg("args"),
        nb::arg("count") = nb::none(), nb::sig(submit_bulk_sig), submit_bulk_doc);
  bind_refusal<ticket_object*>(c, "submit", 1, of_tasks);
  bind_refusal<ticket_object*>(c, "parallel", 2, of_tasks);
  bind_refusal<ticket_object*>(c, "submit_bulk", 1, "count");
}

void bind_rest(nb::class_<runtime_object>& c) {
  c.def("wait_for_completion", &runtime_object::wait_for_completion,
        nb::arg("timeout") = nb::none(),
        "Waits until no task is left, including those that other threads submit meanwhile. Raises "
        "the first failure of a task whose Ticket was dropped since the last call; TimeoutError "
        "when the time is over.");
  c.def("close", &runtime_object::close, nb::arg("timeout") = nb::none(),
        nb::arg("cancel_waiting") = false, nb::arg("end_running") = false,
        "Refuses new tasks, waits for the others (or cancels what has not started) and stops the "
        "workers. end_running cancels, too, and ends what still runs when the time is over, on "
        "machine 'processes'. TimeoutError when the time is over: call again. A second call does "
        "nothing.");
  c.def("set_filters", &runtime_object::set_filters, nb::arg("names"),
        "Replaces the filter chain, also while tasks run: names out of 'fifo', 'priority', "
        "'locality', 'by_procedure', at most 8; () for none.");
  c.def("mutex", &runtime_object::make_mutex,
        "Makes a mutex for locks=; a runtime has at most 256.");
  c.def("counters", &runtime_object::counters,
        "What has happened since open, summed over all workers and host threads.");
  c.def("worker_counters", &runtime_object::worker_counters,
        "One entry per worker, then one for the helping host threads. busy_ns counts while "
        "tracing is on.");
  c.def("write_trace", &runtime_object::write_trace, nb::arg("path"),
        "Writes what the trace rings hold as Chrome/Perfetto JSON. Needs trace_events > 0.");
  c.def_prop_ro(
      "workers", [](runtime_object& r) { return r.runtime().workers(); }, "Number of workers.");
  c.def_prop_ro(
      "machine", [](runtime_object& r) { return r.runtime().machine(); }, "Name of the machine.");
  c.def_prop_ro(
      "closed", &runtime_object::is_closed,
      "Whether close() has succeeded, or this process is a fork of the one that opened it.");
  c.def(
      "now_ns", [](runtime_object& r) { return r.runtime().now_ns(); },
      "The machine's clock in nanoseconds: virtual time on `sim`.");
  c.def(
      "trace_hash", [](runtime_object& r) { return r.runtime().trace_hash(); },
      "Hash over all turns of a `sim` runtime, and its trace events: equal for equal seeds.");
  c.def(
      "pass_time",
      [](runtime_object& r, nb::object cycles) {
        constexpr long long most = std::numeric_limits<long long>::max();
        const long long count = integer_in("cycles", cycles, 0, most);
        r.runtime().pass_time(static_cast<std::uint64_t>(count));
      },
      nb::arg("cycles"), nb::sig("def pass_time(self, cycles: int) -> None"),
      "Lets the time of the caller's own work pass on `sim`, in cycles; nothing on others.");
}

}  // namespace

void bind_runtime(nb::module_& m) {
  nb::class_<task_mutex>(m, "Mutex",
                         "A mutex that tasks name with locks=. Made by Runtime.mutex().");
  nb::class_<runtime_object> c(m, "Runtime", runtime_doc);
  c.def("__init__", &open, nb::arg("machine"), nb::arg("options"));
  bind_submits(c);
  bind_rest(c);
  bind_ordered(m, c);
}

}  // namespace lev::python
