// The papers' rows: each has a function and repeats, and faulty ones are refused. What holds for
// the values of all rows is in python/tests/test_repro.py, which simulates them all.
#include <leveret_papers/expected.hpp>
#include <leveret_papers/world.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace leveret_papers {
namespace {

// A row, simulated once for all tests.
const outcome& simulated(const std::string& id) {
  static std::map<std::string, outcome> found;
  const auto at = found.find(id);
  return at != found.end() ? at->second : found[id] = simulate_row(id);
}

TEST(papers, rows_and_functions_are_the_same) {
  std::set<std::string> printed;
  for (const expected_row& r : expected_rows()) printed.insert(r.id);
  std::set<std::string> simulated;
  for (const row& r : all_rows()) simulated.insert(r.id);
  EXPECT_EQ(printed, simulated);
}

TEST(papers, rows_repeat) {
  for (const char* id :
       {"T1.2 1k DB 6", "T4.4 MT3", "T5.2", "T5.10", "T7.1 efficiency", "T7.4", "T6.4"}) {
    EXPECT_EQ(simulate_row(id).hash, simulated(id).hash) << id;
    EXPECT_EQ(simulate_row(id).value, simulated(id).value) << id;
  }
}

// Written down from a run; equal for every compiler.
TEST(papers, golden_values) {
  EXPECT_EQ(simulated("T5.2").hash, 842168546118165399u);
  EXPECT_EQ(simulated("T4.4 MT3").hash, 15164237994802771526u);
}

// Jack Rabbit's scheduler moves nothing while the caller posts: a step of fewer tasks than the
// prefilter holds begins when all of them are there, so a worker waits for each post.
TEST(papers, workers_wait_for_the_posts_of_a_step) {
  const double post = built_in_costs().at("jack_rabbit.post").value;
  const double before = simulated("T1.1 1k plain 1").value;
  const double slower = simulate_row("T1.1 1k plain 1", {{"jack_rabbit.post", post + 3200}}).value;
  constexpr double posts = 1024 * 1023 / 2;
  EXPECT_NEAR(slower - before, posts * 1e-6, posts * 0.02e-6);
}

// gcell's handler takes all letters that are there. One SPE has two, the one that it has written
// and the one that it waits to write; so has each of six.
TEST(papers, letters_that_are_there_share_a_wait) {
  const auto by = [](const char* id, double wait) {
    return simulate_row(id, {{"gcell.wait", wait}}).value;
  };
  EXPECT_NEAR(by("T7.0 one", 24) - by("T7.0 one", 12), 6, 0.3);
  EXPECT_NEAR(by("T7.0", 24) - by("T7.0", 12), 1, 0.3);
}

// An SPE looks at the queue, gets it under the lock, and gets the job's descriptor.
TEST(papers, a_job_of_gcell_is_got_by_three_transfers) {
  const double before = simulated("T7.2007 300us 1").value;
  const double slower = simulate_row("T7.2007 300us 1", {{"dma.read_latency", 998 + 3200}}).value;
  EXPECT_NEAR(slower - before, 3, 0.2);
}

// The diagonal block of each outer step is the master's, for whom all SPEs wait.
TEST(papers, the_diagonal_of_lu_gains_nothing_from_spes) {
  const auto gain = [](double rate) {
    return simulate_row("T5.13 64x64", {{"tpc.master_rate", rate}}).value;
  };
  EXPECT_LT(gain(0.1), gain(1e6) - 0.3);
}

TEST(papers, a_changed_constant_changes_what_rests_on_it) {
  const double before = simulated("T5.2").value;
  EXPECT_NEAR(simulate_row("T5.2", {{"eib.way", 480}}).value, before + 200, 25);
  EXPECT_NEAR(simulate_row("T5.2", {{"tpc.initiate", 280}}).value, before + 100, 25);
  EXPECT_THROW(simulate_row("T5.2", {{"eib.ways", 480}}), cell::error);
  EXPECT_THROW(simulate_row("T5.2", {{"eib.way", -1}}), cell::error);
  for (const char* id : {"T5.2", "T5.5"}) {  // T5.5 is arithmetic, and asks for none
    EXPECT_THROW(simulate_row(id, {{"no.name", 1}}), cell::error) << id;
    for (const char* name : {"tpc.initiate", "eib.way"})
      for (const double value : {0.0, -1.0, std::nan(""), HUGE_VAL})
        EXPECT_THROW(simulate_row(id, {{name, value}}), cell::error) << id << ", " << name;
    EXPECT_THROW(simulate_row(id, {{"eib.way", 480.5}}), cell::error) << id;
    EXPECT_THROW(simulate_row(id, {{"memory.efficiency", 1.5}}), cell::error) << id;
  }
}

// A PS3's six SPEs are not on four chips; the sixteen of a QS20 are.
TEST(papers, numbers_that_fit_one_machine_are_taken_by_rows_without_one) {
  EXPECT_EQ(simulate_row("T5.5", {{"machine.chips", 4}}).value, simulated("T5.5").value);
  EXPECT_THROW(simulate_row("T5.2", {{"machine.chips", 4}}), cell::error);
  EXPECT_THROW(simulate_row("T5.5", {{"machine.chips", 3}, {"machine.spes", 16}}), cell::error);
}

// Programs find each other's places whatever else is in a local store.
TEST(papers, rows_end_with_every_size_of_the_kernel) {
  for (const char* id : {"T4.7 small", "T5.2", "T5.11", "T6.4", "T7.1 efficiency", "T1.2 1k DB 6"})
    for (const int kib : {16, 40}) {
      const outcome o = simulate_row(id, {{"spe.kernel", kib}});
      EXPECT_EQ(o.failure, "") << id << ", " << kib << " KiB";
      EXPECT_EQ(o.value, simulated(id).value) << id << ", " << kib << " KiB";
    }
}

std::string refusal(const std::string& text) {
  try {
    read_expected(text, "mine");
  } catch (const std::exception& e) {
    return e.what();
  }
  return "it was taken";
}

TEST(papers, faulty_rows_and_costs_are_refused) {
  const std::string good =
      "[\"T4.1\"]\nrole = \"exact\"\nwhat = \"w\"\nconfiguration = \"c\"\nprinted = 1\n"
      "unit = \"u\"\nband = [1, 2]\n";
  EXPECT_EQ(refusal(good), "it was taken");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return refusal(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_NE(changed("exact", "fitted").find("the role 'fitted'"), std::string::npos);
  EXPECT_NE(changed("[1, 2]", "[2, 1]").find("empty band"), std::string::npos);
  EXPECT_NE(changed("T4.1", "T9.9").find("has no function"), std::string::npos);
  EXPECT_NE(changed("printed", "print").find("unknown name 'print'"), std::string::npos);
  EXPECT_NE(changed("what = \"w\"\n", "").find("needs what"), std::string::npos);
  const std::string cost =
      "[a]\nb = { value = 1, unit = \"u\", source = \"assumed\", from = \"f\" }";
  EXPECT_EQ(read_costs(cost, "c").size(), 1u);
  EXPECT_THROW(read_costs("[a]\nb = { value = 0, unit = \"u\" }", "c"), cell::error);
  EXPECT_THROW(read_costs("[a]\nb = { value = 1 }", "c"), cell::error);
}

TEST(papers, an_unknown_row_names_the_nearest) {
  try {
    simulate_row("T5.22");
    FAIL();
  } catch (const cell::error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'T5.2'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace leveret_papers
