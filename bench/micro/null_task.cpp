// null-task: submit an empty task and wait for it; the worker is awake on the other core.
//
// The limit is two cache lines that the same two cores write in turn: a task goes there in one and
// comes back in another. One line that both write is less, and no task can have it.
#include "limits/pingpong.hpp"
#include "micro/one_worker.hpp"
#include "registry.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr figure_spec rtt0_over_two_lines{"rtt0_over_two_lines", "ratio", "<= 1.15"};
constexpr figure_spec rtt3_over_two_lines{"rtt3_over_two_lines", "ratio", "<= 1.3"};
constexpr figure_spec rtt0_over_pingpong{"rtt0_over_pingpong", "ratio", ""};
constexpr figure_spec rtt3_over_pingpong{"rtt3_over_pingpong", "ratio", ""};
constexpr figure_spec p99_ns{"p99_ns", "ns", ""};
constexpr figure_spec max_us{"max_us", "us", ""};
constexpr figure_spec rtt0_ns{"rtt0_ns", "ns", ""};
constexpr figure_spec rtt3_ns{"rtt3_ns", "ns", ""};
constexpr figure_spec raw_ns{"pingpong_ns", "ns", ""};
constexpr figure_spec two_lines_ns{"pingpong_two_lines_ns", "ns", ""};

void nothing() {}
void nothing_with_memory(lev::in<double>, lev::in<double>, lev::inout<double>) {}
void multiply_add(lev::in<double> a, lev::in<double> b, lev::inout<double> c) {
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += a[i] * b[i];
}

struct line {
  alignas(64) double values[8];
  double* data() noexcept { return values; }
  std::size_t size() const noexcept { return 8; }
};

struct tail {
  samples p99_ns;
  samples max_us;
};

// Times every round trip by itself; each includes one reading of the clock.
template <class RoundTrip>
void add_tail(tail& to, std::size_t count, RoundTrip&& round_trip) {
  static std::vector<std::uint64_t> times_ns;
  times_ns.assign(count, 0);
  for (std::size_t i = 0; i < count / 10; ++i) round_trip();
  std::uint64_t before_ns = now_ns();
  for (std::uint64_t& time_ns : times_ns) {
    round_trip();
    const std::uint64_t after_ns = now_ns();
    time_ns = after_ns - before_ns;
    before_ns = after_ns;
  }
  const auto p99 = times_ns.begin() + static_cast<std::ptrdiff_t>(count * 99 / 100);
  std::nth_element(times_ns.begin(), p99, times_ns.end());
  to.p99_ns.push_back(static_cast<double>(*p99));
  to.max_us.push_back(static_cast<double>(*std::max_element(p99, times_ns.end())) * 1e-3);
}

}  // namespace

void null_task(const settings& how, report& figures) {
  const core_pair cores = choose_core_pair();
  const auto nothing_procedure = lev::define("bench.nothing", nothing);
  const auto memory_procedure = lev::define("bench.nothing_with_memory", nothing_with_memory);
  const auto checked_procedure = lev::define("bench.multiply_add", multiply_add);
  one_worker leveret(cores);
  static line a{{2, 2, 2, 2, 2, 2, 2, 2}}, b{{3, 3, 3, 3, 3, 3, 3, 3}}, c{};
  const auto trip0 = [&] { leveret->submit(nothing_procedure).wait(); };
  const auto trip3 = [&] { leveret->submit(memory_procedure, a, b, c).wait(); };

  constexpr int checked_trips = 1000;
  for (int i = 0; i < checked_trips; ++i) leveret->submit(checked_procedure, a, b, c).wait();
  for (const double value : c.values) check(value == 6.0 * checked_trips, "three arguments");

  const std::size_t trips = how.scaled(400'000);
  const std::size_t tail_trips = how.scaled(1'000'000);
  const auto rounds = interleave(
      how.rounds(),
      {[&] { return pingpong_ns(cores.worker, trips); }, [&] { return typical_ns(trips, trip0); },
       [&] { return typical_ns(trips, trip3); },
       [&] { return pingpong_ns(cores.worker, trips, layout::line_each_way); }});
  tail raw, task;
  for (int round = 0; round < how.rounds(); ++round) {
    wait_until_quiet();
    {
      pingpong<polling::paused> pair(cores.worker);
      add_tail(raw, tail_trips, [&] { pair.round_trip(); });
    }
    wait_until_quiet();
    add_tail(task, tail_trips, trip0);
  }
  leveret.check_worker_ran();

  const std::string limit = text("raw cache-line ping-pong: %.0f ns", median(rounds[0]));
  const std::string two = text("two lines written in turn: %.0f ns", median(rounds[3]));
  figures.add(rtt0_over_two_lines, ratio(rounds[1], rounds[3]), two);
  figures.add(rtt3_over_two_lines, ratio(rounds[2], rounds[3]), two);
  figures.add(rtt0_over_pingpong, ratio(rounds[1], rounds[0]), limit);
  figures.add(rtt3_over_pingpong, ratio(rounds[2], rounds[0]), limit);
  figures.add(p99_ns, task.p99_ns, text("raw ping-pong: %.0f ns", median(raw.p99_ns)));
  figures.add(max_us, task.max_us, text("raw ping-pong: %.1f us", median(raw.max_us)));
  figures.add(rtt0_ns, rounds[1]);
  figures.add(rtt3_ns, rounds[2]);
  figures.add(raw_ns, rounds[0]);
  figures.add(two_lines_ns, rounds[3]);
}

}  // namespace bench
