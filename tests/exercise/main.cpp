// leveret-exercise: the exerciser as a program. See README.md in this folder.
#include "exercise/drive.hpp"
#ifdef LEVERET_PLANTED
#include "exercise/faults.hpp"
#endif
#include "exercise/generate.hpp"
#include "exercise/print.hpp"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace lev::exercise;

[[noreturn]] void usage() {
  std::fputs(
      "leveret-exercise [--machine threads|sim|processes|pool]... [--seconds S] [--programs N]\n"
      "  [--seed K] [--jobs J] [--failures F] [--without WHAT]... [--no-shrink] [--print] "
      "[--json]\n"
      "Runs programs made at random. --print writes the program of the seed and does not run it.\n"
      "--planted looks for each of the planted faults (leveret-exercise-planted).\n",
      stderr);
  std::exit(2);
}

struct command {
  plan p;
  bool as_json = false;
  bool prints = false;
  bool finds_planted = false;
};

command read(int count, char** words) {
  command c;
  bool is_first = true;
  c.p.programs = 0;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&]() -> const char* { return i + 1 < count ? words[++i] : (usage(), ""); };
    if (word == "--machine") {
      const std::string name = next();
      if (is_first) c.p.machines.clear();
      is_first = false;
      for (unsigned m = 0; m < place_count; ++m) {
        if (name == place_name(static_cast<place>(m)) || name == "all")
          c.p.machines.push_back(static_cast<place>(m));
      }
      if (c.p.machines.empty()) usage();
    } else if (word == "--seconds") {
      c.p.seconds = std::atof(next());
    } else if (word == "--programs") {
      c.p.programs = std::strtoull(next(), nullptr, 10);
    } else if (word == "--seed") {
      c.p.seed = std::strtoull(next(), nullptr, 10);
    } else if (word == "--jobs") {
      c.p.jobs = static_cast<unsigned>(std::atoi(next()));
    } else if (word == "--failures") {
      c.p.failures_max = static_cast<unsigned>(std::atoi(next()));
    } else if (word == "--hang") {
      c.p.hang_seconds = std::atof(next());
    } else if (word == "--shrink-seconds") {
      c.p.shrink_seconds = std::atof(next());
    } else if (word == "--without") {
      if (!c.p.made_of.without(next())) usage();
    } else if (word == "--no-shrink") {
      c.p.shrinks = false;
    } else if (word == "--planted") {
      c.finds_planted = true;
    } else if (word == "--json") {
      c.as_json = true;
    } else if (word == "--print") {
      c.prints = true;
    } else {
      usage();
    }
  }
  if (c.p.seconds == 0 && c.p.programs == 0) c.p.programs = 1000;
  return c;
}

// As comments, so that all that is printed of a finding can be compiled.
std::string as_comment(const std::string& text) {
  std::string all = "// ";
  for (const char c : text) {
    all += c;
    if (c == '\n') all += "// ";
  }
  return all;
}

void tell(const report& r) {
  for (const finding& f : r.findings) {
    std::printf("// Seed %llu on %s; what is left of it fails %u of %u times. It says:\n%s\n%s\n",
                static_cast<unsigned long long>(f.seed), place_name(f.machine), f.failed, f.tries,
                as_comment(f.what).c_str(), f.printed.c_str());
  }
  std::printf("// %llu programs in %.1f s, %zu failures (",
              static_cast<unsigned long long>(r.programs), r.seconds, r.findings.size());
  for (unsigned m = 0; m < place_count; ++m)
    std::printf("%s%s %llu", m == 0 ? "" : ", ", place_name(static_cast<place>(m)),
                static_cast<unsigned long long>(r.by_machine[m]));
  std::puts(")");
}

// The planted faults, one after the other. How many were found.
std::size_t find_planted([[maybe_unused]] bool tells, std::size_t* count) {
  std::size_t found = 0;
  *count = 0;
#ifdef LEVERET_PLANTED
  for (const planted_fault& f : planted_faults) {
    const report r = exercise_with(f);
    found += !r.findings.empty();
    ++*count;
    if (tells)
      std::printf("%s: %s after %llu programs, %.1f s\n", f.name,
                  r.findings.empty() ? "NOT FOUND" : "found",
                  static_cast<unsigned long long>(r.programs), r.seconds);
  }
#endif
  return found;
}

}  // namespace

int main(int count, char** words) {
  const command c = read(count, words);
  if (c.finds_planted) {
    std::size_t planted = 0;
    const std::size_t found = find_planted(!c.as_json, &planted);
    if (c.as_json) std::printf("{\"planted\": %zu, \"planted_found\": %zu}\n", planted, found);
    return found == planted ? 0 : 1;
  }
  if (c.prints) {
    std::fputs(print(generate(c.p.seed, c.p.machines.front(), c.p.made_of)).c_str(), stdout);
    return 0;
  }
  const report r = exercise_all(c.p);
  if (c.as_json) {
    std::printf("{\"programs\": %llu, \"failures\": %zu, \"seconds\": %.2f}\n",
                static_cast<unsigned long long>(r.programs), r.findings.size(), r.seconds);
  } else {
    tell(r);
  }
  return r.findings.empty() ? 0 : 1;
}
