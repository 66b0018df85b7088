// Programs that have chosen a locale whose numbers have a comma: what is read from files and
// written to them, and what messages say, is as in any other program.
#include <gtest/gtest.h>
#include <leveret/cell_file.hpp>

#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "base/decimal.hpp"
#include "support/comma_locale.hpp"
#include "support/json.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

TEST(decimal, is_written_and_read_with_a_point) {
  const comma_locale here;
  if (!here.is_there()) GTEST_SKIP() << "no localedef here";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 2.5);
  ASSERT_STREQ(text, "2,5");  // else this tests nothing
  EXPECT_STREQ(decimal_text(2.5).c_str(), "2.5");
  EXPECT_STREQ(decimal_text(1.0 / 3, 9).c_str(), "0.333333333");
  EXPECT_STREQ(decimal_text(3.2e9, 12).c_str(), "3200000000");
  EXPECT_STREQ(decimal_text(-1.2345678901234567e-300, 99).c_str(), "-1.2345678901234568e-300");
  double number = 0;
  EXPECT_TRUE(read_decimal("+2.5e-1", &number));
  EXPECT_EQ(number, 0.25);
  for (const char* bad : {"", "+", "-", "+-1", "2,5", "0x10", "1e", "1e999", " 1", "1 "})
    EXPECT_FALSE(read_decimal(bad, &number)) << bad;
}

TEST(locale, machine_files_are_read_as_ever) {
  const std::string before = cell::machine_file::named("cell-ps3").hash();
  const comma_locale here;
  if (!here.is_there()) GTEST_SKIP() << "no localedef here";
  const cell::machine_file file = cell::machine_file::named("cell-ps3");
  EXPECT_EQ(file.hash(), before);
  EXPECT_EQ(file.with("memory.efficiency", 0.5).value("memory.efficiency"), 0.5);
  try {
    file.with("memory.efficiency", 1.5);
    ADD_FAILURE() << "it was taken";
  } catch (const cell::error& e) {
    EXPECT_NE(std::string(e.what()).find("is 1.5"), std::string::npos) << e.what();
  }
}

using locale_test = machine_test;
LEV_ON_EVERY_MACHINE(locale_test);

LEV_TEST(locale_test, a_runtime_opens_and_writes_a_trace_that_is_json) {
  const comma_locale here;
  if (!here.is_there()) GTEST_SKIP() << "no localedef here";
  config c = settings();
  c.trace_events = 64;
  runtime& r = open(c);
  expect_ok(r.submit(nothing));
  const std::string path = testing::TempDir() + "leveret_locale_" + std::to_string(getpid());
  ASSERT_EQ(r.write_trace(path.c_str()), status::ok);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_TRUE(is_json(text.str())) << text.str();
}

}  // namespace
}  // namespace lev::test
