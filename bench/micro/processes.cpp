// The costs and gains of workers in processes of their own: process-null, isolation-cost,
// kill-storm, recovery.
//
// kill-storm and recovery are about promises as much as about time: every result is checked.
#include "registry.hpp"
#include "timing.hpp"

#include "runtime/runtime_state.hpp"

#include <leveret/leveret.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace bench {
namespace {

constexpr figure_spec rtt_over_threads{"rtt_over_threads", "ratio", "<= 1.5"};
constexpr figure_spec process_ns{"rtt_processes_ns", "ns", ""};
constexpr figure_spec thread_ns{"rtt_threads_ns", "ns", ""};
constexpr figure_spec stream_over_threads{"stream_over_threads", "ratio", ""};

constexpr figure_spec bulk_over_threads{"bulk_over_threads", "ratio", "<= 1.5"};
constexpr figure_spec bulk_ns{"bulk_processes_ns", "ns", ""};

constexpr figure_spec short_over_ideal{"tasks_5us_over_ideal", "ratio", ""};
constexpr figure_spec long_over_ideal{"tasks_32us_over_ideal", "ratio", "<= 1.5"};

constexpr figure_spec kills{"kills", "", ">= 20000"};
constexpr figure_spec lost{"lost", "", "<= 0"};
constexpr figure_spec duplicated{"duplicated", "", "<= 0"};
constexpr figure_spec wrong{"wrong", "", "<= 0"};
constexpr figure_spec seconds{"seconds", "s", "<= 60"};
constexpr figure_spec reruns{"reruns", "", ""};
constexpr figure_spec rerun_mismatch{"rerun_mismatch", "", "<= 0"};

constexpr figure_spec p99_ms{"p99_ms", "ms", "<= 5"};
constexpr figure_spec median_ms{"median_ms", "ms", ""};

void nothing() {}
void nothing_with_value(std::uint32_t) {}
void count_up(std::uint64_t n, lev::inout<std::uint64_t> x) {
  x[0] += n;
}
void tell_pid(lev::result<int> pid) {
  pid = getpid();
}

lev::config on(const char* machine, int workers) {
  lev::config c;
  c.machine = machine;
  c.workers = workers;
  c.wait = lev::wait_policy::spin;
  return c;
}

void work(std::uint64_t steps) {
  keep(chain(steps, steps));
}

// Tasks that keep every core's worker busy, submitted and waited for one by one, as by a pool's
// user. The host needs a core, too.
void add_busy_workers(const settings& how, report& figures) {
  constexpr std::size_t tasks = 64;
  const auto p = lev::define("bench.process_work", work);
  lev::config c;
  c.machine = "processes";
  lev::runtime r(c);
  std::vector<lev::ticket> tickets(tasks);
  const auto over_ideal = [&](double task_ns) {
    wait_until_quiet();
    const auto steps = static_cast<std::uint64_t>(task_ns / chain_step_ns());
    const double took_ns = typical_ns(how.scaled(200), [&] {
      for (lev::ticket& t : tickets) t = r.submit(p, steps);
      for (lev::ticket& t : tickets) t.wait();
    });
    return took_ns * lev::available_cores() / (task_ns * tasks);
  };
  const auto rounds = interleave(
      how.rounds(), {[&] { return over_ideal(5'000); }, [&] { return over_ideal(32'000); }});
  const std::string about = text("%zu tasks, %u workers", tasks, r.workers());
  figures.add(short_over_ideal, rounds[0], about);
  figures.add(long_over_ideal, rounds[1], about);
}

}  // namespace

void process_null(const settings& how, report& figures) {
  const auto p = lev::define("bench.process_nothing", nothing);
  lev::runtime threads(on("threads", 1));
  lev::runtime processes(on("processes", 1));
  const std::size_t trips = how.scaled(200'000);
  const auto trip = [&](lev::runtime& r) {
    wait_until_quiet();
    return typical_ns(trips, [&] { r.submit(p).wait(); });
  };
  const auto stream = [&](lev::runtime& r) {
    wait_until_quiet();
    const std::uint64_t start = now_ns();
    for (std::size_t i = 0; i < trips; ++i) r.post(p);
    check(r.wait_for_completion().code == lev::status::ok, "wait_for_completion");
    return static_cast<double>(now_ns() - start) / static_cast<double>(trips);
  };
  const auto value = lev::define("bench.process_value", nothing_with_value);
  const std::vector<std::uint32_t> column(trips * 5);
  const auto bulk = [&](lev::runtime& r) {
    wait_until_quiet();
    const std::uint64_t start = now_ns();
    r.submit_bulk(column.size(), value, lev::each(column)).wait();
    return static_cast<double>(now_ns() - start) / static_cast<double>(column.size());
  };
  const auto rounds =
      interleave(how.rounds(), {[&] { return trip(threads); }, [&] { return trip(processes); },
                                [&] { return stream(threads); }, [&] { return stream(processes); },
                                [&] { return bulk(threads); }, [&] { return bulk(processes); }});
  figures.add(rtt_over_threads, ratio(rounds[1], rounds[0]),
              text("machine threads: %.0f ns", median(rounds[0])));
  figures.add(thread_ns, rounds[0]);
  figures.add(process_ns, rounds[1]);
  figures.add(stream_over_threads, ratio(rounds[3], rounds[2]),
              text("machine threads: %.0f ns a task", median(rounds[2])));
  figures.add(bulk_over_threads, ratio(rounds[5], rounds[4]),
              text("machine threads: %.1f ns a task", median(rounds[4])));
  figures.add(bulk_ns, rounds[5]);
  add_busy_workers(how, figures);
}

// Workers that died between the claim of a task and its ending: so many are to be run again.
std::uint64_t deaths_in_tasks(lev::runtime& r) {
  std::uint64_t sum = 0;
  for (unsigned w = 0; w < r.workers(); ++w) {
    const auto& by_step = r.state()->participants[w].counters.chaos;
    for (const lev::chaos_step s :
         {lev::chaos_step::claimed, lev::chaos_step::resolved, lev::chaos_step::executed})
      sum += by_step[static_cast<std::size_t>(s)].read();
  }
  return sum;
}

// A million tasks on workers that kill themselves at random steps of the protocol.
void kill_storm(const settings& how, report& figures) {
  const auto p = lev::define("bench.count_up", count_up);
  const std::size_t tasks = how.scaled(1'000'000);
  lev::config c = on("processes", 2);
  c.wait = lev::wait_policy::help;
  c.processes.chaos = 200;
  c.processes.max_attempts = 1000;
  c.processes.restarts_max = 1'000'000;
  std::vector<std::uint64_t> x(tasks, 0);
  lev::runtime r(c);
  const std::uint64_t start = now_ns();
  for (std::size_t i = 0; i < tasks; ++i) r.post(p, i + 1, lev::view(&x[i], 1));
  check(r.wait_for_completion().code == lev::status::ok, "wait_for_completion");
  const double took = static_cast<double>(now_ns() - start) * 1e-9;
  double not_done = 0;
  double twice = 0;
  double other = 0;
  for (std::size_t i = 0; i < tasks; ++i) {
    const std::uint64_t once = i + 1;
    if (x[i] == once) continue;
    (x[i] == 0 ? not_done : x[i] % once == 0 ? twice : other) += 1;
  }
  const lev::counters k = r.count();
  figures.add(kills, {static_cast<double>(k.deaths)}, text("in %zu tasks", tasks));
  figures.add(lost, {not_done});
  figures.add(duplicated, {twice});
  figures.add(wrong, {other});
  figures.add(seconds, {took});
  const auto rerun = static_cast<double>(k.reruns);
  const auto died = static_cast<double>(deaths_in_tasks(r));
  figures.add(reruns, {rerun});
  figures.add(rerun_mismatch, {std::max(rerun, died) - std::min(rerun, died)},
              text("%.0f deaths between claim and ending", died));
}

// From kill -9 of the only worker until the next task is done, in a host with much touched memory.
void recovery(const settings& how, report& figures) {
  const auto p = lev::define("bench.tell_pid", tell_pid);
  lev::runtime r(on("processes", 1));
  const std::size_t host_bytes = how.quick ? std::size_t{1} << 30 : std::size_t{8} << 30;
  char* touched = static_cast<char*>(std::malloc(host_bytes));
  if (touched == nullptr) return figures.add(p99_ms, {}, "no memory for a large host");
  std::memset(touched, 1, host_bytes);
  samples times_ms;
  for (int i = 0; i < (how.quick ? 50 : 300); ++i) {
    int pid = 0;
    r.submit(p, pid).wait();
    const std::uint64_t start = now_ns();
    kill(pid, SIGKILL);
    int next = pid;
    while (next == pid) r.submit(p, next).wait();
    times_ms.push_back(static_cast<double>(now_ns() - start) * 1e-6);
  }
  keep(touched[host_bytes / 2]);
  std::free(touched);
  const double middle = median(times_ms);
  std::sort(times_ms.begin(), times_ms.end());
  figures.add(p99_ms, {times_ms[times_ms.size() * 99 / 100]},
              text("host with %zu GiB touched, %zu kills", host_bytes >> 30, times_ms.size()));
  figures.add(median_ms, {middle});
}

}  // namespace bench
