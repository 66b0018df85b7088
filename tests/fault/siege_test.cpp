// One worker of a runtime is hostile, and writes random values to all that it can write to: its
// lane, its store, the bell, at any moment, while the host submits, cancels, waits and closes. The
// others are honest. What must hold:
//
//   1. The host neither crashes nor hangs, and each ticket gets one outcome.
//   2. Every task whose end the host took from an honest worker has the right result. That is
//      known from the result itself, which says by a code of 64 bits whose it is.
//   3. No honest worker dies.
//
// LEVERET_DEEP=1: for minutes. LEVERET_SEED repeats a run, as far as that is up to the seed.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/random.hpp"
#include "fault/hostile.hpp"

namespace lev::test {

namespace {

constexpr std::size_t store_bytes = 64 << 10;
constexpr std::size_t lane_bytes = sizeof(processes::lane<>) + store_bytes;

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// --- The bodies --------------------------------------------------------------------------------

// The answer that only the worker of that lane is to give.
std::uint64_t code_of(std::uint64_t question, std::uintptr_t lane) {
  std::uint64_t x = question * 0x9e3779b97f4a7c15u ^ lane;
  for (int i = 0; i < 3; ++i) x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
  return x;
}

// Values that are near what is there do more harm than others.
std::uint32_t near_value(random_source& random, std::uint32_t own) {
  switch (random.below(6)) {
    case 0:
      return random.below(3);
    case 1:
      return ~0u - random.below(3);
    case 2:
      return own + random.below(2 * processes::lane_records) - processes::lane_records;
    default:
      return random.below(~0u);
  }
}

void scribble_anywhere(processes::lane<>& lane, random_source& random, std::uint32_t own) {
  auto* words = reinterpret_cast<volatile std::uint32_t*>(&lane);
  for (std::uint32_t i = random.below(64); i > 0; --i)
    words[random.below(lane_bytes / sizeof *words)] = near_value(random, own);
}

void forge_ends(processes::lane<>& lane, random_source& random, std::uint32_t own) {
  for (std::uint32_t i = random.below(processes::lane_records); i > 0; --i) {
    const std::uint32_t number = own + random.below(4);
    processes::end_details& how = lane.new_details(number);
    how.text_bytes = static_cast<std::uint16_t>(near_value(random, own));
    for (char& c : how.text) c = static_cast<char>(random.below(256));
    lane.finish(number, static_cast<status>(random.below(256)));
  }
}

void disturb_words(processes::lane<>& lane, random_source& random, std::uint32_t own) {
  processes::lane<>::word* const words[] = {&lane.asleep,  &lane.rung,    &lane.claimed,
                                            &lane.arrived, &lane.died_at, &lane.orders};
  for (std::uint32_t i = random.below(32); i > 0; --i)
    words[random.below(std::size(words))]->store(near_value(random, own), memory_order_seq_cst);
}

// The number comes by the lane, where the task before may have written another.
void ring_loudly(random_source& random, int bell) {
  if (bell <= STDERR_FILENO) return;
  const std::uint64_t most = ~std::uint64_t{1};
  for (std::uint32_t i = random.below(8); i > 0; --i) {
    [[maybe_unused]] const ssize_t n = write(bell, &most, sizeof most);  // never blocks
  }
}

void do_harm(processes::lane<>& lane, std::uint64_t seed, int bell) {
  random_source random(seed);
  const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
  const std::uint64_t end_ns = now_ns() + (random.below(4) == 0 ? random.below(3'000'000) : 0);
  do {
    switch (random.below(4)) {
      case 0:
        scribble_anywhere(lane, random, own);
        break;
      case 1:
        forge_ends(lane, random, own);
        break;
      case 2:
        disturb_words(lane, random, own);
        break;
      default:
        ring_loudly(random, bell);
    }
  } while (now_ns() < end_ns);
  // Most go: one that is out of step with its line is of no use to a test.
  if (random.below(4) != 0) raise(SIGKILL);
}

// Values: the question, the hostile worker's lane, the bell. Then the answer, a result.
const auto besiege = define_raw<std::uint64_t, std::uint64_t, int, result<std::uint64_t>>(
    "fault.besiege", [](const call& c) {
      processes::lane<>& lane = lane_of(c);
      const std::uint64_t question = value_of(c, 0);
      const bool is_hostile = reinterpret_cast<std::uintptr_t>(&lane) == value_of(c, 1);
      const std::uint64_t answer = code_of(question, reinterpret_cast<std::uintptr_t>(&lane));
      void* to = reinterpret_cast<void*>(c.arguments[3].address);
      if (is_hostile) {
        do_harm(lane, question, static_cast<int>(value_of(c, 2)));
      } else {
        std::memcpy(to, &answer, sizeof answer);
      }
      return 0;
    });

// The number of the bell in a worker, by what the system says of its files. It is the same at both
// levels.
const auto find_bell = define("fault.find_bell", [](result<int> number) {
  number = -1;
  for (int file = 0; file < 1024; ++file) {
    char path[32];
    char target[64] = "";
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const ssize_t n = readlink(path, target, sizeof target - 1);
    if (n > 0 && std::strcmp(target, "anon_inode:[eventfd]") == 0) number = file;
  }
});

int bell_number() {
  runtime r(settings_at(isolation::crash));
  int number = -1;
  EXPECT_EQ(r.submit(find_bell, number).wait_outcome(wait_limit_ns).code, status::ok);
  EXPECT_GE(number, 0);
  return number;
}

// --- The host ----------------------------------------------------------------------------------

struct tally {
  std::uint64_t tasks = 0;
  std::uint64_t right = 0;      // answered by an honest worker
  std::uint64_t cancelled = 0;  // by the host, whoever had it
  std::uint64_t deaths = 0;
};

class siege : public testing::TestWithParam<isolation> {
 protected:
  void SetUp() override {
    start_alarm();
    std::printf("LEVERET_SEED=%llu\n", static_cast<unsigned long long>(base_seed()));
    bell_ = bell_number();
  }
  void TearDown() override { alarm(0); }

  static config settings() {
    config c = settings_at(GetParam(), 3);
    c.local_store_bytes = store_bytes;
    c.processes.task_ns_max = 500'000'000;  // an honest worker may lose its core for a while
    c.processes.max_attempts = 1;
    c.processes.restarts_max = 1'000'000;
    return c;
  }

  // One batch: each ticket is waited for, by any of the ways, and some are cancelled.
  void run_batch(runtime& r, random_source& random, bool may_cancel, tally& sum) {
    constexpr std::size_t batch = 48;
    const std::uint64_t hostile = lane_of_worker(r, 0);
    std::uint64_t questions[batch];
    std::uint64_t answers[batch] = {};
    std::vector<ticket> tickets;
    for (std::size_t i = 0; i < batch; ++i) {
      questions[i] = next_question_++;
      tickets.push_back(r.submit(besiege, questions[i], hostile, bell_, answers[i]));
      if (may_cancel && random.below(4) == 0) tickets[random.below(i + 1)].cancel();
    }
    for (std::size_t i = 0; i < batch; ++i) {
      const status code = tickets[i].wait_outcome(wait_limit_ns).code;
      ASSERT_NE(code, status::timed_out) << "after " << sum.tasks << " tasks";
      ASSERT_NE(code, status::pool_down);
      ++sum.tasks;
      sum.cancelled += code == status::cancelled;
      sum.right += code == status::ok && is_right(r, questions[i], answers[i]);
    }
  }

  static std::uint64_t lane_of_worker(runtime& r, std::uint32_t worker) {
    constexpr std::uintptr_t place_step = std::uintptr_t{1} << 22;
    const auto store =
        reinterpret_cast<std::uintptr_t>(r.state()->machine->remote()->store_of(worker));
    return store / place_step * place_step;
  }
  static bool is_right(runtime& r, std::uint64_t question, std::uint64_t answer) {
    return answer == code_of(question, lane_of_worker(r, 1)) ||
           answer == code_of(question, lane_of_worker(r, 2));
  }

  // A runtime from its opening to its end, in the middle of which it is closed.
  void run_round(random_source& random, bool may_cancel, tally& all) {
    runtime r(settings());
    tally sum;
    for (int i = 0; i < 4; ++i) {
      ASSERT_NO_FATAL_FAILURE(run_batch(r, random, may_cancel, sum));
    }
    const auto& participants = r.state()->participants;
    std::uint64_t from_honest = 0;
    for (std::uint32_t w = 1; w < 3; ++w) {
      from_honest += participants[w].counters.executed.read();
      EXPECT_EQ(participants[w].counters.deaths.read(), 0u) << "an honest worker died";
    }
    EXPECT_LE(sum.right, from_honest);
    EXPECT_GE(sum.right + sum.cancelled, from_honest) << "an honest worker's result was lost";
    if (!may_cancel) {
      EXPECT_EQ(sum.right, from_honest);
      EXPECT_EQ(sum.cancelled, 0u) << "nobody had cancelled anything";
    }
    // Results of tasks under way when it closes are of no interest; that they end is.
    std::uint64_t answers[16];
    std::vector<ticket> left;
    for (std::uint64_t& a : answers)
      left.push_back(r.submit(besiege, next_question_++, lane_of_worker(r, 0), bell_, a));
    for (ticket& t : left) t.cancel();
    EXPECT_EQ(r.close(wait_limit_ns), status::ok);
    left.clear();
    all.deaths += r.count().deaths;
    expect_nothing_leaked(r);
    all.tasks += sum.tasks;
    all.right += sum.right;
    all.cancelled += sum.cancelled;
  }

  int bell_ = -1;
  std::uint64_t next_question_ = base_seed() * 1'000'000'007u;
};

INSTANTIATE_TEST_SUITE_P(at, siege, testing::Values(isolation::crash, isolation::confined),
                         [](const testing::TestParamInfo<isolation>& i) {
                           return i.param == isolation::crash ? "crash" : "confined";
                         });

TEST_P(siege, a_hostile_worker_harms_nobody_else) {
  const std::uint64_t limit_ns = is_deep() ? 120'000'000'000 : 5'000'000'000;
  constexpr int rounds_min = 2;
  random_source random(base_seed());
  const std::uint64_t begin_ns = now_ns();
  tally all;
  for (int round = 0; round < rounds_min || now_ns() - begin_ns < limit_ns; ++round) {
    start_alarm();  // a round that hangs is found, however many there are
    ASSERT_NO_FATAL_FAILURE(run_round(random, round % 2 == 1, all));
    if (HasFailure()) return;
  }
  EXPECT_GT(all.right, all.tasks / 4);
  EXPECT_GT(all.deaths, 0u);
  std::printf(
      "%llu tasks, %llu from honest workers, %llu cancelled, %llu deaths\n",
      static_cast<unsigned long long>(all.tasks), static_cast<unsigned long long>(all.right),
      static_cast<unsigned long long>(all.cancelled), static_cast<unsigned long long>(all.deaths));
}

// The last write does not succeed: there is no room in the counter.
const auto ring_procedure = define("fault.ring", [](int bell, result<int> error_number) {
  const std::uint64_t most = ~std::uint64_t{1};
  for (int i = 0; i < 100; ++i) {
    errno = 0;
    [[maybe_unused]] const ssize_t n = write(bell, &most, sizeof most);
  }
  error_number = errno;
});

TEST_P(siege, a_bell_that_is_full_keeps_nobody) {
  runtime r(settings_at(GetParam(), 2));
  for (int i = 0; i < 50; ++i) {
    int code = 0;
    EXPECT_EQ(r.submit(ring_procedure, bell_, code).wait_outcome(wait_limit_ns).code, status::ok);
    EXPECT_TRUE(code == EAGAIN || code == 0) << "it is not the bell: " << code;
    EXPECT_TRUE(is_usable(r));
  }
  close_and_check(r);
}

}  // namespace

}  // namespace lev::test
