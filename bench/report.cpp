// Medians, and the two ways to print them.
#include "report.hpp"

#include "timing.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace bench {
namespace {

struct machine_facts {
  std::string cpu = "unknown";
  std::size_t cores = usable_cores().size();
  std::string kernel = "unknown";
};

machine_facts read_machine() {
  machine_facts facts;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      facts.cpu = line.substr(colon + 2);
      break;
    }
  }
  utsname names;
  if (uname(&names) == 0) facts.kernel = std::string(names.sysname) + " " + names.release;
  return facts;
}

std::string quoted(const std::string& plain) {
  std::string json = "\"";
  for (const char c : plain) {
    if (c == '"' || c == '\\') json += '\\';
    json += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return json + '"';
}

// Tells whether a value is what the goal's text asks for; "" where there is nothing to ask.
const char* verdict(double value, const char* goal) {
  const std::size_t sign = std::strspn(goal, "<>=");
  if (sign == 0) return "";
  const double bound = std::strtod(goal + sign, nullptr);
  const bool at_bound = goal[1] == '=' && value == bound;
  const bool met = at_bound || (goal[0] == '<' ? value < bound : value > bound);
  return met ? "met" : "MISSED";
}

}  // namespace

double median(samples values) {
  if (values.empty()) throw std::logic_error("median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

samples ratio(const samples& above, const samples& below) {
  samples result(std::min(above.size(), below.size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = above[i] / below[i];
  return result;
}

samples scale(const samples& values, double factor) {
  samples result = values;
  for (double& value : result) value *= factor;
  return result;
}

std::vector<samples> interleave(int rounds,
                                const std::vector<std::function<double()>>& contestants) {
  std::vector<samples> result(contestants.size());
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      if (!contestants[c]) continue;
      wait_until_quiet();
      const double value = contestants[c]();
      if (round >= 0) result[c].push_back(value);
    }
  }
  return result;
}

std::string text(const char* format, ...) {
  char buffer[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

void check(bool right, const char* what) {
  if (!right) throw std::runtime_error(std::string("wrong answer: ") + what);
}

void report::add(const figure_spec& spec, const samples& rounds, std::string rival) {
  figure f{spec.key, spec.unit, spec.goal, std::nullopt, 0, 0, rounds.size(), std::move(rival)};
  if (!rounds.empty()) {
    f.value = median(rounds);
    f.low = *std::min_element(rounds.begin(), rounds.end());
    f.high = *std::max_element(rounds.begin(), rounds.end());
  }
  figures_.push_back(std::move(f));
}

void report::add_part(const std::string& key, const std::string& name, double value) {
  parts_.push_back({key, name, value});
}

// One JSON object by figure, of the parts of each.
void report::print_parts(std::FILE* file) const {
  std::fprintf(file, " \"parts\": {");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const bool is_first = i == 0 || parts_[i - 1].key != parts_[i].key;
    if (is_first)
      std::fprintf(file, "%s\n  %s: {", i == 0 ? "" : "},", quoted(parts_[i].key).c_str());
    std::fprintf(file, "%s\n    %s: %.6g", is_first ? "" : ",", quoted(parts_[i].name).c_str(),
                 parts_[i].value);
  }
  std::fprintf(file, "}},\n");
}

void report::print_json(std::FILE* file) const {
  std::fprintf(file, "{\"bench\": %s,\n \"figures\": {", quoted(name_).c_str());
  const char* separator = "\n";
  for (const figure& f : figures_) {
    const std::string value = f.value ? text("%.6g", *f.value) : "null";
    const std::string spread = f.value ? text("[%.6g, %.6g]", f.low, f.high) : "null";
    const std::string rival = f.rival.empty() ? "null" : quoted(f.rival);
    std::fprintf(file,
                 "%s  %s: {\"value\": %s, \"unit\": %s, \"spread\": %s, \"runs\": %zu, "
                 "\"rival\": %s, \"goal\": %s}",
                 separator, quoted(f.key).c_str(), value.c_str(), quoted(f.unit).c_str(),
                 spread.c_str(), f.runs, rival.c_str(), quoted(f.goal).c_str());
    separator = ",\n";
  }
  const machine_facts machine = read_machine();
  std::fprintf(file, "},\n");
  if (!parts_.empty()) print_parts(file);
  std::fprintf(file,
               " \"machine\": {\"cpu\": %s, \"cores\": %zu, \"kernel\": %s, \"compiler\": %s, "
               "\"flags\": %s},\n \"commit\": %s}\n",
               quoted(machine.cpu).c_str(), machine.cores, quoted(machine.kernel).c_str(),
               quoted(LEV_BENCH_COMPILER).c_str(), quoted(LEV_BENCH_FLAGS).c_str(),
               quoted(LEV_BENCH_COMMIT).c_str());
}

void report::print_table(std::FILE* file) const {
  const machine_facts machine = read_machine();
  std::fprintf(file, "%s on %s, %zu cores, %s, %s\n", name_.c_str(), machine.cpu.c_str(),
               machine.cores, LEV_BENCH_COMPILER, LEV_BENCH_COMMIT);
  std::fprintf(file, "%-24s %10s %-6s %-23s %-9s %-7s %s\n", "figure", "median", "unit", "spread",
               "goal", "", "measured against");
  for (const figure& f : figures_) {
    const std::string value = f.value ? text("%.4g", *f.value) : "-";
    const std::string spread = f.value ? text("%.4g .. %.4g (%zu)", f.low, f.high, f.runs) : "";
    std::fprintf(file, "%-24s %10s %-6s %-23s %-9s %-7s %s\n", f.key.c_str(), value.c_str(), f.unit,
                 spread.c_str(), f.goal, f.value ? verdict(*f.value, f.goal) : "", f.rival.c_str());
  }
  for (const part& p : parts_)
    std::fprintf(file, "%-14s %8.1f  %s\n", p.key.c_str(), p.value, p.name.c_str());
}

}  // namespace bench
