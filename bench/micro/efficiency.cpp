// efficiency: tasks of a fixed length from one submitter, one by one and as a bulk that is a range;
// work / (wall x cores).
//
// A task is a chain of dependent multiplications; how long it takes alone is measured in each round
// right before the tasks run. The plain static loop shows what the machine allows.
#include "limits/crew.hpp"
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <atomic>

namespace bench {
namespace {

struct length {
  double task_ns;
  figure_spec leveret;
  figure_spec over_loop;
  figure_spec bulk_over_loop;
  figure_spec loop;
  figure_spec onetbb;
};

constexpr length lengths[] = {
    {500,
     {"eff_500ns", "ratio", ">= 0.92"},
     {"eff_500ns_over_loop", "ratio", ">= 0.95"},
     {"bulk_500ns_over_loop", "ratio", ">= 0.95"},
     {"loop_500ns", "ratio", ""},
     {"onetbb_500ns", "ratio", ""}},
    {1'000,
     {"eff_1us", "ratio", ">= 0.95"},
     {"eff_1us_over_loop", "ratio", ">= 0.97"},
     {"bulk_1us_over_loop", "ratio", ">= 0.97"},
     {"loop_1us", "ratio", ""},
     {"onetbb_1us", "ratio", ""}},
    {5'000,
     {"eff_5us", "ratio", ">= 0.97"},
     {"eff_5us_over_loop", "ratio", ""},
     {"bulk_5us_over_loop", "ratio", ""},
     {"loop_5us", "ratio", ""},
     {"onetbb_5us", "ratio", ""}},
    {50'000,
     {"eff_50us", "ratio", ">= 0.98"},
     {"eff_50us_over_loop", "ratio", ""},
     {"bulk_50us_over_loop", "ratio", ""},
     {"loop_50us", "ratio", ""},
     {"onetbb_50us", "ratio", ""}},
};

std::atomic<std::uint64_t> ran{0};  // written by the checked tasks, read when all are done

void count_value(std::uint64_t value) {
  ran.fetch_add(value, std::memory_order_relaxed);
}
void work(std::uint64_t steps) {
  keep(chain(steps, steps));
}

using work_procedure = lev::procedure<void(std::uint64_t)>;

void run_leveret(lev::runtime& runtime, work_procedure p, std::size_t count, std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i) runtime.post(p, value);
  check(runtime.wait_for_completion().code == lev::status::ok, "wait_for_completion");
}

void run_bulk(lev::runtime& runtime, work_procedure p, std::size_t count, std::uint64_t value) {
  const auto make = [&](std::size_t, lev::descriptor& task) {
    if (task.argument_count == 0) task = lev::pack(p, value);
  };
  runtime.submit_bulk(lev::from_any_thread, count, make).wait();
}

// stream(count) runs so many tasks of `steps` steps.
template <class Stream>
double efficiency_of(std::size_t count, std::uint64_t steps, Stream&& stream) {
  stream(count / 20);
  const std::size_t alone = count / 20;
  const std::uint64_t alone_start_ns = now_ns();
  for (std::size_t i = 0; i < alone; ++i) work(steps);
  const double work_ns =
      static_cast<double>(now_ns() - alone_start_ns) / static_cast<double>(alone);
  const std::uint64_t start_ns = now_ns();
  stream(count);
  const double wall_ns = static_cast<double>(now_ns() - start_ns);
  return work_ns * static_cast<double>(count) / (wall_ns * lev::available_cores());
}

void check_answers(lev::runtime& runtime) {
  constexpr std::uint64_t count = 10'000;
  const auto counted = lev::define("bench.count_value", count_value);
  run_leveret(runtime, counted, count, 3);
  check(ran.exchange(0) == 3 * count, "posted tasks");
  run_bulk(runtime, counted, count, 3);
  check(ran.exchange(0) == 3 * count, "a bulk");
  if (onetbb().table == nullptr) return;
  onetbb().table->stream(count, count_value, 3);
  check(ran.exchange(0) == 3 * count, "oneTBB");
}

}  // namespace

void efficiency(const settings& how, report& figures) {
  const auto procedure = lev::define("bench.work", work);
  lev::runtime runtime;
  crew loop_threads(lev::available_cores());
  check_answers(runtime);
  const rival tbb = onetbb();
  const double step_ns = chain_step_ns();
  const double work_ns = 200e6 * lev::available_cores();  // of all tasks of one stream together

  for (const length& l : lengths) {
    const std::size_t count = how.scaled(static_cast<std::size_t>(work_ns / l.task_ns));
    const auto steps = static_cast<std::uint64_t>(l.task_ns / step_ns);
    const auto tasks = [&](std::size_t n) { run_leveret(runtime, procedure, n, steps); };
    const auto bulk = [&](std::size_t n) { run_bulk(runtime, procedure, n, steps); };
    const auto loop = [&](std::size_t n) {
      loop_threads.split(n, [steps](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) work(steps);
      });
    };
    const auto peer = [&](std::size_t n) { tbb.table->stream(n, work, steps); };
    std::function<double()> run_peer;
    if (tbb.table != nullptr) run_peer = [&] { return efficiency_of(count, steps, peer); };
    const auto rounds =
        interleave(how.rounds(), {[&] { return efficiency_of(count, steps, tasks); },
                                  [&] { return efficiency_of(count, steps, loop); }, run_peer,
                                  [&] { return efficiency_of(count, steps, bulk); }});
    figures.add(l.leveret, rounds[0], text("plain static loop: %.3f", median(rounds[1])));
    figures.add(l.over_loop, ratio(rounds[0], rounds[1]));
    figures.add(l.bulk_over_loop, ratio(rounds[3], rounds[1]));
    figures.add(l.loop, rounds[1]);
    figures.add(l.onetbb, rounds[2], tbb.table == nullptr ? tbb.absent : "");
  }
}

}  // namespace bench
