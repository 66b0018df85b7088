// throughput: a million empty tasks from one submitter, one by one and in bulk, and how much memory
// they take.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>

namespace bench {
namespace {

constexpr figure_spec single_ns{"single_ns", "ns", "<= 60"};
constexpr figure_spec bulk_ns{"bulk_ns", "ns", "<= 30"};
constexpr figure_spec bulk_range_ns{"bulk_range_ns", "ns", "<= 10"};
constexpr figure_spec rss_growth_mib{"rss_growth_mib", "MiB", "<= 1"};
constexpr figure_spec single_over_onetbb{"single_over_onetbb", "ratio", "< 1"};
constexpr figure_spec single_over_openmp{"single_over_openmp", "ratio", "< 1"};
constexpr figure_spec single_over_starpu{"single_over_starpu", "ratio", "< 1"};

std::atomic<std::uint64_t> ran{0};  // written by the checked tasks, read when all are done

void nothing() {}
void count_one() {
  ran.fetch_add(1, std::memory_order_relaxed);
}
void count_value(std::uint64_t value) {
  ran.fetch_add(value, std::memory_order_relaxed);
}

using empty_procedure = lev::procedure<void()>;

void run_single(lev::runtime& runtime, empty_procedure p, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) runtime.post(p);
  check(runtime.wait_for_completion().code == lev::status::ok, "wait_for_completion");
}

void run_bulk(lev::runtime& runtime, empty_procedure p, std::size_t count) {
  const auto make = [p](std::size_t, lev::descriptor& task) { task.procedure = p.id; };
  runtime.submit_bulk(count, make).wait();
}

// The form whose tasks are made where they run.
void run_bulk_range(lev::runtime& runtime, empty_procedure p, std::size_t count) {
  const auto make = [p](std::size_t, lev::descriptor& task) { task.procedure = p.id; };
  runtime.submit_bulk(lev::from_any_thread, count, make).wait();
}

template <class Stream>
double per_task_ns(std::size_t count, Stream&& stream) {
  stream(count / 20);
  const std::uint64_t start_ns = now_ns();
  stream(count);
  return static_cast<double>(now_ns() - start_ns) / static_cast<double>(count);
}

// A line such as "VmHWM:   1234 kB" of this process's status.
double status_mib(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::stod(line.substr(line.find(':') + 1)) / 1024;
  }
  return 0;
}

// How far resident memory rises above where it was, at its highest, while the stream runs.
template <class Stream>
double growth_mib(Stream&& stream, std::size_t count) {
  stream(count / 100);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again from here
  const double before_mib = status_mib("VmRSS");
  stream(count);
  return status_mib("VmHWM") - before_mib;
}

void check_answers(lev::runtime& runtime) {
  constexpr std::size_t count = 20'000;
  const auto counting = lev::define("bench.count_one", count_one);
  run_single(runtime, counting, count);
  check(ran.exchange(0) == count, "tasks posted one by one");
  run_bulk(runtime, counting, count);
  check(ran.exchange(0) == count, "tasks submitted in bulk");
  run_bulk_range(runtime, counting, count);
  check(ran.exchange(0) == count, "tasks submitted as a range");
  for (const rival& r : {onetbb(), openmp(), starpu()}) {
    if (r.table == nullptr) continue;
    r.table->stream(count / 10, count_value, 1);
    check(ran.exchange(0) == count / 10, r.table->name);
  }
}

void add_peer(report& figures, const figure_spec& spec, const rival& r, const samples& single,
              const samples& peer_rounds) {
  if (r.table == nullptr) return figures.add(spec, {}, r.absent);
  figures.add(spec, ratio(single, peer_rounds),
              text("%s: %.0f ns", r.table->name, median(peer_rounds)));
}

std::function<double()> peer_stream(const rival& r, std::size_t count) {
  if (r.table == nullptr) return {};
  return [=] { return per_task_ns(count, r.table->null_stream); };
}

}  // namespace

void throughput(const settings& how, report& figures) {
  const std::size_t count = how.scaled(1'000'000);
  const auto procedure = lev::define("bench.nothing", nothing);
  lev::runtime runtime;
  const auto single = [&](std::size_t n) { run_single(runtime, procedure, n); };
  const auto bulk = [&](std::size_t n) { run_bulk(runtime, procedure, n); };
  const auto bulk_range = [&](std::size_t n) { run_bulk_range(runtime, procedure, n); };

  // Memory first: what a rival has freed would hide what Leveret takes.
  samples growth;
  for (int round = 0; round < how.rounds(); ++round) growth.push_back(growth_mib(single, count));
  const rival tbb = onetbb();
  const std::string tbb_growth =
      tbb.table == nullptr ? tbb.absent
                           : text("oneTBB: %.0f MiB", growth_mib(tbb.table->null_stream, count));
  check_answers(runtime);

  const auto rounds =
      interleave(how.rounds(), {[&] { return per_task_ns(count, single); },
                                [&] { return per_task_ns(count, bulk); }, peer_stream(tbb, count),
                                peer_stream(openmp(), count), peer_stream(starpu(), count / 10),
                                [&] { return per_task_ns(count, bulk_range); }});
  figures.add(single_ns, rounds[0]);
  figures.add(bulk_ns, rounds[1]);
  figures.add(bulk_range_ns, rounds[5]);
  figures.add(rss_growth_mib, growth, tbb_growth);
  add_peer(figures, single_over_onetbb, tbb, rounds[0], rounds[2]);
  add_peer(figures, single_over_openmp, openmp(), rounds[0], rounds[3]);
  add_peer(figures, single_over_starpu, starpu(), rounds[0], rounds[4]);
}

}  // namespace bench
