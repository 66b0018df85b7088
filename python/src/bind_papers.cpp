// Binds the rows of the papers' results and the constants that they rest on; leveret/papers.py
// gives them types.
#include <leveret/cell.hpp>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <leveret_papers/expected.hpp>
#include <leveret_papers/world.hpp>
#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace lev::python {

namespace nb = nanobind;

namespace {

nb::list rows() {
  nb::list all;
  for (const leveret_papers::expected_row& r : leveret_papers::expected_rows()) {
    nb::dict d;
    d["paper"] = r.paper;
    d["id"] = r.id;
    d["role"] = r.role;
    d["what"] = r.what;
    d["configuration"] = r.configuration;
    d["unit"] = r.unit;
    d["printed"] = r.printed;
    d["low"] = r.low;
    d["high"] = r.high;
    d["miss"] = r.miss;
    all.append(d);
  }
  return all;
}

// What `run` gives, without the GIL. An error of a simulated Cell becomes a ValueError: what was
// asked for is not there or not legal.
template <class Run>
auto simulated(Run&& run) {
  try {
    return without_gil(run);
  } catch (const lev::cell::error& e) {
    raise_value_error(e.what());
  }
}

nb::dict simulate(const std::string& id, const std::map<std::string, double>& changed,
                  bool is_full) {
  const leveret_papers::outcome o =
      simulated([&] { return leveret_papers::simulate_row(id, changed, is_full); });
  nb::dict d;
  d["value"] = o.value;
  d["failure"] = o.failure;
  d["seconds"] = o.seconds;
  d["events"] = o.events;
  d["hash"] = o.hash;
  d["read"] = o.read;
  return d;
}

nb::dict answer(const std::string& id) {
  const leveret_papers::leveret_answer a =
      simulated([&] { return leveret_papers::answer_by_leveret(id); });
  nb::dict d;
  d["value"] = a.value;
  d["free"] = a.free;
  d["dear"] = a.dear;
  d["why_not"] = a.why_not;
  d["is_unpriced"] = a.is_unpriced;
  return d;
}

nb::list figures() {
  nb::list all;
  for (const leveret_papers::figure& f : leveret_papers::all_figures()) {
    nb::dict d;
    d["paper"] = f.paper;
    d["id"] = f.id;
    d["title"] = f.title;
    d["x"] = f.x;
    d["y"] = f.y;
    all.append(d);
  }
  return all;
}

nb::dict look_at(const std::string& id) {
  const std::vector<leveret_papers::line_of_points> lines =
      simulated([&] { return leveret_papers::look_at_figure(id); });
  nb::dict found;
  for (const leveret_papers::line_of_points& l : lines) {
    nb::list points;
    for (const leveret_papers::point& p : l.points) points.append(nb::make_tuple(p.x, p.y));
    found[l.name.c_str()] = points;
  }
  return found;
}

nb::dict constant(const std::string& file, const std::string& name, double value,
                  const std::string& unit, const std::string& source, const std::string& from,
                  const std::string& calibrated_on) {
  nb::dict d;
  d["file"] = file;
  d["name"] = name;
  d["value"] = value;
  d["unit"] = unit;
  d["source"] = source;
  d["origin"] = from;
  d["calibrated_on"] = calibrated_on;
  return d;
}

nb::list constants() {
  nb::list all;
  for (const std::string& name : lev::cell::machine_file::names()) {
    const auto file = lev::cell::machine_file::named(name);
    for (const lev::cell::constant& c : file.constants())
      all.append(constant(name, c.name, c.value, c.unit, c.source, c.from, c.calibrated_on));
  }
  for (const auto& [name, c] : leveret_papers::built_in_costs())
    all.append(constant("costs", name, c.value, c.unit, c.source, c.from, c.calibrated_on));
  return all;
}

// A machine file that is built in.
std::string machine_file_text(nb::str name) {
  try {
    return lev::cell::machine_file::text_of(text_of(name));
  } catch (const lev::cell::error& e) {
    raise_value_error(e.what());
  }
}

}  // namespace

void bind_papers(nb::module_& m) {
  m.def("paper_rows", &rows, nb::sig("def paper_rows() -> list[PaperRowDict]"),
        "The rows of the papers' results, in order: what was printed, and the band.");
  m.def("paper_figures", &figures, nb::sig("def paper_figures() -> list[PaperFigureDict]"),
        "Figures like the papers': which there are.");
  m.def("paper_look", &look_at, nb::arg("id"),
        nb::sig("def paper_look(id: str) -> dict[str, list[tuple[float, float]]]"),
        "The lines of a figure, simulated.");
  m.def(
      "paper_simulate", &simulate, nb::arg("id"), nb::arg("changed"), nb::arg("full"),
      nb::sig("def paper_simulate(id: str, changed: dict[str, float], full: bool) -> "
              "PaperOutcomeDict"),
      "One row by the paper's own algorithm on the simulated Cell. Constants that `changed` names\n"
      "are replaced. Its value is not a number, and `failure` says why, when it did not end.\n"
      "ValueError for a row or a constant that is not there.");
  m.def("paper_answer", &answer, nb::arg("id"),
        nb::sig("def paper_answer(id: str) -> PaperAnswerDict"),
        "One row by Leveret's own pipeline on the simulated Cell, or why there is none.\n"
        "ValueError for a row that is not there.");
  m.def("paper_constants", &constants, nb::sig("def paper_constants() -> list[PaperConstantDict]"),
        "The constants of the machine files that are built in and the costs of the papers' "
        "software.");
  m.def("machine_file_text", &machine_file_text, nb::arg("name"),
        nb::sig("def machine_file_text(name: str) -> str"),
        "A machine file that is built in, to be copied and changed. ValueError for another name.");
}

}  // namespace lev::python
