// The exerciser finds each planted fault in the time it has.
#include "exercise/drive.hpp"
#include "exercise/faults.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <string>

namespace lev::exercise {
namespace {

class planted : public testing::TestWithParam<planted_fault> {};

std::string name_of(const testing::TestParamInfo<planted_fault>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(exercise, planted, testing::ValuesIn(planted_faults), name_of);

TEST_P(planted, fault_is_found) {
  const report r = exercise_with(GetParam());
  EXPECT_EQ(r.findings.size(), 1u) << r.programs << " programs did not find \"" << GetParam().name
                                   << "\", which breaks: " << GetParam().promise;
}

}  // namespace
}  // namespace lev::exercise
