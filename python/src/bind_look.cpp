// Binds looking at the worker processes of other programs; leveret/cli/top.py shows it.
#include <leveret/look.hpp>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace lev::python {

namespace {

nb::dict facts_of(const seen_worker& worker) {
  nb::dict d;
  d["pid"] = worker.pid;
  d["deaths"] = worker.deaths;
  d["posted"] = worker.posted;
  d["done"] = worker.done;
  d["waiting"] = worker.waiting;
  d["attempt"] = worker.attempt;
  d["procedure"] = python_text(worker.procedure);
  d["died_in"] = python_text(worker.died_in);
  return d;
}

nb::list look(int pid) {
  const std::vector<seen_pool> pools = without_gil([pid] { return look_at_pools(pid); });
  nb::list all;
  for (const seen_pool& pool : pools) {
    nb::list workers;
    for (const seen_worker& worker : pool.workers) workers.append(facts_of(worker));
    nb::dict d;
    d["pid"] = pool.pid;
    d["program"] = python_text(pool.program);
    d["workers"] = workers;
    all.append(d);
  }
  return all;
}

}  // namespace

void bind_look(nb::module_& m) {
  m.def("look_at_pools", &look, nb::arg("pid") = 0,
        nb::sig("def look_at_pools(pid: int = 0) -> list[leveret.records.SeenPool]"),
        "The open runtimes on `processes`: of one process, or of all of this user.");
}

}  // namespace lev::python
