// Conformance: what a runtime tells about itself. Counters, names, its clock, and the trace.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <leveret/this_task.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/json.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class report_test : public machine_test {
 protected:
  // A file that goes away with the test.
  static std::string trace_path() {
    return testing::TempDir() + "leveret_trace_" + GetParam().name + "_" + std::to_string(getpid());
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    std::remove(path.c_str());
    return text.str();
  }
};
LEV_ON_EVERY_MACHINE(report_test);

const auto piece = define("report.piece", [](range, ref<counter> pieces) { ++*pieces.to; });

LEV_TEST(report_test, counters_add_up) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  counter n = 0;
  counter pieces = 0;
  for (int i = 0; i < 100; ++i) expect_ok(r.submit(count_one, ref{&n}));
  expect_ok(r.submit(options().grain(1), piece, range{0, 1000}, ref{&pieces}));
  expect_ok(r.submit_bulk(50, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); }));
  ticket bad = r.submit(throw_error, 1);
  wait(bad);
  expect_all_done();
  const counters k = r.count();
  // A bulk counts itself and its tasks, a diced task itself and its pieces.
  const int diced = pieces > 1 ? 1 + pieces : 1;
  EXPECT_EQ(k.submitted, static_cast<std::uint64_t>(100 + diced + 51 + 1));
  EXPECT_EQ(k.completed, k.submitted);
  EXPECT_EQ(k.failed, 1u);
  EXPECT_LE(k.helped, 1u);  // the bulk itself may be completed by whoever submitted it
  // Tasks whose memory is in place are cut by those who take them, without a pass.
  EXPECT_EQ(k.passes > 0, pieces > 1 && copies());
  EXPECT_EQ(k.bad_filters, 0u);
  std::uint64_t by_worker = 0;
  for (unsigned w = 0; w <= r.workers(); ++w) by_worker += r.count_worker(w).completed;
  // Joins are nobody's, where a worker's tasks are those that its process ran.
  if (!is_remote()) {
    EXPECT_EQ(by_worker, k.completed);
  }
  EXPECT_EQ(r.count_worker(r.workers() + 1).completed, 0u);
}

LEV_TEST(report_test, copied_bytes_are_counted) {
  runtime& r = open();
  std::vector<std::uint64_t> x(64, 0);
  expect_ok(r.submit(increment, x));
  const std::uint64_t contiguous = r.count().staged_bytes;
  EXPECT_EQ(contiguous, copies() ? 512u : 0u);
  expect_ok(r.submit(increment, strided(x.data(), 4, 8, 16)));
  EXPECT_EQ(r.count().staged_bytes, contiguous + 256);
}

LEV_TEST(report_test, a_helping_host_is_counted) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.full = when_full::help;
  c.tickets = 16;
  runtime& r = open(c);
  if (is_sim()) GTEST_SKIP() << "the gate of virtual time opens by itself";
  gate g(r, r.workers());
  for (int i = 0; i < 100; ++i) r.submit(nothing);
  EXPECT_GT(r.count().helped, 50u);
  EXPECT_EQ(r.count_worker(r.workers()).completed, r.count().helped);
}

LEV_TEST(report_test, names_and_numbers) {
  runtime& r = open();
  EXPECT_STREQ(r.machine(), GetParam().machine);
  EXPECT_EQ(r.workers(), static_cast<unsigned>(GetParam().workers));
  EXPECT_NE(std::string(version()).find('.'), std::string::npos);
  bool is_listed = false;
  for (unsigned i = 0; machine_name(i) != nullptr; ++i) {
    is_listed |= std::string(machine_name(i)) == GetParam().machine;
  }
  EXPECT_TRUE(is_listed);
  EXPECT_EQ(machine_unavailable(GetParam().machine), nullptr);
  EXPECT_NE(machine_unavailable("no such machine"), nullptr);
  EXPECT_GE(available_cores(), 1u);
}

LEV_TEST(report_test, the_clock_does_not_run_backwards) {
  runtime& r = open();
  std::uint64_t last = r.now_ns();
  for (int i = 0; i < 100; ++i) {
    expect_ok(r.submit(nothing));
    ASSERT_GE(r.now_ns(), last);
    last = r.now_ns();
  }
  EXPECT_GT(last, 0u);
}

LEV_TEST(report_test, the_trace_is_json_with_an_event_for_every_task) {
  config c = settings();
  c.trace_events = 1000;
  runtime& r = open(c);
  static const auto quoted = define("report \"quoted\" \\ \t", [] {});
  constexpr int count = 50;
  for (int i = 0; i < count; ++i) expect_ok(r.submit(quoted));
  std::vector<std::uint64_t> x(64, 0);
  expect_ok(r.submit(increment, strided(x.data(), 4, 8, 16)));
  expect_all_done();
  const std::string path = trace_path();
  ASSERT_EQ(r.write_trace(path.c_str()), status::ok);
  const std::string text = read(path);
  EXPECT_TRUE(is_json(text)) << text.substr(0, 500);
  int tasks = 0;
  for (std::size_t at = 0; (at = text.find("report \\\"quoted\\\"", at)) != std::string::npos;
       ++at) {
    ++tasks;
  }
  EXPECT_EQ(tasks, count);
  if (!is_remote()) {
    EXPECT_NE(text.find("\"stage\""), std::string::npos);
  }
  EXPECT_NE(r.trace_hash(), 0u);
}

// JSON is UTF-8: what a name has that is none becomes the character for that.
LEV_TEST(report_test, names_that_are_no_text_are_json_all_the_same) {
  config c = settings();
  c.trace_events = 64;
  runtime& r = open(c);
  static const auto odd = define("report.\xe4\xf6\xed\xa0\x80.\u20ac", [] {});
  expect_ok(r.submit(odd));
  expect_all_done();
  const std::string path = trace_path();
  ASSERT_EQ(r.write_trace(path.c_str()), status::ok);
  const std::string text = read(path);
  EXPECT_TRUE(is_json(text)) << text;
  EXPECT_NE(text.find("\"report.\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd.\u20ac\""), std::string::npos)
      << text;
}

LEV_TEST(report_test, a_full_trace_keeps_the_last_events) {
  config c = settings();
  c.trace_events = 8;
  runtime& r = open(c);
  for (int i = 0; i < 300; ++i) expect_ok(r.submit(nothing));
  expect_all_done();
  const std::string path = trace_path();
  ASSERT_EQ(r.write_trace(path.c_str()), status::ok);
  EXPECT_TRUE(is_json(read(path)));
}

LEV_TEST(report_test, busy_time_is_counted_while_traced) {
  config c = settings();
  c.trace_events = 64;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  {
    gate g(r, 1);
  }
  std::uint64_t busy = 0;
  for (unsigned w = 0; w < r.workers(); ++w) busy += r.count_worker(w).busy_ns;
  EXPECT_GT(busy, 0u);
}

// The lanes of workers are traced whoever submits; of hosts, only the first one's.
LEV_TEST(report_test, a_traced_task_of_another_host_begins_after_its_submit) {
  if (is_sim()) GTEST_SKIP() << "it has one host thread";
  config c = settings();
  c.trace_events = 64;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  static const auto sent_last = define("report.sent_last", [] {});
  expect_ok(r.submit(nothing));  // so this thread is the first host
  std::uint64_t before_ns = 0;
  std::thread([&] {
    for (unsigned i = 0; i < 2 * r.workers(); ++i) expect_ok(r.submit(nothing));
    before_ns = r.now_ns();
    expect_ok(r.submit(sent_last));
  }).join();
  expect_all_done();
  const std::string path = trace_path();
  ASSERT_EQ(r.write_trace(path.c_str()), status::ok);
  const std::string text = read(path);
  const std::string name = "\"report.sent_last\",\"ts\":";
  const std::size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos) << text;
  const auto begin_us = std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
  EXPECT_GE(begin_us, before_ns / 1000) << text;
}

// Tasks that give way to each other overlap: each context has a lane, and no time counts twice.
const auto take_turns = define("report.take_turns", [](ref<counter> turn, int me) {
  auto task = this_task();
  for (int i = 0; i < 20; ++i) {
    task.wait_until([&] { return turn.to->load() % 2 == me; });
    turn.to->fetch_add(1);
  }
});

LEV_TEST(report_test, contexts_have_lanes_and_are_busy_together) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.trace_events = 64;
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  counter turn = 0;
  const std::uint64_t begin_ns = r.now_ns();
  ticket both[2] = {r.submit(take_turns, ref{&turn}, 0), r.submit(take_turns, ref{&turn}, 1)};
  ASSERT_EQ(wait_all(both, 2, wait_limit_ns()).code, status::ok);
  expect_all_done();
  const std::uint64_t busy_ns = r.count_worker(0).busy_ns;
  EXPECT_GT(busy_ns, 0u);
  EXPECT_LE(busy_ns, r.now_ns() - begin_ns);
  const std::string path = trace_path();
  ASSERT_EQ(r.write_trace(path.c_str()), status::ok);
  const std::string text = read(path);
  EXPECT_TRUE(is_json(text)) << text.substr(0, 500);
  EXPECT_NE(text.find("\"worker 0, context 1\""), std::string::npos) << text;
}

LEV_TEST(report_test, without_a_trace_there_is_none_to_write) {
  runtime& r = open();
  expect_ok(r.submit(nothing));
  EXPECT_EQ(r.write_trace(trace_path().c_str()), status::not_supported);
  EXPECT_EQ(r.trace_hash() != 0, is_sim());  // which hashes its turns
}

LEV_TEST(report_test, a_trace_that_cannot_be_written_is_told) {
  config c = settings();
  c.trace_events = 8;
  runtime& r = open(c);
  EXPECT_EQ(r.write_trace("/nowhere/at/all"), status::unavailable);
  EXPECT_EQ(r.write_trace(nullptr), status::unavailable);
  EXPECT_EQ(r.write_trace("/dev/full"), status::unavailable);
}

LEV_TEST(report_test, a_pipe_that_nobody_reads_is_an_error) {
  config c = settings();
  c.trace_events = 2048;  // more than a pipe holds
  runtime& r = open(c);
  for (int i = 0; i < 2048; ++i) expect_ok(r.submit(nothing));
  const std::string path = trace_path();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread reader([&path] { ::close(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); });
  EXPECT_EQ(r.write_trace(path.c_str()), status::unavailable);
  reader.join();
  std::remove(path.c_str());
}

}  // namespace
}  // namespace lev::test
