// Bad configurations: rows 41 to 43 and 56 of README.md. A runtime that cannot be opened says why,
// and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <leveret/leveret.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

struct config_row {
  int number;
  const char* name;
  void (*spoil)(config&);
  status code;
  const char* says;
};

void PrintTo(const config_row& r, std::ostream* out) {
  *out << "row " << r.number << ", " << r.name;
}

const config_row bad_configs[] = {
    {41, "negative_workers", [](config& c) { c.workers = -1; }, status::bad_config, "workers"},
    {41, "very_negative_workers", [](config& c) { c.workers = INT32_MIN; }, status::bad_config,
     "-2147483648"},
    {41, "a_thousand_million_workers", [](config& c) { c.workers = 1'000'000'000; },
     status::bad_config, "1000000000"},
    {42, "no_local_store", [](config& c) { c.local_store_bytes = 0; }, status::bad_config,
     "local_store_bytes"},
    {42, "a_local_store_beyond_memory",
     [](config& c) { c.local_store_bytes = std::size_t{1} << 60; }, status::out_of_memory,
     "local_store_bytes"},
    {42, "a_local_store_of_all_bits", [](config& c) { c.local_store_bytes = ~std::size_t{0}; },
     status::out_of_memory, "local_store_bytes"},
    {43, "no_tickets", [](config& c) { c.tickets = 0; }, status::bad_config, "tickets"},
    {43, "all_tickets_there_could_be", [](config& c) { c.tickets = 0xffffffff; },
     status::out_of_memory, "tickets"},
    {0, "depth_beyond_16", [](config& c) { c.depth = 17; }, status::bad_config, "depth"},
    {0, "no_host_threads", [](config& c) { c.host_threads = 0; }, status::bad_config,
     "host_threads"},
    {0, "too_many_host_threads", [](config& c) { c.host_threads = 1'000'000; }, status::bad_config,
     "host_threads"},
    {0, "no_nesting", [](config& c) { c.nest_max = 0; }, status::bad_config, "nest_max"},
    {0, "endless_nesting", [](config& c) { c.nest_max = 0xffffffff; }, status::bad_config,
     "nest_max"},
    {0, "a_trace_beyond_memory", [](config& c) { c.trace_events = 0xffffffff; },
     status::out_of_memory, "trace_events"},
    {0, "a_way_to_wait_that_there_is_not", [](config& c) { c.wait = static_cast<wait_policy>(77); },
     status::bad_config, "wait"},
    {0, "a_way_to_wait_for_one_wait_only", [](config& c) { c.wait = wait_policy::of_runtime; },
     status::bad_config, "wait"},
    {0, "a_staging_that_there_is_not", [](config& c) { c.staging = static_cast<staging>(3); },
     status::bad_config, "staging"},
    {0, "a_way_to_be_full_that_there_is_not", [](config& c) { c.full = static_cast<when_full>(3); },
     status::bad_config, "full"},
    {0, "an_isolation_that_there_is_not",
     [](config& c) { c.processes.isolation = static_cast<isolation>(2); }, status::bad_config,
     "isolation"},
    {0, "a_pool_without_a_name", [](config& c) { c.machine = "processes", c.processes.pool = ""; },
     status::bad_config, "pool"},
    {0, "a_pool_with_a_path_for_a_name",
     [](config& c) { c.machine = "processes", c.processes.pool = "../other"; }, status::bad_config,
     "pool"},
    {0, "a_pool_with_a_long_name",
     [](config& c) {
       c.machine = "processes";
       c.processes.pool = "a-name-of-sixty-one-letters-is-one-letter-longer-than-allowed";
     },
     status::bad_config, "1 to 60"},
    {0, "a_command_without_a_word",
     [](config& c) {
       static const char* const none[] = {nullptr};
       c.machine = "processes";
       c.processes.worker_command = none;
     },
     status::bad_config, "worker_command"},
    {0, "a_command_whose_program_has_no_name",
     [](config& c) {
       static const char* const empty[] = {"", "word", nullptr};
       c.machine = "processes";
       c.processes.worker_command = empty;
     },
     status::bad_config, "worker_command"},
    {0, "a_command_that_is_not_there",
     [](config& c) {
       static const char* const missing[] = {"/nowhere/at-all", nullptr};
       c.machine = "processes";
       c.processes.worker_command = missing;
     },
     status::unavailable, "worker_command"},
    {0, "unknown_machine", [](config& c) { c.machine = "abacus"; }, status::unavailable, "abacus"},
    {0, "no_machine", [](config& c) { c.machine = nullptr; }, status::unavailable, "threads"},
    {0, "machine_without_a_name", [](config& c) { c.machine = ""; }, status::unavailable, "sim"},
};

class config_rows : public testing::TestWithParam<config_row> {};

TEST_P(config_rows, is_refused) {
  start_alarm();
  for (const char* machine : {"threads", "sim"}) {
    config c;
    c.machine = machine;
    c.workers = 1;
    GetParam().spoil(c);
    try {
      runtime r(c);
      ADD_FAILURE() << "it was opened";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), GetParam().code) << e.what();
      EXPECT_EQ(e.argument(), -1);
      EXPECT_NE(std::string(e.what()).find(GetParam().says), std::string::npos) << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(on, config_rows, testing::ValuesIn(bad_configs), [](const auto& each) {
  return "row_" + std::to_string(each.param.number) + "_" + each.param.name;
});

// The message lists what there is.
TEST(config_rows, an_unknown_machine_is_answered_with_the_known_ones) {
  config c;
  c.machine = "abacus";
  try {
    runtime r(c);
    ADD_FAILURE() << "it was opened";
  } catch (const error& e) {
    for (unsigned i = 0; machine_name(i) != nullptr; ++i) {
      EXPECT_NE(std::string(e.what()).find(machine_name(i)), std::string::npos) << e.what();
    }
  }
}

TEST(config_rows, a_very_long_machine_name_does_no_harm) {
  const std::string name(10'000, 'm');
  config c;
  c.machine = name.c_str();
  try {
    runtime r(c);
    ADD_FAILURE() << "it was opened";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("threads"), std::string::npos) << e.what();
  }
}

TEST(config_rows, zero_workers_means_automatic) {
  start_alarm();
  config c;
  c.workers = 0;
  runtime r(c);
  EXPECT_GE(r.workers(), 1u);
  EXPECT_LE(r.workers(), available_cores());
  r.submit(nothing).wait();
}

// Row 56: the process may not have more memory. Ends with 0 if opening says so and a small runtime
// works all the same.
[[noreturn]] void open_without_memory() {
  config large;
  large.workers = 1;
  large.tickets = 1u << 22;
  rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  try {
    runtime r(large);
    std::_Exit(3);
  } catch (const error& e) {
    if (e.code() != status::out_of_memory) std::_Exit(4);
    if (std::strstr(e.what(), "ulimit -v") == nullptr) std::_Exit(6);
  }
  config small;
  small.workers = 1;
  small.tickets = 64;
  runtime r(small);
  r.submit(nothing).wait();
  std::_Exit(r.close() == status::ok ? 0 : 5);
}

// Threads need address space for their stacks: with this little, not all of 1000 can be had.
[[noreturn]] void open_without_threads() {
  config many;
  many.workers = 1000;
  many.tickets = 64;
  many.host_threads = 1;
  rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  for (int i = 0; i < 3; ++i) {
    try {
      runtime r(many);
      std::_Exit(3);
    } catch (const error& e) {
      if (e.code() != status::out_of_memory) std::_Exit(4);
    }
  }
  std::_Exit(0);
}

using config_death_test = testing::Test;

TEST(config_death_test, row_56_no_memory) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer needs more address space than that";
  EXPECT_EXIT(open_without_memory(), testing::ExitedWithCode(0), "");
}

TEST(config_death_test, row_56_no_threads) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer needs more address space than that";
  EXPECT_EXIT(open_without_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lev::test
