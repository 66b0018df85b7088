// Figures: samples of interleaved rounds in, medians beside their goals out, as a table or as JSON.
//
// A round measures every contestant once, in order, so that a machine that slows down slows all of
// them down. A ratio is taken within each round; its median and spread are those of the rounds'
// ratios.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bench {

// A figure's name, its unit, and its goal: "<= 1.25", ">= 0.9", "< 1" or "" for information only.
// Units and goals are literals.
struct figure_spec {
  const char* key;
  const char* unit;
  const char* goal;
};

using samples = std::vector<double>;

double median(samples values);

// ratio() divides round by round.
samples ratio(const samples& above, const samples& below);

// scale() applies a factor to every round.
samples scale(const samples& values, double factor);

// interleave() runs every contestant once without looking, then `rounds` times in turn;
// result[c][r] is what contestant c returned in round r. Contestants that are empty functions get
// no samples.
std::vector<samples> interleave(int rounds,
                                const std::vector<std::function<double()>>& contestants);

// text() is printf into a string.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

// check() throws std::runtime_error when an answer is wrong.
void check(bool right, const char* what);

class report {
 public:
  explicit report(std::string bench_name) : name_(std::move(bench_name)) {}

  // add() enters a figure; `rival` says what it is measured against, with that one's own figure.
  // Without samples the figure has no value, and `rival` says why.
  void add(const figure_spec& spec, const samples& rounds, std::string rival = {});

  // add_part() says what a figure consists of: how much of it `part` is.
  void add_part(const std::string& key, const std::string& part, double value);

  void print_json(std::FILE* file) const;
  void print_table(std::FILE* file) const;

 private:
  struct figure {
    std::string key;  // a name may be made while the bench runs
    const char* unit;
    const char* goal;
    std::optional<double> value;
    double low = 0;
    double high = 0;
    std::size_t runs = 0;
    std::string rival;
  };
  std::string name_;
  struct part {
    std::string key;
    std::string name;
    double value;
  };
  void print_parts(std::FILE* file) const;
  std::vector<figure> figures_;
  std::vector<part> parts_;
};

}  // namespace bench
