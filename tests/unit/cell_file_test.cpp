// Machine files: the schema, every kind of bad input, and that the three that are built in agree.
#include <leveret/cell_file.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>

#include "base/toml.hpp"

namespace lev::cell {
namespace {

std::string refusal(const std::string& text) {
  try {
    machine_file::parse(text, "mine.toml");
  } catch (const error& e) {
    EXPECT_EQ(e.kind, error_kind::bad_machine);
    return e.what();
  }
  return "it was taken";
}

// cell-ps3 with a piece of its text replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = machine_file::text_of("cell-ps3");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refusal(const std::string& text, const std::string& part) {
  const std::string said = refusal(text);
  EXPECT_NE(said.find("mine.toml: "), std::string::npos) << said;
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(cell_file, the_built_in_ones_are_taken_and_name_their_sources) {
  for (const std::string& name : machine_file::names()) {
    const machine_file file = machine_file::named(name);
    for (const constant& c : file.constants()) {
      EXPECT_TRUE(c.value > 0 || c.name == "ppe.runs_tasks") << c.name;
      EXPECT_FALSE(c.from.empty()) << c.name;
    }
  }
  EXPECT_EQ(machine_file::names().size(), 3u);
  EXPECT_EQ(machine_file::named("cell-qs20").value("machine.spes"), 16);
}

TEST(cell_file, the_machines_differ_in_what_they_have_and_in_no_other_number) {
  const machine_file ps3 = machine_file::named("cell-ps3");
  const std::set<std::string> may{"machine.chips", "machine.spes", "machine.memory"};
  for (const std::string& name : machine_file::names()) {
    const machine_file file = machine_file::named(name);
    for (const constant& c : file.constants()) {
      if (may.contains(c.name)) continue;
      EXPECT_EQ(c.value, ps3.value(c.name)) << name << " " << c.name;
    }
  }
}

TEST(cell_file, bad_values_are_refused_by_name) {
  const std::string rate = "rate = { value = 3.2e9";
  expect_refusal(changed(rate, "rate = { value = -1"), "clock.rate is -1: it must be above 0");
  expect_refusal(changed(rate, "rate = { value = 0"), "clock.rate is 0: it must be above 0");
  expect_refusal(changed(rate, "rate = { value = nan"), "clock.rate is not a number");
  const std::string before = machine_file::text_of("cell-ps3");
  const auto line = 1 + std::count(before.begin(), before.begin() + before.find(rate), '\n');
  for (const char* value : {"-1", "0", "nan", "inf", "5", "3200000000.5"})
    expect_refusal(changed(rate, std::string("rate = { value = ") + value),
                   "line " + std::to_string(line) + ": clock.rate is");
  expect_refusal(changed(rate, "rate = { value = 5"), "clock.rate is 5: it must be from");
  expect_refusal(changed(rate, "rate = { value = \"fast\""), "its value must be a number");
  expect_refusal(changed("spes = { value = 6", "spes = { value = 1025"), "machine.spes is 1025");
  expect_refusal(changed("spes = { value = 6", "spes = { value = 2.5"), "a whole number");
  expect_refusal(changed("runs_tasks = { value = 0", "runs_tasks = { value = 2"),
                 "ppe.runs_tasks is 2: it must be from 0 to 1");
  expect_refusal(changed("runs_tasks = { value = 0", "runs_tasks = { value = -1"), "is -1");
  expect_refusal(changed("unit = \"Hz\"", "unit = \"GHz\""),
                 "clock.rate is in 'GHz': it must be in 'Hz'");
  expect_refusal(changed("source = \"published\"", "source = \"known\""), "the source 'known'");
  expect_refusal(changed(", from = \"S1, S2, S4\"", ""), "say from where");
  expect_refusal(changed("store = { value = 256", "store = { value = 16"), "which spe.kernel");
}

TEST(cell_file, names_that_are_missing_or_unknown_are_told) {
  expect_refusal(changed("read_latency =", "read_latencie ="),
                 "unknown name 'dma.read_latencie'; did you mean 'dma.read_latency'?");
  expect_refusal(changed("[clock]", "[clocks]"), "unknown name 'clocks.rate'");
  expect_refusal(changed("unit = \"Hz\"", "units = \"Hz\""), "did you mean 'unit'?");
  expect_refusal(changed("rate = { value = 3.2e9, unit", "rate = { unit"),
                 "clock.rate has no value");
  expect_refusal(changed("rate = { value = 3.2e9, unit = \"Hz\", source = \"published\", from = "
                         "\"S1, S2, S4\" }",
                         "rate = 3"),
                 "clock.rate must be { value");
  expect_refusal("", "clock.rate is missing");
  EXPECT_THROW(machine_file::named("cell-ps4"), error);
  EXPECT_THROW(machine_file::named("/tmp"), error);
  EXPECT_THROW(machine_file::named("/dev/zero"), error);  // and is not read to its end
  EXPECT_THROW(machine_file::named("cell-ps3").value("dma.latency"), error);
}

// One without a machine would be a null pointer behind a promise.
static_assert(!std::is_default_constructible_v<machine_file>);

TEST(cell_file, a_changed_number_changes_the_hash) {
  const machine_file file = machine_file::named("cell-ps3");
  EXPECT_EQ(file.hash(), machine_file::named("cell-ps3").hash());
  EXPECT_NE(file.hash(), file.with("spe.poll", 41).hash());
  EXPECT_THROW(file.with("spe.poll", 0), error);
  EXPECT_THROW(file.with("spe.pol", 1), error);
}

int faulty_line(const std::string& text) {
  try {
    read_toml(text);
  } catch (const toml_error& e) {
    return e.line;
  }
  return 0;
}

TEST(toml, reads_what_leveret_writes) {
  const auto entries = read_toml(
      "# head\n[a.\"b c\"] # table\nx = 1_000\ny = { p = -2.5e3, q = \"s \\\"t\\\"\" }\n"
      "z = [1, 2,\n 3]\nw = true\n");
  ASSERT_EQ(entries.size(), 7u);
  EXPECT_EQ(entries[0].path, (std::vector<std::string>{"a", "b c", "x"}));
  EXPECT_EQ(entries[0].number, 1000);
  EXPECT_EQ(entries[1].number, -2500);
  EXPECT_EQ(entries[2].text, "s \"t\"");
  EXPECT_EQ(entries[5].path.back(), "2");
  EXPECT_EQ(entries[6].number, 1);
  EXPECT_EQ(entries[6].line, 7);
}

TEST(toml, refuses_the_rest_by_its_line) {
  EXPECT_EQ(faulty_line("a = 1\na = 2\n"), 2);
  EXPECT_EQ(faulty_line("[a]\n[a]\n"), 2);
  EXPECT_EQ(faulty_line("[[a]]\n"), 1);
  EXPECT_EQ(faulty_line("\n\na = word\n"), 3);
  EXPECT_EQ(faulty_line("a = \"open\n"), 1);
  EXPECT_EQ(faulty_line("a = 1 b = 2\n"), 1);
  EXPECT_EQ(faulty_line("a = 0x10\n"), 1);
  EXPECT_EQ(faulty_line("a = 1..2\n"), 1);
  EXPECT_EQ(faulty_line("a\n"), 1);
  EXPECT_EQ(faulty_line("a = { b = 1\n"), 1);
  EXPECT_EQ(faulty_line("a = [1\n"), 2);
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(toml, what_is_nested_without_end_is_refused_at_once) {
  constexpr std::size_t deep = 100'000;  // with all names kept at each depth: 160 GB
  EXPECT_EQ(faulty_line("a = " + repeated("[", deep)), 1);
  EXPECT_EQ(faulty_line("a = " + repeated("[\n", deep)), 17);
  EXPECT_EQ(faulty_line("a = " + repeated("{a=", deep)), 1);
  EXPECT_EQ(faulty_line("[a" + repeated(".a", deep) + "]\n"), 1);
}

TEST(toml, the_nearest_name_is_near) {
  const std::vector<std::string> names{"lu", "barnes-hut", "mandelbrot"};
  EXPECT_EQ(nearest_name("mandelbort", names), "mandelbrot");
  EXPECT_EQ(nearest_name("barnes_hut", names), "barnes-hut");
  EXPECT_EQ(nearest_name("zzzzzzz", names), "");
}

}  // namespace
}  // namespace lev::cell
