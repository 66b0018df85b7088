// What a paper printed, row by row: its expected.toml. And a row's outcome.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leveret_papers {

// One row of a paper's results. The band is of the simulated value.
struct expected_row {
  std::string paper;
  std::string id;
  std::string role;  // prediction, calibration, exact, shape, conflict
  std::string what;
  std::string configuration;
  std::string unit;
  double printed = 0;
  double low = 0;
  double high = 0;
  std::string miss;  // why it is out of its band, where it is
};

// Of all papers, in their order. Throws lev::cell::error (bad_machine) when a text is not of this
// form: every row has role, what, configuration, unit, printed and band, and a function.
const std::vector<expected_row>& expected_rows();
std::vector<expected_row> read_expected(std::string_view text, const std::string& paper);

// A row's simulation. One that did not end, for a deadlock or because nobody got on, is not a
// number, and says why.
struct outcome {
  double value = 0;
  std::string failure;
  double seconds = 0;  // of this computer
  std::uint64_t events = 0;
  std::uint64_t hash = 0;
  std::vector<std::string> read;  // the constants
};

// Throws lev::cell::error (bad_call) for a row that is not there.
// is_full: see world.
outcome simulate_row(const std::string& id, const std::map<std::string, double>& changed = {},
                     bool is_full = false);

// A row by Leveret's own pipeline on the same hardware. What the pipeline does beside copies,
// polls and wake-ups is priced by assumption, so there are three values. Where they are apart by
// more than a quarter, that work decides the row, and it has no answer.
struct leveret_answer {
  double value = 0;
  double free = 0;           // with that work for nothing
  double dear = 0;           // at twice the price
  std::string why_not;       // no answer; empty: there is one
  bool is_unpriced = false;  // because that work decides
};

// Throws lev::cell::error (bad_call) for a row that is not there.
leveret_answer answer_by_leveret(const std::string& id);

}  // namespace leveret_papers
