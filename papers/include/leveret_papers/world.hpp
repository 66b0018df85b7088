// What a row of a paper's results is simulated with: machines, the costs of the papers' software,
// and the record of what was read.
//
// A row is a function of a world. It asks for machines and costs by name, runs programs on them,
// and returns one number: what the paper printed, simulated. Rows that hold or do not return 1 or
// 0.
#pragma once

#include <leveret/cell.hpp>

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leveret_papers {

namespace cell = lev::cell;
using lev::cycles;
using lev::virtual_time;

// One constant of costs.toml: how long a step of a paper's own software takes.
struct cost {
  double value = 0;
  std::string unit;
  std::string source;
  std::string from;
  std::string calibrated_on;
};
// By name, as "tpc.detect". Throws cell::error (bad_machine) when the text is not of this form.
std::map<std::string, cost> read_costs(std::string_view text, const std::string& file);
const std::map<std::string, cost>& built_in_costs();

class world {
 public:
  // `changed` replaces constants of machine files and costs by name, for studies of sensitivity.
  // is_full: no outer steps of LU stand for more of them; 4096 columns take minutes then. Throws
  // cell::error (bad_machine) for a name that is neither, a cost that is not above 0, and what no
  // machine file takes.
  explicit world(std::map<std::string, double> changed = {}, bool is_full = false);

  bool is_full() const { return is_full_; }
  // Whether Leveret runs the tasks in place of the paper's own algorithm; and how many times the
  // price of its own work it pays.
  bool is_by_leveret() const { return is_by_leveret_; }
  double own_work() const { return own_work_; }
  void take_leveret(double own_work) {
    is_by_leveret_ = true;
    own_work_ = own_work;
  }

  // A constant of a machine; noted as read. A name is known by its address: it is a literal, here
  // and below.
  double constant(const cell::machine_file& f, const char* name);
  // A machine file that is built in, with the changes.
  cell::machine_file file(const std::string& name) const;
  // For a machine: programs that do not get on for a second, as ever looking for what never comes,
  // end with an error that names them.
  static cell::options options(bool poison = true);
  // Runs the programs of a machine; remembers what it read.
  cell::report run(cell::machine& m);
  // The same of a run of Leveret's, which is over: the hash of its turns.
  void note_run(std::uint64_t hash) { hash_ = hash_ * 31 + hash; }

  double number(const char* name);
  cycles cost_of(const char* name);        // of one in cycles
  virtual_time time_of(const char* name);  // of one in us

  const std::set<std::string>& read() const { return read_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t hash() const { return hash_; }

 private:
  void check_machines() const;
  double look_up(const std::string& name);

  std::map<std::string, double> changed_;
  bool is_full_;
  bool is_by_leveret_ = false;
  double own_work_ = 1;
  std::set<std::string> read_;
  std::vector<std::pair<const char*, double>> numbers_;  // that were asked for
  std::vector<const char*> constants_;                   // of machines, that were asked for
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 0;
};

struct row {
  const char* id;
  double (*simulate)(world&);
};

// A figure like one of a paper's: lines over x. `look` simulates them.
struct point {
  double x = 0;
  double y = 0;
};
struct line_of_points {
  std::string name;
  std::vector<point> points;
};
struct figure {
  const char* paper;
  const char* id;  // as "S1 figure 4"
  const char* title;
  const char* x;
  const char* y;
  std::vector<line_of_points> (*look)(world&);
};

std::span<const row> jack_rabbit_rows();
std::span<const row> cellmt_rows();
std::span<const row> tpc_rows();
std::span<const row> gcell_rows();
std::span<const row> sled_rows();

std::span<const figure> jack_rabbit_figures();
std::span<const figure> cellmt_figures();
std::span<const figure> tpc_figures();
std::span<const figure> gcell_figures();
std::span<const figure> sled_figures();
// All of them. Throws cell::error (bad_call) for a figure that is not there.
std::vector<figure> all_figures();
std::vector<line_of_points> look_at_figure(const std::string& id);

// All rows, in the order of the papers' tables; null when there is none of that name.
std::vector<row> all_rows();
const row* find_row(const std::string& id);
// The same; throws cell::error (bad_call) with the nearest name.
const row& row_of(const std::string& id);

// The texts of the papers' expected.toml, by folder.
struct expected_text {
  const char* paper;
  const char* text;
};
std::span<const expected_text> expected_texts();
const char* costs_text();

}  // namespace leveret_papers
