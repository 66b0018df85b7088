// Machines and costs of rows, and what was read of them; see world.hpp.
#include <leveret_papers/world.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/toml.hpp"

namespace leveret_papers {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw cell::error(cell::error_kind::bad_machine, what);
}

void check_value(const std::string& name, double value, const std::string& file) {
  if (!(value > 0) || std::isinf(value)) refuse(file + ": " + name + " must be above 0");
}

void check(const std::string& name, const cost& c, const std::string& file) {
  check_value(name, c.value, file);
  if (c.unit.empty()) refuse(file + ": " + name + " has no unit");
  if (c.source != "published" && c.source != "derived" && c.source != "measured" &&
      c.source != "assumed")
    refuse(file + ": " + name + " must be published, derived, measured or assumed");
  if (c.from.empty()) refuse(file + ": " + name + " has no from");
}

}  // namespace

std::map<std::string, cost> read_costs(std::string_view text, const std::string& file) {
  std::map<std::string, cost> costs;
  for (const lev::toml_entry& e : lev::read_toml(text)) {
    if (e.path.size() != 3) refuse(file + ": " + e.path[0] + ": each cost is a table of its own");
    cost& c = costs[e.path[0] + "." + e.path[1]];
    const std::string& key = e.path[2];
    if (key == "value")
      c.value = e.number;
    else if (key == "unit")
      c.unit = e.text;
    else if (key == "source")
      c.source = e.text;
    else if (key == "from")
      c.from = e.text;
    else if (key == "calibrated_on")
      c.calibrated_on = e.text;
    else
      refuse(file + ": " + e.path[0] + "." + e.path[1] + " has no '" + key + "'");
  }
  for (const auto& [name, c] : costs) check(name, c, file);
  return costs;
}

const std::map<std::string, cost>& built_in_costs() {
  static const std::map<std::string, cost> costs = read_costs(costs_text(), "costs.toml");
  return costs;
}

// Rows ask for some of what was changed, if for any: the rest is looked at here.
world::world(std::map<std::string, double> changed, bool is_full)
    : changed_(std::move(changed)), is_full_(is_full) {
  for (const auto& [name, value] : changed_)
    if (built_in_costs().contains(name)) check_value(name, value, "costs.toml");
  check_machines();
}

// All files have the same names and bounds. Whether several numbers fit together depends on the
// file, and a row without one has none: one that takes them all is enough.
void world::check_machines() const {
  if (changed_.empty()) return;
  std::string refusal;
  for (const std::string& name : cell::machine_file::names()) {
    try {
      (void)file(name);
      return;
    } catch (const cell::error& e) {
      if (refusal.empty()) refusal = e.what();
    }
  }
  refuse(refusal);
}

cell::machine_file world::file(const std::string& name) const {
  cell::machine_file f = cell::machine_file::named(name);
  for (const auto& [constant, value] : changed_)
    if (!built_in_costs().contains(constant)) f = f.with(constant, value);
  return f;
}

double world::constant(const cell::machine_file& f, const char* name) {
  if (std::find(constants_.begin(), constants_.end(), name) == constants_.end()) {
    read_.insert(name);
    constants_.push_back(name);
  }
  return f.value(name);
}

cell::options world::options(bool poison) {
  cell::options o;
  o.poison = poison;
  o.progress_max = std::chrono::seconds(1);
  return o;
}

cell::report world::run(cell::machine& m) {
  const cell::report r = m.run();
  for (const std::string& name : m.constants_read()) read_.insert(name);
  events_ += r.events;
  hash_ = hash_ * 31 + r.hash;
  return r;
}

// Programs ask at each step of theirs, by names that they have as literals.
double world::number(const char* name) {
  const auto known = std::find_if(numbers_.begin(), numbers_.end(),
                                  [&](const auto& each) { return each.first == name; });
  if (known != numbers_.end()) return known->second;
  const double value = look_up(name);
  numbers_.emplace_back(name, value);
  return value;
}

double world::look_up(const std::string& name) {
  const auto found = built_in_costs().find(name);
  if (found == built_in_costs().end()) refuse("costs.toml has no " + name);
  read_.insert(name);
  const auto change = changed_.find(name);
  return change == changed_.end() ? found->second.value : change->second;
}

cycles world::cost_of(const char* name) {
  return cycles(static_cast<std::int64_t>(std::llround(number(name))));
}

virtual_time world::time_of(const char* name) {
  return virtual_time(static_cast<std::int64_t>(std::llround(number(name) * 1e9)));
}

namespace {

std::array<std::span<const row>, 5> papers_of_rows() {
  return {jack_rabbit_rows(), cellmt_rows(), tpc_rows(), gcell_rows(), sled_rows()};
}

}  // namespace

std::vector<row> all_rows() {
  std::vector<row> all;
  for (const auto rows : papers_of_rows()) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

std::vector<figure> all_figures() {
  std::vector<figure> all;
  for (const auto some :
       {jack_rabbit_figures(), cellmt_figures(), tpc_figures(), gcell_figures(), sled_figures()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::vector<line_of_points> look_at_figure(const std::string& id) {
  std::vector<std::string> names;
  for (const figure& f : all_figures()) {
    names.emplace_back(f.id);
    if (id != f.id) continue;
    world w;
    return f.look(w);
  }
  const std::string near = lev::nearest_name(id, names);
  throw cell::error(
      cell::error_kind::bad_call,
      "there is no figure '" + id + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

const row* find_row(const std::string& id) {
  for (const auto rows : papers_of_rows())
    for (const row& r : rows)
      if (id == r.id) return &r;
  return nullptr;
}

}  // namespace leveret_papers
