// Binds Ordered: a scope whose tasks are ordered by the memory that they declare.
#include <nanobind/stl/unique_ptr.h>

#include <leveret/ordered.hpp>

#include "bindings.hpp"
#include "calls.hpp"
#include "gil.hpp"
#include "given_options.hpp"
#include "runtime_object.hpp"

namespace lev::python {

namespace {

constexpr const char* ordered_doc =
    R"(Tasks whose order follows from the memory that they declare. Made by Runtime.ordered().

They leave in arrays what they would leave if each ran where it is submitted, one after the other:
a task that reads comes after those before it that write the same bytes, and one that writes after
those that read or write them; others run side by side. A task that comes after one that failed
does not run. Values are read at the submit. The end of the `with` block waits for all tasks.

Thread safety: one thread at a time. Cost: a submit takes little more than Runtime.submit(), and
waits for the scope's oldest tasks where all tickets are in use.)";

constexpr const char* ordered_submit_doc =
    R"(Hands over one task. There is no Ticket: wait() waits for all of them.

args and options: as of Runtime.submit(). Raises what that raises; then nothing is submitted. Raises
ValueError for a procedure with `result` parameters: give it an array to write to.)";

constexpr const char* ordered_submit_sig =
    "def submit(self, procedure: Procedure, *args: object, "
    "locks: Mutex | Iterable[Mutex] = (), priority: int = 0, key: int = 0, grain: int = 0, "
    "task_timeout: float | None = None, max_attempts: int = 0) -> None";

constexpr const char* ordered_wait_doc = R"(Waits until all tasks submitted so far are complete.

timeout: seconds; None waits for ever, 0 polls. Raises what became of the first task that failed, in
the order of the submits, as Ticket.wait() does; its `failures` counts those that failed, and those
that did not run as they came after one. What is submitted afterwards runs, on memory as the failed
ones left it. TimeoutError when the time is over.)";

class ordered_object {
 public:
  explicit ordered_object(std::shared_ptr<session> s)
      : session_(std::move(s)), tasks_(std::make_unique<lev::ordered>(session_->runtime())) {}
  ~ordered_object() {
    const gil_released released;
    tasks_.reset();
  }
  ordered_object(ordered_object&&) = delete;

  void submit(const plan& p, nb::tuple values, const submit_options& asked) {
    const use one(*this);
    check_argument_count(p, values.size(), true);
    for (const slot& s : p.slots) {
      if (s.what == kind::result)
        raise_value_error("'" + p.name +
                          "' has a result, and an ordered task no Ticket that could give it: "
                          "declare the parameter as out, and pass an array");
    }
    const hold_guard held(make_hold(session_.get(), p, 1));
    descriptor task;
    task.procedure = p.id;
    task.argument_count = static_cast<std::uint8_t>(p.slots.size());
    pack_task(p, values, held.get(), 0, nullptr, task.arguments);
    std::optional<options> o;
    if (!asked.asks_nothing()) o = options_of(asked, session_.get());
    const std::uint64_t id = submit(p, task, o ? &*o : nullptr);
    if (id == 0 || held.get() == nullptr) return;
    lev::ticket seen(session_->state(), id);
    session_->keep_until_complete(seen, held.get());
    seen.forget();  // it is the scope's
  }

  void wait(nb::object timeout) {
    const use one(*this);
    const deadline end(timeout);
    const outcome o =
        wait_in_slices(end, [&](std::int64_t ns) { return tasks_->wait_outcome(ns); });
    session_->collect();
    if (o.code == status::timed_out) raise_status(o.code, "tasks are still waiting or running");
    if (o.code != status::ok)
      raise_status(o.code, "a task of the scope: " + what_failed(o), -1, o.task_code, o.failures);
  }

 private:
  // A call, which gives up the GIL.
  class use {
   public:
    explicit use(ordered_object& o) : of_(o) {
      of_.session_->runtime();  // raises in a forked child
      of_.session_->collect();
      if (of_.is_in_use_)
        throw nb::value_error("another thread uses this scope: give each thread its own");
      of_.is_in_use_ = true;
    }
    ~use() { of_.is_in_use_ = false; }
    use(use&&) = delete;

   private:
    ordered_object& of_;
  };

  std::uint64_t submit(const plan& p, const descriptor& task, const options* o) try {
    const gil_released released;
    return tasks_->submit_id(task, o);
  } catch (const error& e) {
    raise_refusal(p, e.code(), e.what(), e.argument(), true);
  }

  std::shared_ptr<session> session_;
  std::unique_ptr<lev::ordered> tasks_;
  bool is_in_use_ = false;  // with the GIL
};

void submit_ordered(ordered_object& self, nb::object procedure, nb::args args, nb::object locks,
                    nb::object priority, nb::object key, nb::object grain, nb::object task_timeout,
                    nb::object max_attempts) {
  const given_options given{nb::tuple(), locks, priority, key, grain, task_timeout, max_attempts};
  self.submit(procedure_in(procedure), args, given.read());
}

}  // namespace

void bind_ordered(nb::module_& m, nb::handle of_runtime) {
  nb::class_<ordered_object> c(m, "Ordered", ordered_doc);
  const nb::tuple none;
  c.def("submit", &submit_ordered, nb::arg("procedure"), nb::arg("args"),
        nb::arg("locks").none() = none, nb::arg("priority").none() = 0, nb::arg("key").none() = 0,
        nb::arg("grain").none() = 0, nb::arg("task_timeout") = nb::none(),
        nb::arg("max_attempts").none() = 0, nb::sig(ordered_submit_sig), ordered_submit_doc);
  bind_refusal<void>(c, "submit", 1, "locks, priority, key, grain, task_timeout, max_attempts");
  c.def("wait", &ordered_object::wait, nb::arg("timeout") = nb::none(),
        nb::sig("def wait(self, timeout: float | None = None) -> None"), ordered_wait_doc)
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Ordered"))
      .def(
          "__exit__",
          [](ordered_object& self, nb::args about) {
            try {
              self.wait(nb::none());
            } catch (nb::python_error& e) {
              // Else what has left the block is raised, but a Ctrl-C comes before it.
              const bool is_first = about.size() == 0 || about[0].is_none();
              if (is_first || !e.matches(PyExc_Exception)) throw;
            }
          },
          nb::arg("about"), nb::sig("def __exit__(self, *about: object) -> None"));
  const nb::object made = nb::cpp_function(
      [](runtime_object& r) {
        r.runtime();
        return std::make_unique<ordered_object>(r.owner());
      },
      nb::name("ordered"), nb::scope(of_runtime), nb::is_method(),
      nb::sig("def ordered(self) -> Ordered"),
      "A scope whose tasks are ordered by the memory that they declare.");
  nb::setattr(of_runtime, "ordered", made);
}

}  // namespace lev::python
