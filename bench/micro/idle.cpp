// idle: what a runtime without work costs, and how soon after its last task it is without cost.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <atomic>
#include <ctime>
#include <stdexcept>

namespace bench {
namespace {

constexpr figure_spec cpu_share{"cpu_share", "cores", "<= 0.001"};
constexpr figure_spec ms_to_quiet{"ms_to_quiet", "ms", "<= 1"};

// Written by the tasks: how many have started; read by the tasks, which wait for one another.
std::atomic<std::uint32_t> started{0};

// Written by the tasks when they end, read by the submitter: when the last one did. The submitter's
// own clock would not do: it may not be running at that moment.
std::atomic<std::uint64_t> ended_ns{0};

// Keeps each worker busy until all are: afterwards every worker has to park once.
void meet(std::uint32_t expected) {
  started.fetch_add(1);
  while (started.load() < expected) {
  }
  ended_ns.store(now_ns());
}

using meet_procedure = lev::procedure<void(std::uint32_t)>;

double time_to_quiet_ms(lev::runtime& runtime, meet_procedure p) {
  started.store(0);
  const std::uint32_t workers = runtime.workers();
  const std::uint64_t parks_before = runtime.count().parks;
  std::vector<lev::ticket> tickets(workers);
  for (lev::ticket& ticket : tickets) ticket = runtime.submit(p, workers);
  for (lev::ticket& ticket : tickets) ticket.wait();
  while (runtime.count().parks < parks_before + workers) {
    if (now_ns() - ended_ns.load() > 5'000'000'000) {
      throw std::runtime_error("the workers do not all park within 5 s");
    }
  }
  return static_cast<double>(now_ns() - ended_ns.load()) * 1e-6;
}

double share_over(double seconds) {
  timespec pause;
  pause.tv_sec = static_cast<time_t>(seconds);
  pause.tv_nsec = static_cast<long>((seconds - static_cast<double>(pause.tv_sec)) * 1e9);
  const std::uint64_t cpu_ns = process_cpu_ns();
  const std::uint64_t start_ns = now_ns();
  nanosleep(&pause, nullptr);
  return static_cast<double>(process_cpu_ns() - cpu_ns) / static_cast<double>(now_ns() - start_ns);
}

}  // namespace

void idle(const settings& how, report& figures) {
  const auto procedure = lev::define("bench.meet", meet);
  lev::config c;
  c.wait = lev::wait_policy::spin;  // the submitter takes no task: one task per worker
  lev::runtime runtime(c);

  samples shares, times_ms;
  const double window_s = (how.quick ? 1.0 : 10.0) / how.rounds();
  time_to_quiet_ms(runtime, procedure);
  for (int round = 0; round < how.rounds(); ++round) {
    times_ms.push_back(time_to_quiet_ms(runtime, procedure));
    shares.push_back(share_over(window_s));
  }
  figures.add(cpu_share, shares, text("%.1f s in all", window_s * how.rounds()));
  figures.add(ms_to_quiet, times_ms, text("config::spin_ns is %u us", c.spin_ns / 1000));
}

}  // namespace bench
