// The reader of expected.toml, and the run of one row; see expected.hpp.
#include <leveret_papers/expected.hpp>

#include <chrono>
#include <limits>
#include <set>

#include <leveret_papers/world.hpp>
#include "base/toml.hpp"

namespace leveret_papers {

namespace {

const std::set<std::string> roles{"prediction", "calibration", "exact", "shape", "conflict"};

[[noreturn]] void refuse(const std::string& paper, const std::string& what) {
  throw cell::error(cell::error_kind::bad_machine, paper + "/expected.toml: " + what);
}

void take(expected_row& r, const lev::toml_entry& e) {
  const std::string& key = e.path[1];
  if (key == "role")
    r.role = e.text;
  else if (key == "what")
    r.what = e.text;
  else if (key == "configuration")
    r.configuration = e.text;
  else if (key == "unit")
    r.unit = e.text;
  else if (key == "miss")
    r.miss = e.text;
  else if (key == "printed")
    r.printed = e.number;
  else if (key == "band" && e.path.size() == 3)
    (e.path[2] == "0" ? r.low : r.high) = e.number;
  else
    refuse(r.paper, "line " + std::to_string(e.line) + ": unknown name '" + key + "'");
}

void check(const expected_row& r) {
  if (!roles.contains(r.role)) refuse(r.paper, r.id + " has the role '" + r.role + "'");
  if (r.what.empty() || r.configuration.empty() || r.unit.empty())
    refuse(r.paper, r.id + " needs what, configuration and unit");
  if (!(r.low <= r.high)) refuse(r.paper, r.id + " has an empty band");
  if (find_row(r.id) == nullptr) refuse(r.paper, r.id + " has no function");
}

}  // namespace

std::vector<expected_row> read_expected(std::string_view text, const std::string& paper) {
  std::vector<expected_row> rows;
  for (const lev::toml_entry& e : lev::read_toml(text)) {
    if (e.path.size() < 2) refuse(paper, "line " + std::to_string(e.line) + ": outside of a row");
    if (rows.empty() || rows.back().id != e.path[0]) {
      rows.emplace_back();
      rows.back().paper = paper;
      rows.back().id = e.path[0];
    }
    take(rows.back(), e);
  }
  for (const expected_row& r : rows) check(r);
  return rows;
}

const std::vector<expected_row>& expected_rows() {
  static const std::vector<expected_row> all = [] {
    std::vector<expected_row> rows;
    for (const expected_text& t : expected_texts())
      for (expected_row& r : read_expected(t.text, t.paper)) rows.push_back(std::move(r));
    return rows;
  }();
  return all;
}

namespace {

bool has_not_ended(cell::error_kind kind) {
  return kind == cell::error_kind::deadlock || kind == cell::error_kind::no_progress ||
         kind == cell::error_kind::time_over;
}

}  // namespace

const row& row_of(const std::string& id) {
  if (const row* r = find_row(id)) return *r;
  std::vector<std::string> names;
  for (const row& each : all_rows()) names.emplace_back(each.id);
  const std::string near = lev::nearest_name(id, names);
  throw cell::error(
      cell::error_kind::bad_call,
      "there is no row '" + id + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

outcome simulate_row(const std::string& id, const std::map<std::string, double>& changed,
                     bool is_full) {
  const row& r = row_of(id);
  const auto begin = std::chrono::steady_clock::now();
  world w(changed, is_full);
  outcome o;
  try {
    o.value = r.simulate(w);
  } catch (const cell::error& e) {
    if (!has_not_ended(e.kind)) throw;
    o.value = std::numeric_limits<double>::quiet_NaN();
    o.failure = e.what();
  }
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  o.events = w.events();
  o.hash = w.hash();
  o.read.assign(w.read().begin(), w.read().end());
  return o;
}

}  // namespace leveret_papers
