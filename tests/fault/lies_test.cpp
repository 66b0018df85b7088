// Bodies that lie: a worker can write all over its lane, which is what the host knows of it. The
// host believes what can be, harm comes to tasks of that worker only, and its successor knows
// nothing of it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "base/random.hpp"
#include "fault/hostile.hpp"
#include "share/faults.hpp"

namespace lev::test {

namespace {

class lies_test : public testing::TestWithParam<isolation> {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override {
    faults::lanes_begin_after.store(0, memory_order_relaxed);
    alarm(0);
  }
  static config settings(int workers = 1) { return settings_at(GetParam(), workers); }
};

INSTANTIATE_TEST_SUITE_P(at, lies_test, testing::Values(isolation::crash, isolation::confined),
                         [](const testing::TestParamInfo<isolation>& i) {
                           return i.param == isolation::crash ? "crash" : "confined";
                         });

const auto hide_and_spin = define_raw<>("fault.hide_and_spin", [](const call& c) {
  processes::lane<>& lane = lane_of(c);
  for (;;) lane.claimed.store(lane.first - 1, memory_order_relaxed);
  return 0;
});

TEST_P(lies_test, a_task_that_hides_its_begin_is_timed) {
  runtime r(settings());
  const options limited = options().task_ns_max(10'000'000).max_attempts(1);
  EXPECT_NE(r.submit(limited, hide_and_spin).wait_outcome(wait_limit_ns).code, status::timed_out);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

const auto lie_and_die = define_raw<int>("fault.lie_and_die", [](const call& c) {
  const auto ahead = static_cast<std::uint32_t>(value_of(c, 0));
  processes::lane<>& lane = lane_of(c);
  lane.claimed.store(lane.claimed.load(memory_order_relaxed) + ahead, memory_order_relaxed);
  raise(SIGKILL);
  return 0;
});

// A body that says it never began would run for ever; one that names another task would have that
// one blamed.
TEST_P(lies_test, a_death_is_blamed_on_the_task_that_died) {
  for (const int ahead : {-1, 0, 1, 3, 1000}) {
    runtime r(settings());
    std::int64_t sums[4] = {};
    ticket culprit = r.submit(lie_and_die, ahead);
    std::vector<ticket> others;
    for (std::int64_t& s : sums)
      others.push_back(r.submit(add_procedure, std::int64_t{1}, std::int64_t{2}, s));
    EXPECT_EQ(culprit.wait_outcome(wait_limit_ns).code, status::poison) << ahead;
    for (ticket& t : others) EXPECT_EQ(t.wait_outcome(wait_limit_ns).code, status::ok) << ahead;
    for (const std::int64_t s : sums) EXPECT_EQ(s, 3);
    close_and_check(r);
  }
}

void scribble(void* memory, std::size_t bytes, std::uint64_t seed) {
  random_source random(seed);
  auto* word = static_cast<std::uint32_t*>(memory);
  for (std::size_t i = 0; i < bytes / sizeof *word; ++i) word[i] = random.below(0xffffffffu);
}

const auto scribble_procedure = define_raw<std::uint64_t>("fault.scribble", [](const call& c) {
  const std::uint64_t seed = value_of(c, 0);
  scribble(&lane_of(c), sizeof(processes::lane<>), seed);
  if (seed % 2 == 0) raise(SIGKILL);
  return 0;
});

TEST_P(lies_test, scribbling_on_the_whole_lane_harms_nobody_else) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    config c = settings();
    c.processes.task_ns_max = 1'000'000'000;
    c.processes.max_attempts = 1;
    runtime r(c);
    const status code =
        r.submit(scribble_procedure, base_seed() * 100 + i).wait_outcome(wait_limit_ns).code;
    EXPECT_NE(code, status::timed_out);
    // The worker may be beyond help: the next task pays for it, once.
    EXPECT_TRUE(is_usable(r) || is_usable(r));
    close_and_check(r);
  }
}

// The damage that a worker can do to the words that tell it of tasks, and the host of ends.
enum damage : int { records, numbers_of_ends, rung, all_words, damage_count };
const auto damage_procedure = define_raw<int>("fault.damage", [](const call& c) {
  processes::lane<>& lane = lane_of(c);
  const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
  switch (static_cast<damage>(value_of(c, 0))) {
    case records:
      for (auto& r : lane.records) r.number.store(own - 100, memory_order_relaxed);
      break;
    case numbers_of_ends:
      for (auto& e : lane.ended)
        e.store(lane.make_end(own - 100, status::ok), memory_order_relaxed);
      break;
    case rung:
      lane.rung.store(1, memory_order_relaxed);
      break;
    default:
      scribble(&lane, sizeof lane, own);
  }
  return 0;
});

// There is no time limit, and the host sleeps until it is told: nobody is held up for ever, and the
// task that did it is the only one that may fail.
TEST_P(lies_test, a_lane_that_was_overwritten_is_noticed) {
  for (int what = 0; what < damage_count; ++what) {
    config c = settings(what % 2 == 0 ? 1 : 2);
    c.wait = wait_policy::park;
    c.spin_ns = 0;
    runtime r(c);
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<ticket> others;
      std::int64_t sums[6] = {};
      ticket culprit = r.submit(damage_procedure, what);
      for (std::int64_t& s : sums)
        others.push_back(r.submit(add_procedure, std::int64_t{1}, std::int64_t{2}, s));
      EXPECT_NE(culprit.wait_outcome(wait_limit_ns).code, status::timed_out) << what;
      for (ticket& t : others) {
        const status code = t.wait_outcome(wait_limit_ns).code;
        EXPECT_TRUE(what == all_words ? code != status::timed_out : code == status::ok) << what;
      }
    }
    for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(is_usable(r) || is_usable(r)) << what;
    close_and_check(r);
  }
}

const auto damage_and_hang = define_raw<>("fault.damage_and_hang", [](const call& c) {
  for (auto& r : lane_of(c).records) r.number.store(0, memory_order_relaxed);
  for (volatile bool goes_on = true; goes_on;) {
  }
  return 0;
});

// It is ended for what it did to its lane. Its time is not over by far, so it is one attempt.
TEST_P(lies_test, a_lane_that_was_overwritten_is_not_blamed_on_a_time_limit) {
  config c = settings();
  c.processes.task_ns_max = 3'600'000'000'000;
  c.processes.max_attempts = 2;
  runtime r(c);
  const outcome o = r.submit(damage_and_hang).wait_outcome(wait_limit_ns);
  EXPECT_EQ(o.code, status::poison) << text_of(o);
  EXPECT_EQ(r.count().deaths, 2u);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

const auto forge_procedure = define_raw<>("fault.forge", [](const call& c) {
  processes::lane<>& lane = lane_of(c);
  const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
  for (std::uint32_t n = own + 1; n <= own + processes::lane_records; ++n) {
    lane.new_details(n).text_bytes = 0xffff;
    lane.new_details(n).task_code = -5;
    lane.finish(n, static_cast<status>(200));
  }
  raise(SIGKILL);
  return 0;
});

TEST_P(lies_test, forged_ends_do_not_complete_tasks_that_are_not_there) {
  config c = settings();
  c.processes.task_ns_max = 1'000'000'000;
  runtime r(c);
  EXPECT_EQ(r.submit(forge_procedure).wait_outcome(wait_limit_ns).code, status::poison);
  const counters n = r.count();
  EXPECT_EQ(n.submitted, 1u);
  EXPECT_LE(n.completed, 1u);
  bool is_fine = false;  // the forged ends are taken for those of the next tasks, and no others
  for (unsigned i = 0; i < 2 * processes::lane_records && !is_fine; ++i) is_fine = is_usable(r);
  EXPECT_TRUE(is_fine);
  close_and_check(r);
}

// --- What a worker leaves to its successor -----------------------------------------------------

const auto skip_others = define_raw<>("fault.skip_others", [](const call& c) {
  processes::lane<>& lane = lane_of(c);
  const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
  for (std::uint32_t n = own + 1; n <= own + processes::lane_records; ++n)
    static_cast<void>(lane.take_back(n));
  raise(SIGKILL);
  return 0;
});

TEST_P(lies_test, a_dead_worker_cancels_nothing_of_its_successor) {
  config c = settings();
  c.processes.max_attempts = 1;
  runtime r(c);
  EXPECT_EQ(r.submit(skip_others).wait_outcome(wait_limit_ns).code, status::poison);
  for (unsigned i = 0; i < 2 * processes::lane_records; ++i) EXPECT_TRUE(is_usable(r)) << i;
  EXPECT_EQ(r.count().deaths, 1u);
  close_and_check(r);
}

const auto scribble_and_die =
    define_raw<std::uint64_t>("fault.scribble_and_die", [](const call& c) {
      scribble(&lane_of(c), sizeof(processes::lane<>), value_of(c, 0));
      raise(SIGKILL);
      return 0;
    });

// The host has the truth of what it posted; all else of the lane is made anew.
TEST_P(lies_test, a_successor_finds_a_lane_as_good_as_new) {
  config c = settings();
  c.processes.max_attempts = 1;
  runtime r(c);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const status code = r.submit(scribble_and_die, base_seed() * 1000 + i).wait_outcome().code;
    EXPECT_EQ(code, status::poison);
    for (unsigned k = 0; k <= processes::lane_records; ++k) EXPECT_TRUE(is_usable(r)) << i;
  }
  EXPECT_EQ(r.count().deaths, 8u);
  close_and_check(r);
}

const auto say_cancelled = define_raw<>("fault.say_cancelled", [](const call& c) {
  processes::lane<>& lane = lane_of(c);
  const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
  lane.new_details(own).text_bytes = 0;
  lane.finish(own, status::cancelled);
  raise(SIGKILL);
  return 0;
});

TEST_P(lies_test, only_the_host_cancels) {
  runtime r(settings());
  EXPECT_EQ(r.submit(say_cancelled).wait_outcome(wait_limit_ns).code, status::task_failed);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

// --- How far a piece of columns is -------------------------------------------------------------

enum class far_lie : int { stopped, begun };

// The first task says that its piece is done up to the last task of the whole bulk.
const auto lies_far = define(
    "fault.lies_far", [](std::uint32_t index, std::uint32_t last, far_lie how, out<char> row) {
      constexpr std::uintptr_t place_step = std::uintptr_t{1} << 22;
      row[0] = 1;
      if (index != 0) return;
      const auto address = reinterpret_cast<std::uintptr_t>(row.data());
      auto& lane = *reinterpret_cast<processes::lane<>*>(address / place_step * place_step);
      const std::uint32_t own = lane.claimed.load(memory_order_relaxed);
      if (how == far_lie::begun) {
        lane.index_begun.store(std::uint64_t{own} << 32 | last, memory_order_relaxed);
      } else {
        lane.new_details(own) = {};
        lane.new_details(own).stopped_at = last;
        lane.finish(own, status::task_failed);
      }
      raise(SIGKILL);
    });

// A bulk larger than the store, for whose pieces there are no tickets, travels in parts. A worker
// was given no more than its part: the host copies no more of the store, and the rest runs.
TEST(far_lies_test, a_part_of_a_piece_ends_where_it_ends) {
  constexpr std::uint32_t count = 64;
  constexpr std::size_t row_bytes = 4096;
  for (const far_lie how : {far_lie::stopped, far_lie::begun}) {
    config c = settings_at(isolation::confined);
    c.tickets = 4;
    c.full = when_full::wait;
    c.local_store_bytes = 16 * row_bytes;
    c.processes.max_attempts = 1;
    runtime r(c);
    std::vector<std::uint32_t> index(count);
    for (std::uint32_t i = 0; i < count; ++i) index[i] = i;
    std::vector<char> rows(count * row_bytes, 7);
    std::int64_t sums[2] = {};
    std::vector<ticket> held;
    for (std::int64_t& s : sums)
      held.push_back(r.submit(add_procedure, std::int64_t{1}, std::int64_t{2}, s));
    ticket bulk =
        r.submit_bulk(count, lies_far, each(index), count - 1, how, each(rows.data(), row_bytes));
    const outcome o = bulk.wait_outcome(wait_limit_ns);
    EXPECT_NE(o.code, status::ok);
    EXPECT_EQ(o.failures, 1u);
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(rows[i * row_bytes], i == 0 ? 7 : 1) << i;
    for (ticket& t : held) EXPECT_EQ(t.wait_outcome(wait_limit_ns).code, status::ok);
    close_and_check(r);
  }
}

// --- Numbers that wrap -------------------------------------------------------------------------

constexpr std::uint32_t lengths_before_wrap[] = {0, 1, 2, 15, 16, 17};

TEST_P(lies_test, numbers_of_tasks_wrap) {
  for (const std::uint32_t before : lengths_before_wrap) {
    faults::lanes_begin_after.store(0u - before - 1, memory_order_relaxed);
    runtime r(settings());
    for (unsigned i = 0; i < 3 * processes::lane_records; ++i)
      ASSERT_TRUE(is_usable(r)) << before << " " << i;
    EXPECT_EQ(r.count().deaths, 0u);
    close_and_check(r);
  }
}

// Whatever a task's number, its death is its own: it is neither run again nor another's.
TEST_P(lies_test, a_death_at_a_number_that_wraps_is_known) {
  for (const std::uint32_t before : lengths_before_wrap) {
    faults::lanes_begin_after.store(0u - before - 1, memory_order_relaxed);
    config c = settings();
    c.processes.max_attempts = 1;
    runtime r(c);
    for (unsigned i = 0; i < 20; ++i) {
      ticket culprit = r.submit(die_procedure);
      std::int64_t sum = 0;
      ticket other = r.submit(add_procedure, std::int64_t{i}, std::int64_t{2}, sum);
      EXPECT_EQ(culprit.wait_outcome(wait_limit_ns).code, status::poison) << before << " " << i;
      EXPECT_EQ(other.wait_outcome(wait_limit_ns).code, status::ok) << before << " " << i;
      EXPECT_EQ(sum, i + 2);
    }
    EXPECT_EQ(r.count().deaths, 20u);
    EXPECT_EQ(r.count().reruns, 0u);
    close_and_check(r);
  }
}

const auto hold_procedure = define("fault.hold", [](in<std::uint64_t> goes_on) {
  while (*static_cast<const volatile std::uint64_t*>(goes_on.data()) != 0) {
  }
});

// Tasks wait behind one that runs; every second one is cancelled, and no other.
TEST_P(lies_test, cancelling_at_numbers_that_wrap) {
  for (const std::uint32_t before : {2u, 5u}) {
    faults::lanes_begin_after.store(0u - before - 1, memory_order_relaxed);
    config c = settings();
    c.staging = staging::in_place;
    runtime r(c);
    shared_array<std::uint64_t> goes_on(1);
    goes_on[0] = 1;
    ticket first = r.submit(hold_procedure, goes_on);
    std::int64_t sums[8] = {};
    std::vector<ticket> others;
    for (std::int64_t& s : sums)
      others.push_back(r.submit(add_procedure, std::int64_t{1}, std::int64_t{2}, s));
    for (std::size_t i = 0; i < others.size(); i += 2) others[i].cancel();
    goes_on[0] = 0;
    EXPECT_EQ(first.wait_outcome(wait_limit_ns).code, status::ok);
    for (std::size_t i = 0; i < others.size(); ++i) {
      const status code = others[i].wait_outcome(wait_limit_ns).code;
      EXPECT_EQ(code, i % 2 == 0 ? status::cancelled : status::ok) << before << " " << i;
      EXPECT_EQ(sums[i], i % 2 == 0 ? 0 : 3);
    }
    close_and_check(r);
  }
}

// --- What user code does before a body ---------------------------------------------------------

constexpr portable_context fatal_context{nullptr, 0, nullptr,
                                         [](const void*, unsigned, void*) -> void* {
                                           raise(SIGSEGV);
                                           return nullptr;
                                         }};

// The user's rebuild() of a context is a part of the task: its death counts as an attempt.
TEST_P(lies_test, a_context_that_kills_whoever_rebuilds_it_is_blamed) {
  procedure_info info;
  info.name = "fault.fatal_context";
  info.run = [](const call&) { return 0; };
  info.portable = &fatal_context;
  const procedure<void()> fatal{detail::register_or_throw(info)};
  config c = settings(2);
  c.processes.max_attempts = 3;
  runtime r(c);
  EXPECT_EQ(r.submit(fatal).wait_outcome(wait_limit_ns).code, status::poison);
  EXPECT_EQ(r.count().deaths, 3u);
  close_and_check(r);
}

// --- Texts -------------------------------------------------------------------------------------

const auto throw_text = define("fault.throw_text", [](int which) {
  if (which == 0)
    throw std::runtime_error(
        "a\u009b31mb\x9b"
        "31mc\x1b[31md\u202ee");
  std::string text(static_cast<std::size_t>(which), 'x');
  throw std::runtime_error(text + "\u00e9\u20ac" + text);
});

TEST_P(lies_test, texts_are_text) {
  runtime r(settings());
  const std::string text = text_of(r.submit(throw_text, 0).wait_outcome(wait_limit_ns));
  EXPECT_NE(text.find("a?31mb?31mc?[31md?e"), std::string::npos) << text;
  // Cut where a character ends, wherever that is.
  const std::string most(processes::end_details::text_max, 'x');
  for (int n = processes::end_details::text_max - 6; n <= int{processes::end_details::text_max};
       ++n) {
    const std::string cut = text_of(r.submit(throw_text, n).wait_outcome(wait_limit_ns));
    const std::size_t at = cut.find('x');
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(cut.find('?', at), std::string::npos) << n << cut;
    const std::string whole = std::string(static_cast<std::size_t>(n), 'x') + "\u00e9\u20ac" + most;
    EXPECT_EQ(whole.compare(0, cut.size() - at, cut, at), 0) << n << cut;
    EXPECT_NE(static_cast<unsigned char>(whole[cut.size() - at]) & 0xc0, 0x80) << n << cut;
  }
  close_and_check(r);
}

}  // namespace

}  // namespace lev::test
