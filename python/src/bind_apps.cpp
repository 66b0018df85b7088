// Binds the applications' run functions; leveret/apps.py gives them types and defaults.
#include <leveret_apps/aes.hpp>
#include <leveret_apps/barnes_hut.hpp>
#include <leveret_apps/list_ranking.hpp>
#include <leveret_apps/lu.hpp>
#include <leveret_apps/mandelbrot.hpp>

#include "bindings.hpp"
#include "buffers.hpp"
#include "runtime_object.hpp"

namespace lev::python {

namespace {

template <class T>
T get(nb::kwargs options, const char* name) {
  return nb::cast<T>(nb::object(options[name]));
}

template <class Run>
auto without_gil(Run&& run) {
  const nb::gil_scoped_release released;
  return run();
}

// What every application reports.
template <class Report>
nb::dict outcome_of(const Report& report) {
  nb::dict d;
  d["seconds"] = report.seconds;
  d["serial_seconds"] = report.serial_seconds;
  d["error"] = report.error;
  d["correct"] = report.correct;
  return d;
}

leveret_apps::mandelbrot_view view_of(nb::kwargs o) {
  leveret_apps::mandelbrot_view v;
  v.width = get<std::uint32_t>(o, "width");
  v.height = get<std::uint32_t>(o, "height");
  v.iterations = get<std::uint32_t>(o, "iterations");
  return v;
}

nb::dict run_mandelbrot(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::mandelbrot_options options;
  options.view = view_of(o);
  options.tasks = get<unsigned>(o, "tasks");
  options.dice = get<bool>(o, "dice");
  options.frames = get<unsigned>(o, "frames");
  options.check = get<bool>(o, "check");
  lev::runtime& r = runtime.runtime();
  const auto report = without_gil([&] { return leveret_apps::run_mandelbrot(r, options); });
  nb::dict d = outcome_of(report);
  d["iterations"] = report.iterations;
  d["pieces"] = report.pieces;
  return d;
}

// The picture into `counts`, which is (height, width) of u2. Without a runtime, by the serial
// reference.
void draw_mandelbrot(runtime_object* runtime, nb::object counts, nb::kwargs o) {
  const slot declared{kind::out, {'u', 2}, "out u2"};
  const place where{0, &declared};
  const leveret_apps::mandelbrot_view view = view_of(o);
  hold* h = new hold(nullptr, 1);
  const hold_guard guard(h);
  const extent e = whole_extent(h->open(counts, where));
  const argument a = memory_argument(e, false, where);
  if (a.row_bytes * a.rows != std::uint64_t{2} * view.width * view.height)
    refuse_argument(PyExc_ValueError, where, "counts must have the shape (height, width)");
  auto* pixels = reinterpret_cast<std::uint16_t*>(e.data);
  if (runtime == nullptr) {
    const nb::gil_scoped_release released;
    return leveret_apps::mandelbrot_serial(view, pixels);
  }
  const unsigned tasks = get<unsigned>(o, "tasks");
  const bool dice = get<bool>(o, "dice");
  lev::runtime& r = runtime->runtime();
  const nb::gil_scoped_release released;
  leveret_apps::mandelbrot(r, view, tasks, dice, pixels);
}

nb::dict run_lu(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::lu_options options;
  options.n = get<std::size_t>(o, "n");
  options.double_precision = get<bool>(o, "double_precision");
  options.seed = get<std::uint64_t>(o, "seed");
  options.check = get<bool>(o, "check");
  options.variant =
      get<bool>(o, "blocks") ? leveret_apps::lu_variant::blocks : leveret_apps::lu_variant::columns;
  options.columns.columns_per_task = get<unsigned>(o, "columns_per_task");
  options.columns.dice = get<bool>(o, "dice");
  options.blocks.block = get<unsigned>(o, "block");
  options.blocks.schedule = get<bool>(o, "dependencies") ? leveret_apps::lu_schedule::dependencies
                                                         : leveret_apps::lu_schedule::phases;
  lev::runtime& r = runtime.runtime();
  const auto report = without_gil([&] { return leveret_apps::run_lu(r, options); });
  nb::dict d = outcome_of(report);
  d["tasks"] = report.tasks;
  return d;
}

nb::dict run_barnes_hut(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::barnes_hut_options options;
  options.bodies = get<std::size_t>(o, "bodies");
  options.steps = get<unsigned>(o, "steps");
  options.theta = get<double>(o, "theta");
  options.set_bodies = get<unsigned>(o, "set_bodies");
  options.dice = get<bool>(o, "dice");
  options.seed = get<std::uint64_t>(o, "seed");
  options.check = get<bool>(o, "check");
  lev::runtime& r = runtime.runtime();
  const auto report = without_gil([&] { return leveret_apps::run_barnes_hut(r, options); });
  nb::dict d = outcome_of(report);
  d["energy_drift"] = report.energy_drift;
  d["tasks"] = report.tasks;
  return d;
}

nb::dict run_aes(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::aes_options options;
  options.bytes = get<std::size_t>(o, "n");
  if (get<bool>(o, "ecb")) options.mode = leveret_apps::aes_mode::ecb;
  if (get<bool>(o, "far")) options.form = leveret_apps::aes_form::far;
  if (get<bool>(o, "openssl")) options.kernel = leveret_apps::aes_kernel::openssl;
  options.tasks = get<unsigned>(o, "tasks");
  options.chunk_bytes = get<unsigned>(o, "chunk_bytes");
  options.buffers = get<unsigned>(o, "buffers");
  options.dice = get<bool>(o, "dice");
  options.seed = get<std::uint64_t>(o, "seed");
  options.check = get<bool>(o, "check");
  lev::runtime& r = runtime.runtime();
  const auto report = without_gil([&] { return leveret_apps::run_aes(r, options); });
  nb::dict d = outcome_of(report);
  d["tasks"] = report.tasks;
  return d;
}

nb::dict run_list_ranking(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::list_ranking_options options;
  options.nodes = get<std::size_t>(o, "nodes");
  options.lists = get<std::size_t>(o, "lists");
  options.tasks = get<unsigned>(o, "tasks");
  options.cuts = get<unsigned>(o, "cuts");
  options.dice = get<bool>(o, "dice");
  options.seed = get<std::uint64_t>(o, "seed");
  options.check = get<bool>(o, "check");
  lev::runtime& r = runtime.runtime();
  const auto report = without_gil([&] { return leveret_apps::run_list_ranking(r, options); });
  nb::dict d = outcome_of(report);
  d["sublists"] = report.sublists;
  d["tasks"] = report.tasks;
  return d;
}

}  // namespace

void bind_apps(nb::module_& m) {
  m.def("run_mandelbrot", &run_mandelbrot, nb::arg("runtime"), nb::arg("options"));
  m.def("draw_mandelbrot", &draw_mandelbrot, nb::arg("runtime").none(), nb::arg("counts"),
        nb::arg("options"));
  m.def("run_lu", &run_lu, nb::arg("runtime"), nb::arg("options"));
  m.def("run_barnes_hut", &run_barnes_hut, nb::arg("runtime"), nb::arg("options"));
  m.def("run_aes", &run_aes, nb::arg("runtime"), nb::arg("options"));
  m.def("run_list_ranking", &run_list_ranking, nb::arg("runtime"), nb::arg("options"));
}

}  // namespace lev::python
