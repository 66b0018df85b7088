// Binds Ordered: a scope whose tasks are ordered by the memory that they declare.
#include <nanobind/stl/unique_ptr.h>

#include <leveret/ordered.hpp>

#include "bindings.hpp"
#include "calls.hpp"
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

constexpr const char* submit_doc =
    R"(Hands over one task. There is no Ticket: wait() waits for all of them.

args: as of Runtime.submit(). Raises what that raises; then nothing is submitted. Raises ValueError
for a procedure with `result` parameters: give it an array to write to.)";

constexpr const char* wait_doc = R"(Waits until all tasks submitted so far are complete.

timeout: seconds; None waits for ever, 0 polls. Raises what became of the first task that failed, in
the order of the submits, as Ticket.wait() does; its `failures` counts those that failed, and those
that did not run as they came after one. TimeoutError when the time is over.)";

class ordered_object {
 public:
  explicit ordered_object(std::shared_ptr<session> s)
      : session_(std::move(s)), tasks_(std::make_unique<lev::ordered>(session_->runtime())) {}
  ~ordered_object() {
    const nb::gil_scoped_release released;
    tasks_.reset();
  }
  ordered_object(const ordered_object&) = delete;
  ordered_object& operator=(const ordered_object&) = delete;

  void submit(const plan& p, nb::tuple values) {
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
    const std::uint64_t id = submit(p, task);
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
    if (o.code != status::ok) raise_status(o.code, text_of_failure(o), -1, o.task_code, o.failures);
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
    use(const use&) = delete;
    use& operator=(const use&) = delete;

   private:
    ordered_object& of_;
  };

  std::uint64_t submit(const plan& p, const descriptor& task) {
    status code = status::ok;
    int argument = -1;
    std::string message;
    {
      const nb::gil_scoped_release released;
      try {
        return tasks_->submit_id(task, nullptr);
      } catch (const error& e) {
        code = e.code();
        argument = e.argument();
        message = e.what();
      }
    }
    raise_status(code, in_python(message), position_of(p, argument, true));
  }

  static std::string text_of_failure(const outcome& o) {
    std::string text = "a task of the scope: ";
    text += o.task_code != 0 ? "returned " + std::to_string(o.task_code) : status_name(o.code);
    if (o.failures > 1) text += " (the first of " + std::to_string(o.failures) + " that failed)";
    return text;
  }

  std::shared_ptr<session> session_;
  std::unique_ptr<lev::ordered> tasks_;
  bool is_in_use_ = false;  // with the GIL
};

}  // namespace

void bind_ordered(nb::module_& m, nb::handle of_runtime) {
  nb::class_<ordered_object>(m, "Ordered", ordered_doc)
      .def(
          "submit",
          [](ordered_object& self, nb::object procedure, nb::args args) {
            self.submit(procedure_in(procedure), args);
          },
          nb::arg("procedure"), nb::arg("args"),
          nb::sig("def submit(self, procedure: Procedure, *args: object) -> None"), submit_doc)
      .def("wait", &ordered_object::wait, nb::arg("timeout") = nb::none(),
           nb::sig("def wait(self, timeout: float | None = None) -> None"), wait_doc)
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
