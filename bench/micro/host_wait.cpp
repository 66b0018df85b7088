// host-wait: more hosts than cores offload short tasks and wait for them. How long does a worker
// wait for its host, by wait policy and length of the task?
//
// Paper: SLED section 4.1, Figures 7 and 8. There, every host has a worker of its own; here they
// share the workers there are. So the bench measures the host's part: the time from the end of its
// task until it submits the next. It is the worker's idle time where each host has one. The mean
// over offloads is compared, as there: a host that keeps its core answers at once, and makes the
// others wait for long. The shared workers' own idle time, for each task that they ran, is the
// figure of the same name with `unused`.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <ctime>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bench {
namespace {

constexpr figure_spec directed_over_yield{"directed_idle_over_ynr", "ratio", "<= 0.7"};
constexpr figure_spec among_8{"directed_over_ynr_of_8", "ratio", ""};
constexpr figure_spec among_others{"directed_over_ynr_busy", "ratio", ""};
constexpr figure_spec help_over_yield{"help_idle_over_ynr", "ratio", "<= 0.3"};
constexpr figure_spec directed_unused{"directed_unused_over_ynr", "ratio", ""};
constexpr figure_spec help_unused{"help_unused_over_ynr", "ratio", ""};
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
constexpr std::size_t first_two = 2;

constexpr std::array<int, 6> lengths_us = {1, 3, 10, 30, 100, 300};

// The notes of one host's tasks: when the last one ended, and how long those run by workers took.
// Hosts that help run some, too.
struct alignas(128) note {
  std::atomic<std::uint64_t> ended_ns{0};  // written by the task, read by its host
  std::uint64_t busy_ns = 0;
  std::uint64_t offloads = 0;
  std::uint64_t begin_ns = 0;  // the host's own
  samples gaps_ns;             // from the end of a task to the next submit
};

struct note_ref {
  note* to;
};

thread_local bool is_host = false;

void offloaded(std::uint64_t steps, note_ref n) {
  const std::uint64_t start_ns = now_ns();
  keep(chain(1, steps));
  const std::uint64_t ended_ns = now_ns();
  if (!is_host) {
    n.to->busy_ns += ended_ns - start_ns;
    n.to->offloads += 1;
  }
  n.to->ended_ns.store(ended_ns, std::memory_order_release);
}
using offloaded_procedure = lev::procedure<void(std::uint64_t, note_ref)>;

// Hosts are on the first cores, workers on the others: one for each host, if there are so many.
struct layout {
  explicit layout(std::size_t per_core) : hosts(per_core * host_cores) {}
  std::size_t host_cores = std::max<std::size_t>(1, usable_cores().size() / 4);
  std::size_t hosts;
  std::size_t workers = std::min(hosts, usable_cores().size() - host_cores);
};

// The measurements of one host, or of all.
struct tally {
  double answer_us = 0;  // from the end of a task to its host's next submit: the mean
  double median_us = 0;
  double idle_us = 0;  // of a worker for each task that it ran
};

// Hosts that offload tasks to pinned workers and wait for them.
class crowd {
 public:
  explicit crowd(std::size_t per_core)
      : places_(per_core),
        runtime_(settings()),
        procedure_(lev::define("bench.offloaded", offloaded)) {
    place_workers();
  }

  // Every host goes on until `duration_ns` are over.
  tally run(lev::wait_policy how, std::uint64_t steps, std::uint64_t duration_ns) {
    std::vector<note> notes(places_.hosts);
    std::atomic<std::size_t> ready{0};
    const auto host = [&](std::size_t index) {
      is_host = true;
      pin_this_thread(usable_cores()[index % places_.host_cores]);
      ready.fetch_add(1);
      while (ready.load() < places_.hosts) std::this_thread::yield();
      note& mine = notes[index];
      mine.begin_ns = now_ns();
      offload(how, steps, mine.begin_ns + duration_ns, mine);
    };
    std::vector<std::thread> hosts;
    for (std::size_t i = 0; i < places_.hosts; ++i) hosts.emplace_back(host, i);
    for (std::thread& h : hosts) h.join();
    return add_up(notes);
  }

  const layout& places() const noexcept { return places_; }
  std::string text_of() const {
    return text("%zu hosts on %zu core(s), %zu worker(s)", places_.hosts, places_.host_cores,
                places_.workers);
  }

 private:
  void offload(lev::wait_policy how, std::uint64_t steps, std::uint64_t until_ns, note& mine) {
    for (std::uint64_t now = now_ns(); now < until_ns || mine.gaps_ns.size() < 3; now = now_ns()) {
      if (const std::uint64_t ended = mine.ended_ns.load(std::memory_order_acquire); ended != 0)
        mine.gaps_ns.push_back(static_cast<double>(now - ended));
      runtime_.submit(procedure_, steps, note_ref{&mine}).wait(how);
    }
  }

  tally add_up(const std::vector<note>& notes) const {
    tally all;
    samples gaps_ns;
    double busy_ns = 0, offloads = 0;
    std::uint64_t begin_ns = notes.front().begin_ns, end_ns = 0;
    for (const note& n : notes) {
      gaps_ns.insert(gaps_ns.end(), n.gaps_ns.begin(), n.gaps_ns.end());
      busy_ns += static_cast<double>(n.busy_ns);
      offloads += static_cast<double>(n.offloads);
      begin_ns = std::min(begin_ns, n.begin_ns);
      end_ns = std::max(end_ns, n.ended_ns.load());
    }
    for (const double gap : gaps_ns)
      all.answer_us += 1e-3 * gap / static_cast<double>(gaps_ns.size());
    all.median_us = 1e-3 * median(std::move(gaps_ns));
    const double there_ns =
        static_cast<double>(end_ns - begin_ns) * static_cast<double>(places_.workers);
    all.idle_us = 1e-3 * (there_ns - busy_ns) / std::max(offloads, 1.0);
    return all;
  }

  lev::config settings() const {
    lev::config c;
    c.workers = static_cast<int>(places_.workers);
    c.wait = lev::wait_policy::park;
    c.host_threads = static_cast<std::uint32_t>(places_.hosts + 1);
    return c;
  }
  // Every worker takes one of the tasks, as they wait for each other.
  void place_workers() {
    static std::atomic<std::size_t> arrived;
    static std::size_t expected;
    arrived = 0;
    expected = places_.workers;
    const auto pin = lev::define("bench.pin_and_meet", [](std::uint64_t index) {
      pin_this_thread(usable_cores()[index]);
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

// A task whose host is told when a worker has begun it.
struct begun_flag {
  std::atomic<bool>* to;
};
void begun(std::uint64_t steps, begun_flag flag) {
  flag.to->store(true, std::memory_order_release);
  keep(chain(1, steps));
}
using begun_procedure = lev::procedure<void(std::uint64_t, begun_flag)>;

// The share of a core that a host uses while it waits 10 ms by the default policy. The wait begins
// when a worker has the task: one that still waits in a queue is run by the host that helps.
double wait_share(lev::runtime& runtime, begun_procedure procedure, double step_ns) {
  const auto steps = static_cast<std::uint64_t>(10e6 / step_ns);
  std::uint64_t used = 0, waited = 0;
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> has_begun{false};
    lev::ticket t = runtime.submit(procedure, steps, begun_flag{&has_begun});
    while (!has_begun.load(std::memory_order_acquire)) std::this_thread::yield();
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
  const auto procedure = lev::define("bench.begun", begun);
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

// By length, round and policy.
struct measured {
  std::vector<samples> answer_us{lengths_us.size()};
  std::vector<samples> median_us{lengths_us.size()};
  std::vector<samples> idle_us{lengths_us.size()};
};

// Figure 7, and 8 with it: the worker's share of work, if it waited for its host's answer.
void add_table(report& figures, const way& w, const measured& m) {
  for (std::size_t l = 0; l < lengths_us.size(); ++l) {
    samples use = m.answer_us[l];
    for (double& u : use) u = lengths_us[l] / (lengths_us[l] + u);
    const std::string name = text("%s_idle_us_at_%d", w.name, lengths_us[l]);
    figures.add({name.c_str(), "us", ""}, m.answer_us[l],
                text("utilisation %.3f; median %.1f us; workers without a task %.1f us",
                     median(use), median(m.median_us[l]), median(m.idle_us[l])));
  }
}

// The first `count` policies and all lengths in turn, round by round; the first round is not
// counted.
std::array<measured, way_count> measure(crowd& hosts, std::size_t count, const settings& how,
                                        double step_ns) {
  const std::uint64_t duration_ns = how.quick ? 10'000'000 : 40'000'000;
  std::array<measured, way_count> all;
  for (int round = -1; round < how.rounds(); ++round) {
    for (std::size_t l = 0; l < lengths_us.size(); ++l) {
      const auto steps = static_cast<std::uint64_t>(lengths_us[l] * 1e3 / step_ns);
      for (std::size_t w = 0; w < count; ++w) {
        const tally t = hosts.run(ways[w].policy, steps, duration_ns);
        if (round < 0) continue;
        all[w].answer_us[l].push_back(t.answer_us);
        all[w].median_us[l].push_back(t.median_us);
        all[w].idle_us[l].push_back(t.idle_us);
      }
    }
  }
  return all;
}

// Somebody else's program on the cores of the hosts.
class others {
 public:
  explicit others(const layout& places) {
    for (std::size_t i = 0; i < places.host_cores; ++i) {
      threads_.emplace_back([this, i] {
        pin_this_thread(usable_cores()[i]);
        while (!is_over_.load()) keep(chain(1, 1000));
      });
    }
  }
  ~others() {
    is_over_ = true;
    for (std::thread& t : threads_) t.join();
  }
  others(others&&) = delete;

 private:
  std::atomic<bool> is_over_{false};  // written by the destructor, read by the threads
  std::vector<std::thread> threads_;
};

void add_ratio(report& figures, const figure_spec& spec, const std::vector<samples>& mine,
               const std::vector<samples>& rival, const crowd& hosts) {
  const samples mine_us = mean_over_lengths(mine);
  const samples rival_us = mean_over_lengths(rival);
  figures.add(
      spec, ratio(mine_us, rival_us),
      text("%.2f us against %.2f us; ", median(mine_us), median(rival_us)) + hosts.text_of());
}

}  // namespace

void host_wait(const settings& how, report& figures) {
  if (usable_cores().size() < 2) throw std::runtime_error("this bench needs two cores");
  const double step_ns = chain_step_ns();
  const samples shares = default_shares(how.rounds(), step_ns);
  {
    crowd three(3);
    const auto all = measure(three, way_count, how, step_ns);
    const measured& yield = all[at_yield];
    add_ratio(figures, directed_over_yield, all[at_directed].answer_us, yield.answer_us, three);
    add_ratio(figures, help_over_yield, all[at_help].answer_us, yield.answer_us, three);
    add_ratio(figures, directed_unused, all[at_directed].idle_us, yield.idle_us, three);
    add_ratio(figures, help_unused, all[at_help].idle_us, yield.idle_us, three);
    figures.add(wait_cpu_share, shares, "waits of 10 ms");
    const others busy(three.places());
    const auto beside = measure(three, first_two, how, step_ns);
    add_ratio(figures, among_others, beside[at_directed].answer_us, beside[at_yield].answer_us,
              three);
    for (std::size_t w = 0; w < way_count; ++w) add_table(figures, ways[w], all[w]);
  }
  crowd eight(8);
  const auto all = measure(eight, first_two, how, step_ns);
  add_ratio(figures, among_8, all[at_directed].answer_us, all[at_yield].answer_us, eight);
}

}  // namespace bench
