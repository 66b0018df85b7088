// shared-pool: hosts that share their worker processes (config.processes.pool), against as many
// hosts with workers of their own: more worker processes than cores, which the system must switch
// between.
//
// A host is a runtime with a thread that calls it. That they are in one process makes no difference
// to the pool: each has its own lanes, bell and service.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <unistd.h>

#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bench {
namespace {

constexpr figure_spec null_over_private{"null_over_private", "ratio", "<= 1.1"};
constexpr figure_spec offload_over_private{"offload_over_private", "ratio", "<= 1"};
constexpr figure_spec stream_over_private{"stream_over_private", "ratio", "<= 1"};
constexpr figure_spec busy_yield{"busy_yield", "share", ">= 0.9"};
constexpr figure_spec busy_directed{"busy_directed", "share", ">= 0.9"};
constexpr figure_spec busy_help{"busy_help", "share", ""};

void nothing() {}
void work(std::uint64_t steps) {
  keep(chain(steps, steps));
}

void pin_worker(int core) {
  pin_this_thread(core);
}

using host_list = std::vector<std::unique_ptr<lev::runtime>>;

host_list open_hosts(std::size_t count, lev::config c) {
  host_list hosts;
  c.machine = "processes";
  for (std::size_t i = 0; i < count; ++i) hosts.push_back(std::make_unique<lev::runtime>(c));
  return hosts;
}

std::uint64_t steps_of_us(double us) {
  return static_cast<std::uint64_t>(us * 1e3 / chain_step_ns());
}

// The time until all hosts are done, each of which calls `one` in a thread of its own.
template <class Function>
double together_ns(host_list& hosts, Function&& one) {
  wait_until_quiet();
  std::barrier begin(static_cast<std::ptrdiff_t>(hosts.size()) + 1);
  std::vector<std::thread> threads;
  for (auto& host : hosts) {
    threads.emplace_back([&, r = host.get()] {
      begin.arrive_and_wait();
      one(*r);
    });
  }
  begin.arrive_and_wait();
  const std::uint64_t start = now_ns();
  for (std::thread& t : threads) t.join();
  return static_cast<double>(now_ns() - start);
}

// The paper's setting: hosts share one core, and the worker has one of its own. The share of the
// worker's time in which it is in a task, by how the hosts wait.
void measure_busy(const settings& how, report& figures) {
  const core_pair cores = choose_core_pair();
  const pinned hosts_core(cores.host);
  const auto busy_task = lev::define("bench.shared_work", work);
  const std::uint64_t steps = steps_of_us(10);
  const double task_ns = static_cast<double>(steps) * chain_step_ns();
  constexpr std::size_t count = 3;
  const std::size_t each = how.scaled(5'000);
  const auto share = [&](lev::wait_policy wait) {
    const std::string name = "bench-own-core-" + std::to_string(getpid());
    lev::config c;
    c.workers = 1;
    c.wait = wait;
    c.processes.pool = name.c_str();
    host_list hosts = open_hosts(count, c);
    hosts[0]->submit(lev::define("bench.pin_pool_worker", pin_worker), cores.worker).wait();
    const double took = together_ns(hosts, [&](lev::runtime& r) {
      for (std::size_t i = 0; i < each; ++i) r.submit(busy_task, steps).wait();
    });
    return task_ns * static_cast<double>(each * count) / took;
  };
  const auto rounds = interleave(how.rounds(), {[&] { return share(lev::wait_policy::yield); },
                                                [&] { return share(lev::wait_policy::directed); },
                                                [&] { return share(lev::wait_policy::help); }});
  const std::string what = text("%zu hosts on one core, tasks of 10 us one by one", count);
  figures.add(busy_yield, rounds[0], what);
  figures.add(busy_directed, rounds[1], what);
  figures.add(busy_help, rounds[2], what);
}

}  // namespace

void shared_pool(const settings& how, report& figures) {
  measure_busy(how, figures);
  const auto null_task = lev::define("bench.shared_nothing", nothing);
  const auto busy_task = lev::define("bench.shared_work", work);
  const std::string name = "bench-" + std::to_string(getpid());
  const std::size_t count = 3 * usable_cores().size();
  lev::config c;
  host_list own = open_hosts(count, c);
  c.processes.pool = name.c_str();
  host_list shared = open_hosts(count, c);
  const auto trips = [&](lev::runtime& r) {
    wait_until_quiet();
    return typical_ns(how.scaled(100'000), [&] { r.submit(null_task).wait(); });
  };
  // As the paper's hosts do: offload a task, wait for it, offload the next.
  const std::uint64_t offloaded = steps_of_us(30);
  const std::uint64_t streamed = steps_of_us(10);
  const auto offload = [&](host_list& hosts) {
    return together_ns(hosts, [&](lev::runtime& r) {
      for (std::size_t i = 0; i < how.scaled(2'000); ++i) r.submit(busy_task, offloaded).wait();
    });
  };
  const auto stream = [&](host_list& hosts) {
    return together_ns(hosts, [&](lev::runtime& r) {
      for (std::size_t i = 0; i < how.scaled(10'000); ++i) r.post(busy_task, streamed);
      check(r.wait_for_completion().code == lev::status::ok, "wait_for_completion");
    });
  };
  const auto rounds =
      interleave(how.rounds(), {[&] { return trips(*own[0]); }, [&] { return trips(*shared[0]); },
                                [&] { return offload(own); }, [&] { return offload(shared); },
                                [&] { return stream(own); }, [&] { return stream(shared); }});
  figures.add(null_over_private, ratio(rounds[1], rounds[0]),
              text("one host, workers of its own: %.0f ns", median(rounds[0])));
  figures.add(offload_over_private, ratio(rounds[3], rounds[2]),
              text("%zu hosts, tasks of 30 us one by one", count));
  figures.add(stream_over_private, ratio(rounds[5], rounds[4]),
              text("%zu hosts, tasks of 10 us", count));
}

}  // namespace bench
