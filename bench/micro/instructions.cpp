// instructions: how many instructions a task takes from submit to collect, on both sides together.
//
// Single numbers without noise: on `threads` one thread does both sides under callgrind, on
// `processes` both processes are stepped. The functions that make up a count are listed below the
// figures. Without valgrind or ptrace() the figures have no value, and say why.
#include "counted/cases.hpp"
#include "counted/profile.hpp"
#include "registry.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <vector>

namespace bench {
namespace {

constexpr figure_spec processes{"processes_empty", "instr.", "<= 500"};
constexpr double part_min = 1;  // instructions: less is not listed

std::string program_beside_this() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "leveret-counted")
      .string();
}

void add_functions(report& figures, const char* name, const counted::profile& all) {
  std::vector<std::pair<double, std::string>> most;
  for (const auto& [function, count] : all) {
    if (count >= part_min) most.emplace_back(count, function);
  }
  std::sort(most.rbegin(), most.rend());
  for (const auto& [count, function] : most) figures.add_part(name, function, count);
}

void add_case(report& figures, const counted::counted_case& each) {
  const figure_spec spec{each.name, "instr.", each.goal};
  try {
    const counted::profile found = counted::count_case(each, program_beside_this());
    figures.add(spec, {counted::total(found)}, "callgrind, one thread on both sides");
    add_functions(figures, each.name, found);
  } catch (const std::exception& why) {
    figures.add(spec, {}, why.what());
  }
}

void add_processes(report& figures, unsigned rounds) {
  try {
    const counted::process_count found = counted::count_processes(rounds);
    figures.add(processes, {found.host + found.worker}, "stepped, median of the rounds");
    figures.add_part(processes.key, "the host", found.host);
    figures.add_part(processes.key, "the worker", found.worker);
  } catch (const std::exception& why) {
    figures.add(processes, {}, why.what());
  }
}

}  // namespace

void instructions(const settings& how, report& figures) {
  for (const counted::counted_case& each : counted::cases) add_case(figures, each);
  add_processes(figures, how.quick ? 3 : 15);
}

}  // namespace bench
