// Common parts of the tests of the applications: a parameter for machine and dicing, and a runtime
// for it.
#pragma once

#include <gtest/gtest.h>

#include <leveret/leveret.hpp>
#include <optional>
#include <string>

struct app_case {
  const char* machine;
  bool dice;
};

inline void PrintTo(const app_case& c, std::ostream* out) {
  *out << c.machine << (c.dice ? " diced" : " whole");
}
inline std::string case_name(const testing::TestParamInfo<app_case>& info) {
  return std::string(info.param.machine) + (info.param.dice ? "_diced" : "_whole");
}

class app_test : public testing::TestWithParam<app_case> {
 protected:
  // A runtime of the case's machine; the test is skipped where the machine does not work.
  void SetUp() override {
    if (const char* why = lev::machine_unavailable(GetParam().machine)) GTEST_SKIP() << why;
    lev::config config;
    config.machine = GetParam().machine;
    config.workers = 3;
    runtime_.emplace(config);
  }
  // Whatever a test did, all that was accepted is complete and nothing failed.
  void TearDown() override {
    if (!runtime_) return;
    EXPECT_EQ(runtime_->wait_for_completion().code, lev::status::ok);
    EXPECT_EQ(runtime_->count().submitted, runtime_->count().completed);
    EXPECT_EQ(runtime_->count().failed, 0u);
  }

  bool dice() const { return GetParam().dice; }
  lev::runtime& runtime() { return *runtime_; }

 private:
  std::optional<lev::runtime> runtime_;
};

inline const auto every_case =
    testing::Values(app_case{"threads", true}, app_case{"threads", false}, app_case{"sim", true},
                    app_case{"sim", false});
