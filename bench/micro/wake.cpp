// wake: submit an empty task to a worker that has been asleep for 2 ms, and wait for it by polling.
//
// The limit is a bare thread asleep in a futex on the same core, woken and polled in the same way.
// Waking costs more the longer the core has been idle, so both have slept equally long.
#include "limits/futex_wake.hpp"
#include "micro/one_worker.hpp"
#include "registry.hpp"

namespace bench {
namespace {

constexpr figure_spec wake_over_futex{"wake_over_futex", "ratio", "<= 1.25"};
constexpr figure_spec wake_us{"wake_us", "us", ""};
constexpr figure_spec futex_us{"futex_us", "us", ""};

constexpr std::uint64_t asleep_ns = 2'000'000;

void nothing() {}

void poll_for(std::uint64_t duration_ns) {
  const std::uint64_t end_ns = now_ns() + duration_ns;
  while (now_ns() < end_ns) {
  }
}

template <class Asleep, class Wake>
double wake_time_us(Asleep&& wait_asleep, Wake&& wake_up) {
  wait_asleep();
  poll_for(asleep_ns);
  const std::uint64_t start_ns = now_ns();
  wake_up();
  return static_cast<double>(now_ns() - start_ns) * 1e-3;
}

}  // namespace

void wake(const settings& how, report& figures) {
  const core_pair cores = choose_core_pair();
  const auto nothing_procedure = lev::define("bench.nothing", nothing);
  one_worker leveret(cores);
  futex_sleeper sleeper(cores.worker);

  std::uint64_t parks_before = 0;
  const auto wake_worker = [&] {
    parks_before = leveret->count().parks;
    leveret->submit(nothing_procedure).wait();
  };
  const std::size_t wakes = how.scaled(100);
  samples task_rounds, futex_rounds;
  for (int round = 0; round < how.rounds(); ++round) {
    samples task_us, raw_us;
    for (std::size_t i = 0; i < wakes; ++i) {
      raw_us.push_back(wake_time_us([&] { sleeper.wait_asleep(); }, [&] { sleeper.wake(); }));
      task_us.push_back(wake_time_us([&] { leveret.wait_parked(parks_before); }, wake_worker));
    }
    task_rounds.push_back(median(task_us));
    futex_rounds.push_back(median(raw_us));
  }
  leveret.check_worker_ran();

  figures.add(wake_over_futex, ratio(task_rounds, futex_rounds),
              text("bare futex wake and answer: %.1f us", median(futex_rounds)));
  figures.add(wake_us, task_rounds);
  figures.add(futex_us, futex_rounds);
}

}  // namespace bench
