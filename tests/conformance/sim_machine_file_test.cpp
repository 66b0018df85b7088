// Machine files of the simulated machine: what each number changes, what is refused, and that every
// file that is built in gives the serial result.
#include <gtest/gtest.h>
#include <leveret/cell_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/task_graph.hpp"

namespace lev::test {
namespace {

constexpr const char* built_in[] = {"cell-ps3", "cell-qs20", "cell-qs21"};

// cell-ps3 with the number of one name replaced, as a file of its own.
class changed_file {
 public:
  changed_file(const std::string& from, const std::string& to) {
    std::string text = cell::machine_file::text_of("cell-ps3");
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    path_ = testing::TempDir() + "leveret-machine-" + std::to_string(getpid()) + ".toml";
    std::ofstream(path_) << text;
  }
  ~changed_file() { std::remove(path_.c_str()); }
  changed_file(changed_file&&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

config sim_of(const char* file, int workers = 0) {
  config c;
  c.machine = "sim";
  c.sim_machine = file;
  c.workers = workers;
  return c;
}

std::string refusal_of(const char* file) {
  try {
    runtime r(sim_of(file));
  } catch (const error& e) {
    EXPECT_EQ(e.code(), status::bad_config) << e.what();
    EXPECT_EQ(std::string(e.what()).find("config.sim_machine: "), 0u) << e.what();
    return e.what();
  }
  return "it was opened";
}

std::string refusal_of(const std::string& from, const std::string& to) {
  const changed_file file(from, to);
  return refusal_of(file.path());
}

testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << text << " does not say: " << part;
}

// A pipe gives nothing the second time.
TEST(sim_machine_file, a_file_is_read_once) {
  start_alarm();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text = cell::machine_file::text_of("cell-ps3");
  ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(refusal_of(path.c_str()), "it was opened");
  close(ends[0]);
}

TEST(sim_machine_file, what_is_wrong_with_a_file_is_told) {
  start_alarm();
  EXPECT_TRUE(says(refusal_of("cell-ps4"), "cell-ps3 cell-qs20 cell-qs21"));
  EXPECT_TRUE(says(refusal_of("/nowhere/mine.toml"), "/nowhere/mine.toml: it cannot be read: No"));
  EXPECT_TRUE(says(refusal_of(""), "cell-ps3"));
  EXPECT_TRUE(says(refusal_of("/tmp"), "it is a folder"));
  EXPECT_TRUE(says(refusal_of("issue =", "isue ="), "did you mean 'mfc.issue'?"));
  EXPECT_TRUE(says(refusal_of("[eib]", "[mfc.eib]"), "unknown name"));
  EXPECT_TRUE(says(refusal_of("poll = { value = 40", "poll = { value = 0"), "above 0"));
  EXPECT_TRUE(says(refusal_of("poll = { value = 40", "poll = { value = -4"), "above 0"));
  EXPECT_TRUE(says(refusal_of("poll = { value = 40", "poll = { value = nan"), "not a number"));
  EXPECT_TRUE(says(
      refusal_of("poll = { value = 40, unit = \"cycles\"", "poll = { value = 40, unit = \"us\""),
      "it must be in 'cycles'"));
  EXPECT_TRUE(says(refusal_of("spes = { value = 6", "spes = { value = 0"), "machine.spes is 0"));
  EXPECT_TRUE(says(refusal_of("spes = { value = 6", "spes = { value = 1025"), "1 to 1024"));
  EXPECT_TRUE(says(refusal_of("store = { value = 256", "store = { value = 24"), "spe.kernel"));
}

// The text of an error has room for 255 bytes.
TEST(sim_machine_file, what_is_wrong_with_a_file_of_a_long_path_is_told) {
  start_alarm();
  const std::string folder =
      testing::TempDir() + "leveret-machine-" + std::to_string(getpid()) + std::string(150, 'f');
  std::string path = folder;
  for (int i = 0; i < 3; ++i) {
    std::filesystem::create_directory(path);
    path += "/" + std::string(69, 'f') + "\u00e9\u4e2d";
  }
  std::string text = cell::machine_file::text_of("cell-ps3");
  std::ofstream(path) << text.replace(text.find("\"Hz\""), 4, "\"MHz\"");
  const std::string said = refusal_of(path.c_str());
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(says(said, "clock.rate is in 'MHz': it must be in 'Hz'"));
  EXPECT_TRUE(says(said, ": line "));
  EXPECT_TRUE(says(said, "config.sim_machine: ...f"));
}

TEST(sim_machine_file, says_how_many_workers_there_are) {
  start_alarm();
  EXPECT_EQ(runtime(sim_of("cell-ps3")).workers(), 6u);
  EXPECT_EQ(runtime(sim_of("cell-qs20")).workers(), 16u);
  EXPECT_EQ(runtime(sim_of("cell-qs21", 3)).workers(), 3u);
}

TEST(sim_machine_file, says_how_large_a_local_store_is) {
  start_alarm();
  std::vector<std::uint64_t> block(24 * 1024, 1);  // 192 KiB of the 232 that are left
  std::vector<std::uint64_t> more(30 * 1024, 1);   // 240 KiB
  runtime r(sim_of("cell-ps3"));
  EXPECT_EQ(r.submit(increment, block).wait_outcome().code, status::ok);
  refusal why;
  (void)r.try_submit(pack(increment, more), nullptr, &why);
  EXPECT_EQ(why.code, status::too_big);
}

TEST(sim_machine_file, hosts_run_no_tasks_unless_it_says_so) {
  start_alarm();
  const changed_file helping("runs_tasks = { value = 0", "runs_tasks = { value = 1");
  for (const char* file : {"cell-ps3", helping.path()}) {
    config c = sim_of(file, 1);
    c.tickets = 8;  // fewer than tasks: the submitter waits for room
    runtime r(c);
    std::vector<ticket> t;
    for (int i = 0; i < 64; ++i) r.post(nothing);
    for (int i = 0; i < 4; ++i) t.push_back(r.submit(nothing));
    for (ticket& each : t)
      EXPECT_EQ(each.wait_outcome(no_timeout, wait_policy::help).code, status::ok);
    r.wait_for_completion();
    EXPECT_EQ(r.count().completed, 68u);
    EXPECT_EQ(r.count_worker(1).completed == 0, file == built_in[0]) << file;
  }
}

// A chain of tasks that copy nothing: each number of the file that it meets changes its time.
std::uint64_t chain_ns(const char* file) {
  config c = sim_of(file, 1);
  runtime r(c);
  std::vector<std::uint64_t> block(1024, 0);
  const std::uint64_t begin = r.now_ns();
  for (int i = 0; i < 50; ++i) r.submit(increment, block).wait();
  return r.now_ns() - begin;
}

TEST(sim_machine_file, its_numbers_are_the_prices) {
  start_alarm();
  const std::uint64_t before = chain_ns("cell-ps3");
  const auto longer = [&](const std::string& from, const std::string& to) {
    const changed_file file(from, to);
    return chain_ns(file.path());
  };
  EXPECT_EQ(longer("value = 998", "value = 998"), before);
  EXPECT_GT(longer("read_latency = { value = 998", "read_latency = { value = 9980"),
            before + 50 * 2500);
  EXPECT_GT(longer("\nissue = { value = 12", "\nissue = { value = 6000"), before + 100 * 1500);
  EXPECT_GT(longer("stream = { value = 11.67e9", "stream = { value = 1.167e9"), before + 50 * 5000);
  EXPECT_GT(longer("rate = { value = 3.2e9", "rate = { value = 0.32e9"), before * 2);
}

TEST(sim_machine_file, absurd_but_legal_numbers_neither_hang_nor_overflow) {
  start_alarm();
  EXPECT_GT(chain_ns("cell-ps3"), 0u);
  for (const char* name :
       {"\nissue = { value = 12", "remote = { value = 800", "way = { value = 380",
        "missed_load = { value = 500", "read_latency = { value = 998"}) {
    const std::string from = name;
    const changed_file file(from, from.substr(0, from.rfind(' ')) + " 1000000");
    EXPECT_GT(chain_ns(file.path()), 0u) << name;
  }
}

TEST(sim_machine_file, every_built_in_one_gives_the_serial_result_and_repeats) {
  start_alarm();
  for (const char* file : built_in) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const task_graph graph(base_seed() + seed);
      graph_memory expected;
      graph.run_serially(expected);
      std::uint64_t hashes[2];
      for (std::uint64_t& hash : hashes) {
        config c = sim_of(file);
        c.seed = seed;
        runtime r(c);
        graph_memory memory;
        graph.run(r, memory);
        EXPECT_EQ(memory, expected) << file << ", seed " << base_seed() + seed;
        hash = r.trace_hash();
      }
      EXPECT_EQ(hashes[0], hashes[1]) << file;
      EXPECT_NE(hashes[0], 0u);  // without a trace
    }
  }
}

TEST(sim_machine_file, time_passes_on_the_host_when_it_says_so) {
  start_alarm();
  runtime r(sim_of("cell-ps3"));
  const std::uint64_t begin = r.now_ns();
  r.pass_time(3'200'000);
  EXPECT_GE(r.now_ns(), begin + 1'000'000);
  EXPECT_LT(r.now_ns(), begin + 1'000'010);
  r.pass_time(~std::uint64_t{0});  // ends, and the clock does not turn over
  EXPECT_GT(r.now_ns(), begin + 1'000'000);
  EXPECT_EQ(r.submit(nothing).wait_outcome().code, status::ok);
  EXPECT_GE(r.now_ns(), begin + (std::uint64_t{1} << 50) / 32 * 10);
}

TEST(sim_machine_file, a_thousand_workers_share_a_bulk) {
  start_alarm();
  const changed_file many("spes = { value = 6", "spes = { value = 1024");
  runtime r(sim_of(many.path()));
  EXPECT_EQ(r.workers(), 1024u);
  std::vector<ticket> t;
  for (int i = 0; i < 3000; ++i) t.push_back(r.submit(nothing));
  EXPECT_EQ(wait_all(t.data(), t.size()).code, status::ok);
  EXPECT_EQ(r.count().completed, 3000u);
}

TEST(sim_machine_file, other_machines_pass_it_over) {
  start_alarm();
  config c;
  c.workers = 1;
  c.sim_machine = "/nowhere/mine.toml";
  runtime r(c);
  r.pass_time(1'000'000'000);
  EXPECT_EQ(r.submit(nothing).wait_outcome().code, status::ok);
}

}  // namespace
}  // namespace lev::test
