// shared-pool: hosts that share their worker processes (config::pool), against as many hosts with
// workers of their own: more worker processes than cores, which the system must switch between.
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

void nothing() {}
void work(std::uint64_t steps) {
  keep(chain(steps, steps));
}

std::vector<std::unique_ptr<lev::runtime>> open_hosts(std::size_t count, const char* pool) {
  std::vector<std::unique_ptr<lev::runtime>> hosts;
  for (std::size_t i = 0; i < count; ++i) {
    lev::config c;
    c.machine = "processes";
    c.pool = pool;
    hosts.push_back(std::make_unique<lev::runtime>(c));
  }
  return hosts;
}

// The time until all hosts are done, each of which calls `one` in a thread of its own.
template <class Function>
double together_ns(std::vector<std::unique_ptr<lev::runtime>>& hosts, Function&& one) {
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

}  // namespace

void shared_pool(const settings& how, report& figures) {
  const auto null_task = lev::define("bench.shared_nothing", nothing);
  const auto busy_task = lev::define("bench.shared_work", work);
  const std::string name = "bench-" + std::to_string(getpid());
  const std::size_t count = 3 * usable_cores().size();
  auto shared = open_hosts(count, name.c_str());
  auto own = open_hosts(count, nullptr);
  const auto trips = [&](lev::runtime& r) {
    wait_until_quiet();
    return typical_ns(how.scaled(100'000), [&] { r.submit(null_task).wait(); });
  };
  // As the paper's hosts do: offload a task, wait for it, offload the next.
  const auto steps_of_us = [](double us) {
    return static_cast<std::uint64_t>(us * 1e3 / chain_step_ns());
  };
  const std::uint64_t offloaded = steps_of_us(30);
  const std::uint64_t streamed = steps_of_us(10);
  const auto offload = [&](std::vector<std::unique_ptr<lev::runtime>>& hosts) {
    return together_ns(hosts, [&](lev::runtime& r) {
      for (std::size_t i = 0; i < how.scaled(2'000); ++i) r.submit(busy_task, offloaded).wait();
    });
  };
  const auto stream = [&](std::vector<std::unique_ptr<lev::runtime>>& hosts) {
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
