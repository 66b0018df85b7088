// host-wait: more hosts than cores offload short tasks and wait for them. How long does a worker
// wait for its host, by wait policy and length of the task?
//
// Paper: SLED section 4.1, Figures 7 and 8. There, every host has a worker of its own; here they
// share the workers there are. So what is measured is what the host answers for: the time from the
// end of its task until it submits the next. It is the worker's idle time where each host has one.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <ctime>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

namespace bench {
namespace {

constexpr figure_spec directed_over_yield{"directed_idle_over_ynr", "ratio", "<= 0.7"};
constexpr figure_spec help_over_yield{"help_idle_over_ynr", "ratio", "<= 0.3"};
constexpr figure_spec wait_cpu_share{"wait_cpu_share", "cores", "<= 0.02"};

struct way {
  const char* name;
  lev::wait_policy policy;
};
constexpr way ways[] = {{"ynr", lev::wait_policy::yield},
                        {"directed", lev::wait_policy::directed},
                        {"help", lev::wait_policy::help},
                        {"park", lev::wait_policy::park},
                        {"spin", lev::wait_policy::spin}};
constexpr std::size_t way_count = std::size(ways);
constexpr std::size_t at_yield = 0, at_directed = 1, at_help = 2;

constexpr std::array<int, 6> lengths_us = {1, 3, 10, 30, 100, 300};

// What the tasks of one host leave behind: when the last one ended.
struct alignas(128) note {
  std::atomic<std::uint64_t> ended_ns{0};  // written by the task, read by its host
};

struct note_ref {
  note* to;
};

void offloaded(std::uint64_t steps, note_ref n) {
  keep(chain(1, steps));
  n.to->ended_ns.store(now_ns(), std::memory_order_release);
}
using offloaded_procedure = lev::procedure<void(std::uint64_t, note_ref)>;

// Hosts are on the first cores, three to a core; workers on the others.
struct layout {
  std::size_t host_cores = std::max<std::size_t>(1, usable_cores().size() / 4);
  std::size_t hosts = 3 * host_cores;
  std::size_t workers = std::min(hosts, usable_cores().size() - host_cores);
};

void pin_worker(int core) {
  pin_this_thread(core);
}

// One runtime with pinned workers for all policies.
class stage {
 public:
  stage() : runtime_(settings()), procedure_(lev::define("bench.offloaded", offloaded)) {
    place_workers();
  }
  const layout& places() const noexcept { return places_; }
  lev::runtime& runtime() noexcept { return runtime_; }

  // The mean time from a task's end to the next submit, in us, of all hosts; each goes on until
  // `duration_ns` are over.
  double idle_us(lev::wait_policy how, std::uint64_t steps, std::uint64_t duration_ns) {
    std::atomic<std::uint64_t> gaps_ns{0}, gaps{0};
    std::atomic<std::size_t> ready{0};
    const auto host = [&](std::size_t index) {
      pin_this_thread(usable_cores()[index % places_.host_cores]);
      note mine;
      ready.fetch_add(1);
      while (ready.load() < places_.hosts) std::this_thread::yield();
      std::uint64_t sum_ns = 0, count = 0;
      const std::uint64_t until_ns = now_ns() + duration_ns;
      for (std::uint64_t now = now_ns(); now < until_ns || count < 3; now = now_ns()) {
        if (const std::uint64_t ended = mine.ended_ns.load(std::memory_order_acquire); ended != 0) {
          sum_ns += now - ended;
          ++count;
        }
        runtime_.submit(procedure_, steps, note_ref{&mine}).wait(how);
      }
      gaps_ns += sum_ns;
      gaps += count;
    };
    std::vector<std::thread> hosts;
    for (std::size_t i = 0; i < places_.hosts; ++i) hosts.emplace_back(host, i);
    for (std::thread& h : hosts) h.join();
    return 1e-3 * static_cast<double>(gaps_ns.load()) / static_cast<double>(gaps.load());
  }

 private:
  lev::config settings() const {
    lev::config c;
    c.workers = static_cast<int>(places_.workers);
    c.wait = lev::wait_policy::park;
    return c;
  }
  // Every worker takes one of the tasks, as they wait for each other.
  void place_workers() {
    static std::atomic<std::size_t> arrived;
    static std::size_t expected;
    arrived = 0;
    expected = places_.workers;
    const auto pin = lev::define("bench.pin_and_meet", [](std::uint64_t index) {
      pin_worker(usable_cores()[index]);
      arrived.fetch_add(1);
      while (arrived.load() < expected) std::this_thread::yield();
    });
    std::vector<lev::ticket> tickets;
    for (std::uint64_t i = 0; i < places_.workers; ++i)
      tickets.push_back(runtime_.submit(pin, places_.host_cores + i));
    for (lev::ticket& t : tickets) t.wait();
  }

  layout places_;
  lev::runtime runtime_;
  offloaded_procedure procedure_;
};

std::uint64_t thread_cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// The share of a core that a host uses while it waits 10 ms by the default policy.
double wait_share(lev::runtime& runtime, offloaded_procedure procedure, double step_ns) {
  note mine;
  const auto steps = static_cast<std::uint64_t>(10e6 / step_ns);
  std::uint64_t used = 0, waited = 0;
  for (int i = 0; i < 5; ++i) {
    lev::ticket t = runtime.submit(procedure, steps, note_ref{&mine});
    const std::uint64_t cpu = thread_cpu_ns();
    const std::uint64_t start = now_ns();
    t.wait();
    used += thread_cpu_ns() - cpu;
    waited += now_ns() - start;
  }
  return static_cast<double>(used) / static_cast<double>(waited);
}

samples default_shares(int rounds, double step_ns) {
  const pinned here(usable_cores().front());
  lev::config c;
  c.workers = 1;
  c.pin = true;
  lev::runtime runtime(c);
  const auto procedure = lev::define("bench.offloaded", offloaded);
  // A letter to the worker: a task that waits in a queue would be run by the host that helps.
  samples shares;
  for (int r = 0; r < rounds; ++r) shares.push_back(wait_share(runtime, procedure, step_ns));
  return shares;
}

samples mean_over_lengths(const std::vector<samples>& by_length) {
  samples mean(by_length.front().size());
  for (const samples& one : by_length) {
    for (std::size_t r = 0; r < mean.size(); ++r)
      mean[r] += one[r] / static_cast<double>(by_length.size());
  }
  return mean;
}

// Names of figures are kept by the report as they are given.
const char* kept_name(std::string name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name)).c_str();
}

// Figure 7: idle time; Figure 8: the worker's share of work, with that idle time.
void add_table(report& figures, std::size_t who, const std::vector<samples>& by_length) {
  for (std::size_t l = 0; l < lengths_us.size(); ++l) {
    const char* name = kept_name(text("%s_idle_us_at_%d", ways[who].name, lengths_us[l]));
    samples use = by_length[l];
    for (double& u : use) u = lengths_us[l] / (lengths_us[l] + u);
    figures.add({name, "us", ""}, by_length[l], text("utilisation %.3f", median(use)));
  }
}

}  // namespace

void host_wait(const settings& how, report& figures) {
  if (usable_cores().size() < 2) throw std::runtime_error("this bench needs two cores");
  const double step_ns = chain_step_ns();
  const samples shares = default_shares(how.rounds(), step_ns);
  stage s;
  const std::uint64_t duration_ns = how.scaled(30'000'000);
  std::vector<std::function<double()>> contestants;
  for (const int length : lengths_us) {
    const auto steps = static_cast<std::uint64_t>(length * 1e3 / step_ns);
    for (const way& w : ways)
      contestants.push_back([&, steps] { return s.idle_us(w.policy, steps, duration_ns); });
  }
  const std::vector<samples> all = interleave(how.rounds(), contestants);
  std::vector<std::vector<samples>> by_way(way_count);
  for (std::size_t c = 0; c < all.size(); ++c) by_way[c % way_count].push_back(all[c]);

  const samples yield = mean_over_lengths(by_way[at_yield]);
  const auto rival = [&](std::size_t who) {
    return text("%.1f us against %.1f us; %zu hosts on %zu core(s), %zu worker(s)",
                median(mean_over_lengths(by_way[who])), median(yield), s.places().hosts,
                s.places().host_cores, s.places().workers);
  };
  figures.add(directed_over_yield, ratio(mean_over_lengths(by_way[at_directed]), yield),
              rival(at_directed));
  figures.add(help_over_yield, ratio(mean_over_lengths(by_way[at_help]), yield), rival(at_help));
  figures.add(wait_cpu_share, shares, "waits of 10 ms");
  for (std::size_t who = 0; who < way_count; ++who) add_table(figures, who, by_way[who]);
}

}  // namespace bench
