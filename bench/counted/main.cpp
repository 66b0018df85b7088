// leveret-counted: bench instructions by itself, and the programs that it counts.
//
//   leveret-counted [--json]
//   leveret-counted --run CASE    what callgrind runs
//   leveret-counted --walk        each instruction of some tasks on `processes` (stepper.cpp)
#include "counted/cases.hpp"
#include "registry.hpp"

#include <cstdio>
#include <cstring>
#include <exception>

namespace {

int usage() {
  std::fputs("usage: leveret-counted [--json | --run CASE | --walk]\n", stderr);
  return 2;
}

int run_case(const char* name) {
  for (const bench::counted::counted_case& each : bench::counted::cases) {
    if (std::strcmp(each.name, name) == 0) return bench::counted::run(each), 0;
  }
  return usage();
}

int measure(bool json) {
  bench::report figures("instructions");
  bench::instructions({}, figures);
  json ? figures.print_json(stdout) : figures.print_table(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && std::strcmp(argv[1], "--walk") == 0)
    return bench::counted::count_processes(5, true), 0;
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc == 3 && std::strcmp(argv[1], "--run") == 0) return run_case(argv[2]);
  return argc == 1 || json ? measure(json) : usage();
} catch (const std::exception& failure) {
  std::fprintf(stderr, "leveret-counted: %s\n", failure.what());
  return 1;
}
