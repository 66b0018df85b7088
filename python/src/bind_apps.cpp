// Binds the applications' run functions; leveret/apps.py gives them types and defaults.
#include <nanobind/ndarray.h>
#include <leveret_apps/aes.hpp>
#include <leveret_apps/barnes_hut.hpp>
#include <leveret_apps/fft.hpp>
#include <leveret_apps/likelihood.hpp>
#include <leveret_apps/list_ranking.hpp>
#include <leveret_apps/lu.hpp>
#include <leveret_apps/mandelbrot.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <typeinfo>

#include "bindings.hpp"
#include "buffers.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "runtime_object.hpp"

namespace lev::python {

namespace {

template <class T>
std::string values_of() {
  if (std::is_same_v<T, bool>) return "True or False";
  if (std::is_floating_point_v<T>) return "a number";
  return "an integer from 0 to " + std::to_string(std::numeric_limits<T>::max());
}

// Of what is no T nanobind says no more than std::bad_cast.
template <class T>
T get(nb::kwargs options, const char* name) {
  const nb::object given(options[name]);
  try {
    return nb::cast<T>(given);
  } catch (const std::bad_cast&) {
  }
  const std::string text =
      std::string(name) + " must be " + values_of<T>() + ", not " + nb::repr(given).c_str();
  if (PyLong_Check(given.ptr()) != 0) raise_value_error(text);
  raise_type_error(text);
}

// Runs an application, and gives what its report says.
template <auto Run, class Options>
nb::dict run_app(runtime_object& runtime, const Options& options) {
  lev::runtime& r = runtime.runtime();
  const auto report = without_gil([&] { return Run(r, options); });
  nb::dict d;
  d["seconds"] = report.seconds;
  d["serial_seconds"] = report.serial_seconds;
  d["error"] = report.error;
  d["correct"] = report.correct;
  if constexpr (requires { report.tasks; }) d["tasks"] = report.tasks;
  if constexpr (requires { report.iterations; }) d["iterations"] = report.iterations;
  if constexpr (requires { report.pieces; }) d["pieces"] = report.pieces;
  if constexpr (requires { report.energy_drift; }) d["energy_drift"] = report.energy_drift;
  if constexpr (requires { report.log_likelihood; }) d["log_likelihood"] = report.log_likelihood;
  if constexpr (requires { report.sublists; }) d["sublists"] = report.sublists;
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
  return run_app<&leveret_apps::run_mandelbrot>(runtime, options);
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
    const gil_released released;
    return leveret_apps::mandelbrot_serial(view, pixels);
  }
  const unsigned tasks = get<unsigned>(o, "tasks");
  const bool dice = get<bool>(o, "dice");
  lev::runtime& r = runtime->runtime();
  const gil_released released;
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
  return run_app<&leveret_apps::run_lu>(runtime, options);
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
  return run_app<&leveret_apps::run_barnes_hut>(runtime, options);
}

leveret_apps::likelihood_options likelihood_data_of(nb::kwargs o) {
  leveret_apps::likelihood_options options;
  options.species = get<unsigned>(o, "species");
  options.sites = get<std::size_t>(o, "sites");
  options.seed = get<std::uint64_t>(o, "seed");
  if (get<bool>(o, "jukes_cantor")) options.model = leveret_apps::jukes_cantor(options.model.alpha);
  return options;
}

nb::dict run_likelihood(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::likelihood_options options = likelihood_data_of(o);
  options.tasks = get<unsigned>(o, "tasks");
  options.dice = get<bool>(o, "dice");
  options.steps = get<unsigned>(o, "steps");
  options.check = get<bool>(o, "check");
  if (!get<bool>(o, "dependencies")) options.schedule = leveret_apps::likelihood_schedule::phases;
  return run_app<&leveret_apps::run_likelihood>(runtime, options);
}

template <class T, class... Shape>
using array_of = nb::ndarray<T, nb::c_contig, nb::device::cpu, Shape...>;
using states_array = array_of<std::uint8_t, nb::ndim<2>>;
using children_array = array_of<std::uint32_t, nb::shape<-1, 2>>;
using lengths_array = array_of<double, nb::shape<-1, 2>>;

// Fills arrays of the right shapes: states (species, sites), the others (species - 1, 2).
void make_likelihood(states_array states, children_array children, lengths_array lengths,
                     nb::kwargs o) {
  const auto options = likelihood_data_of(o);
  leveret_apps::phylogeny tree;
  leveret_apps::alignment dna;
  without_gil([&] { leveret_apps::likelihood_make(options, &tree, &dna); });
  if (states.size() != dna.states.size() || children.size() != 2 * tree.inner.size() ||
      lengths.size() != children.size()) {
    throw nb::value_error("states must be (species, sites); children, lengths (species - 1, 2)");
  }
  std::copy(dna.states.begin(), dna.states.end(), states.data());
  for (std::size_t i = 0; i < children.size(); ++i) {
    children.data()[i] = tree.inner[i / 2].child[i % 2];
    lengths.data()[i] = tree.inner[i / 2].length[i % 2];
  }
}

// Logarithms of the sites into `logs`, by tasks, or serially without a runtime.
void likelihood_logs(runtime_object* runtime, array_of<const std::uint8_t, nb::ndim<2>> states,
                     array_of<const std::uint32_t, nb::shape<-1, 2>> children,
                     array_of<const double, nb::shape<-1, 2>> lengths,
                     array_of<const double, nb::shape<11>> model,
                     array_of<double, nb::ndim<1>> logs, unsigned tasks, bool dice) {
  if (children.size() != lengths.size() || logs.shape(0) != states.shape(1)) {
    throw nb::value_error("children and lengths must have the same shape, logs one for each site");
  }
  leveret_apps::substitution_model m;
  std::copy(model.data(), model.data() + 6, m.exchange);
  std::copy(model.data() + 6, model.data() + 10, m.frequency);
  m.alpha = model.data()[10];
  leveret_apps::alignment dna{states.shape(1), {states.data(), states.data() + states.size()}};
  leveret_apps::phylogeny tree;
  tree.species = static_cast<std::uint32_t>(states.shape(0));
  for (std::size_t i = 0; i < children.size(); i += 2) {
    tree.inner.push_back(
        {{children.data()[i], children.data()[i + 1]}, {lengths.data()[i], lengths.data()[i + 1]}});
  }
  lev::runtime* r = runtime == nullptr ? nullptr : &runtime->runtime();
  without_gil([&] {
    leveret_apps::likelihood_evaluation evaluation(m, tree, dna);
    if (r == nullptr) {
      evaluation.serially(tree);
    } else {
      leveret_apps::likelihood_options options;
      options.tasks = tasks;
      options.dice = dice;
      evaluation.with_tasks(*r, tree, options);
    }
    std::copy(evaluation.site_logs(), evaluation.site_logs() + dna.sites, logs.data());
  });
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
  return run_app<&leveret_apps::run_aes>(runtime, options);
}

// fft, saxpy, sgemv and conv2d: `run` is one of the four.
template <auto Run>
nb::dict run_arrays(runtime_object& runtime, nb::kwargs o) {
  leveret_apps::array_options options;
  options.n = get<std::size_t>(o, "n");
  options.cut.tasks = get<unsigned>(o, "tasks");
  options.cut.dice = get<bool>(o, "dice");
  options.steps = get<unsigned>(o, "steps");
  options.seed = get<std::uint64_t>(o, "seed");
  options.check = get<bool>(o, "check");
  return run_app<Run>(runtime, options);
}

using floats_in = array_of<const float, nb::ndim<1>>;
using floats_out = array_of<float, nb::ndim<1>>;
using matrix_in = array_of<const float, nb::ndim<2>>;

leveret_apps::array_cut cut_of(nb::kwargs o) {
  return {get<unsigned>(o, "tasks"), get<bool>(o, "dice")};
}

// The arrays of the next four have shapes that fit: leveret/array_apps.py sees to it.
void array_saxpy(runtime_object& runtime, float a, floats_in x, floats_out y, nb::kwargs o) {
  lev::runtime& r = runtime.runtime();
  const auto cut = cut_of(o);
  without_gil([&] { leveret_apps::saxpy(r, cut, x.size(), a, x.data(), y.data()); });
}

void array_sgemv(runtime_object& runtime, matrix_in matrix, floats_in x, floats_out y,
                 nb::kwargs o) {
  lev::runtime& r = runtime.runtime();
  const auto cut = cut_of(o);
  without_gil([&] {
    leveret_apps::sgemv(r, cut, matrix.shape(0), matrix.shape(1), matrix.data(), x.data(),
                        y.data());
  });
}

void array_conv2d(runtime_object& runtime, matrix_in picture, matrix_in weights,
                  array_of<float, nb::ndim<2>> to) {
  lev::runtime& r = runtime.runtime();
  without_gil([&] {
    leveret_apps::conv2d(r, picture.shape(0), picture.shape(1), weights.shape(0), picture.data(),
                         weights.data(), to.data());
  });
}

void array_fft(runtime_object& runtime, array_of<float, nb::shape<-1, 2>> points, nb::kwargs o) {
  lev::runtime& r = runtime.runtime();
  const auto cut = cut_of(o);
  auto* const all = reinterpret_cast<leveret_apps::complex_float*>(points.data());
  without_gil([&] { leveret_apps::fft(r, cut, points.shape(0), all); });
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
  return run_app<&leveret_apps::run_list_ranking>(runtime, options);
}

}  // namespace

void bind_apps(nb::module_& m) {
  const auto def_run = [&m](const char* name, nb::dict (*run)(runtime_object&, nb::kwargs)) {
    m.def(name, run, nb::arg("runtime"), nb::arg("options"));
  };
  def_run("run_mandelbrot", &run_mandelbrot);
  def_run("run_lu", &run_lu);
  def_run("run_barnes_hut", &run_barnes_hut);
  def_run("run_likelihood", &run_likelihood);
  def_run("run_aes", &run_aes);
  def_run("run_fft", &run_arrays<&leveret_apps::run_fft>);
  def_run("run_saxpy", &run_arrays<&leveret_apps::run_saxpy>);
  def_run("run_sgemv", &run_arrays<&leveret_apps::run_sgemv>);
  def_run("run_conv2d", &run_arrays<&leveret_apps::run_conv2d>);
  def_run("run_list_ranking", &run_list_ranking);
  m.def("draw_mandelbrot", &draw_mandelbrot, nb::arg("runtime").none(), nb::arg("counts"),
        nb::arg("options"));
  m.def("make_likelihood", &make_likelihood, nb::arg("states"), nb::arg("children"),
        nb::arg("lengths"), nb::arg("options"));
  m.def("likelihood_logs", &likelihood_logs, nb::arg("runtime").none(), nb::arg("states"),
        nb::arg("children"), nb::arg("lengths"), nb::arg("model"), nb::arg("logs"),
        nb::arg("tasks"), nb::arg("dice"));
  m.def("array_saxpy", &array_saxpy, nb::arg("runtime"), nb::arg("a"), nb::arg("x"), nb::arg("y"),
        nb::arg("options"));
  m.def("array_sgemv", &array_sgemv, nb::arg("runtime"), nb::arg("matrix"), nb::arg("x"),
        nb::arg("y"), nb::arg("options"));
  m.def("array_conv2d", &array_conv2d, nb::arg("runtime"), nb::arg("picture"), nb::arg("weights"),
        nb::arg("to"));
  m.def("array_fft", &array_fft, nb::arg("runtime"), nb::arg("points"), nb::arg("options"));
}

}  // namespace lev::python
