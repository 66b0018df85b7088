// main() of the tests: that of GoogleTest, to which the tests on machines become known before it.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

std::string text_of(const machine_case& c) {
  std::ostringstream out;
  PrintTo(c, &out);
  return out.str();
}

// A test whose suite has no cases would run nowhere; of two of one name only one would be seen.
bool register_tests() {
  std::set<std::pair<std::string, std::string>> names;
  for (const noted_test& t : noted_tests()) {
    const auto found = cases_of_suites().find(t.suite);
    const bool has_cases = found != cases_of_suites().end() && found->second != nullptr;
    if (!has_cases || !names.emplace(t.suite, t.name).second) {
      std::fprintf(stderr,
                   "%s:%d: %s.%s is there twice, or its suite on no machine, or on some twice\n",
                   t.file, t.line, t.suite, t.name);
      return false;
    }
    for (const machine_case& c : found->second())
      testing::RegisterTest(("on/" + std::string(t.suite)).c_str(),
                            (std::string(t.name) + "/" + c.name).c_str(), nullptr,
                            text_of(c).c_str(), t.file, t.line, [make = t.make, c] {
                              static machine_case current;
                              current = c;
                              current_case = &current;
                              return make();
                            });
  }
  return true;
}

}  // namespace
}  // namespace lev::test

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  return lev::test::register_tests() ? RUN_ALL_TESTS() : 1;
}
