// Everything that the host reads from shared memory, while its workers write random values there:
// the host neither crashes nor hangs, and each ticket gets one outcome.
#include <csignal>
#include <vector>

#include "base/random.hpp"
#include "fault/hostile.hpp"

namespace lev::test {

namespace {

std::uint32_t odd_value(random_source& random, std::uint32_t own) {
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return ~0u;
    case 2:
      return own + random.below(5) - 2;
    case 3:
      return own + processes::lane_records;
    default:
      return random.below(~0u);
  }
}

// Writes to one of the fields that are the worker's. The words that say that a task ended are
// forged seldom: a worker that gets out of step is killed for it, and that takes its time.
void disturb(processes::lane<>& lane, random_source& random, std::uint32_t own) {
  const std::uint32_t value = odd_value(random, own);
  const std::uint32_t place = random.below(processes::lane_records);
  processes::end_details& e = lane.details[place];
  switch (random.below(8)) {
    case 0:
      lane.claimed.store(value, memory_order_relaxed);
      return;
    case 1:
      lane.asleep.store(value, memory_order_relaxed);
      return;
    case 2:
      lane.rung.store(value, memory_order_relaxed);
      return;
    case 3:
      e.stopped_at = value;
      return;
    case 4:
      e.text_bytes = static_cast<std::uint16_t>(value);
      return;
    case 5:
      e.task_code = static_cast<std::int32_t>(value);
      return;
    case 6:
      e.text[value % sizeof e.text] = static_cast<char>(value >> 8);
      return;
    default:
      if (random.below(64) == 0)
        lane.ended[place].store(std::uint64_t{value} << 32 | random.below(256),
                                memory_order_seq_cst);
  }
}

constexpr unsigned changes_per_task = 32;

const auto fuzz_procedure = define_raw<std::uint64_t>("fault.fuzz", [](const call& c) {
  random_source random(value_of(c, 0));
  processes::lane<>& lane = lane_of(c);
  const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
  for (unsigned i = 0; i < changes_per_task; ++i) disturb(lane, random, own);
  if (random.below(16) == 0) raise(SIGKILL);
  return 0;
});

class fuzz_test : public testing::TestWithParam<isolation> {};
INSTANTIATE_TEST_SUITE_P(at, fuzz_test, testing::Values(isolation::crash, isolation::confined),
                         [](const testing::TestParamInfo<isolation>& i) {
                           return i.param == isolation::crash ? "crash" : "confined";
                         });

TEST_P(fuzz_test, the_host_survives_whatever_workers_write) {
  start_alarm();
  constexpr unsigned batch = 16;
  constexpr unsigned tasks_min = 100;
  const std::uint64_t limit_ns = is_deep() ? 60'000'000'000 : 5'000'000'000;
  std::printf("LEVERET_SEED=%llu\n", static_cast<unsigned long long>(base_seed()));
  config c = settings_at(GetParam(), 2);
  c.processes.task_ns_max = 20'000'000;
  runtime r(c);
  const auto now_ns = [] {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
  };
  const std::uint64_t begin_ns = now_ns();
  std::uint64_t outcomes = 0;
  std::uint64_t tasks = 0;
  while (tasks < tasks_min || (now_ns() - begin_ns < limit_ns && tasks < 4000)) {
    std::vector<ticket> tickets;
    for (unsigned i = 0; i < batch; ++i)
      tickets.push_back(r.submit(fuzz_procedure, base_seed() * 1'000'003 + tasks++));
    for (ticket& t : tickets) {
      const status code = t.wait_outcome(wait_limit_ns).code;
      ASSERT_NE(code, status::timed_out) << "after " << tasks << " tasks";
      ++outcomes;
    }
  }
  EXPECT_EQ(outcomes, tasks);
  bool is_fine = false;
  for (int i = 0; i < 100 && !is_fine; ++i) is_fine = is_usable(r);
  EXPECT_TRUE(is_fine);
  std::printf("%llu changes in %llu tasks\n",
              static_cast<unsigned long long>(tasks * changes_per_task),
              static_cast<unsigned long long>(tasks));
  close_and_check(r);
  alarm(0);
}

}  // namespace

}  // namespace lev::test
