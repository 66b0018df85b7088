// loop-step: a step of a simulation: four short pieces of a loop, and a wait for all. By
// parallel_for, by a bulk, by post and the barrier, beside OpenMP's `for`, whose threads poll
// between the steps, and oneTBB's. And a frame: a loop of 2 ms after a pause, when all are asleep.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <chrono>
#include <thread>

namespace bench {
namespace {

constexpr figure_spec loop_over_omp{"parallel_for_over_omp", "ratio", "<= 1.2"};
constexpr figure_spec bulk_over_omp{"bulk_over_omp", "ratio", "<= 1.2"};
constexpr figure_spec posts_over_omp{"posts_over_omp", "ratio", ""};
constexpr figure_spec loop_over_tbb{"parallel_for_over_onetbb", "ratio", ""};
constexpr figure_spec loop_us{"parallel_for_us", "us", ""};

constexpr figure_spec frame_over_ideal{"frame_over_ideal", "ratio", "<= 1.25"};
constexpr figure_spec frame_tasks_over_ideal{"frame_tasks_over_ideal", "ratio", "<= 1.25"};
constexpr figure_spec frame_omp{"frame_openmp_over_ideal", "ratio", ""};
constexpr figure_spec frame_tbb{"frame_onetbb_over_ideal", "ratio", ""};

constexpr std::size_t pieces = 4;

void work(std::uint64_t steps) {
  keep(chain(steps, steps));
}

using step = std::function<void()>;

// The median of a step: one in which a thread has lost its core does not count.
double step_us(std::size_t count, const step& one) {
  wait_until_quiet();
  return typical_ns(count, one) / 1e3;
}

std::function<double()> contestant(std::size_t count, step one) {
  return [=] { return step_us(count, one); };
}

step peer_step(const rival& r, std::uint64_t steps) {
  if (r.table == nullptr || r.table->loop == nullptr) return {};
  return [=] { r.table->loop(pieces, work, steps); };
}

void add_peer(report& figures, const figure_spec& spec, const rival& r, const samples& leveret,
              const samples& peer) {
  if (peer.empty()) return figures.add(spec, {}, r.absent);
  figures.add(spec, ratio(leveret, peer), text("%s: %.2f us", r.table->name, median(peer)));
}

// A frame of a program that does nothing in between: the mean, as the slow ones are what is seen.
constexpr std::size_t frame_items = 256;
constexpr std::uint64_t frame_ns = 2'000'000;

double frames_over_ideal(std::size_t count, const step& one) {
  wait_until_quiet();
  std::uint64_t took_ns = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const std::uint64_t start_ns = now_ns();
    one();
    took_ns += now_ns() - start_ns;
  }
  const double ideal_ns = static_cast<double>(frame_ns) / lev::available_cores();
  return static_cast<double>(took_ns) / static_cast<double>(count) / ideal_ns;
}

std::function<double()> frames(std::size_t count, step one) {
  if (!one) return {};
  return [=] { return frames_over_ideal(count, one); };
}

step peer_frame(const rival& r, std::uint64_t steps) {
  if (r.table == nullptr || r.table->loop == nullptr) return {};
  return [=] { r.table->loop(frame_items, work, steps); };
}

void add_frames(const settings& how, report& figures, lev::runtime& runtime) {
  const auto steps = static_cast<std::uint64_t>(frame_ns / frame_items / chain_step_ns());
  const auto item = lev::define("bench.item", work);
  std::vector<lev::ticket> tickets(frame_items);
  const step by_loop = [&] {
    runtime.parallel_for({0, frame_items}, [=](lev::range r) {
      for (std::uint64_t i = r.begin; i < r.end; ++i) work(steps);
    });
  };
  const step by_tasks = [&] {
    for (lev::ticket& t : tickets) t = runtime.submit(item, steps);
    for (lev::ticket& t : tickets) t.wait();
  };
  const std::size_t count = how.scaled(100);
  const auto ratios = interleave(how.rounds(), {frames(count, by_loop), frames(count, by_tasks),
                                                frames(count, peer_frame(openmp(), steps)),
                                                frames(count, peer_frame(onetbb(), steps))});
  figures.add(frame_over_ideal, ratios[0], "2 ms of work, after a pause of 3 ms");
  figures.add(frame_tasks_over_ideal, ratios[1], "the same in 256 tasks");
  figures.add(frame_omp, ratios[2], ratios[2].empty() ? openmp().absent : "");
  figures.add(frame_tbb, ratios[3], ratios[3].empty() ? onetbb().absent : "");
}

}  // namespace

void loop_step(const settings& how, report& figures) {
  // A piece of some 0.1 us: the step's own cost decides.
  const auto steps = static_cast<std::uint64_t>(100 / chain_step_ns());
  const std::size_t count = how.scaled(50'000);
  lev::runtime runtime;
  const auto piece = lev::define("bench.piece", work);
  const step by_loop = [&] {
    runtime.parallel_for({0, pieces}, [=](lev::range r) {
      for (std::uint64_t i = r.begin; i < r.end; ++i) work(steps);
    });
  };
  const step by_bulk = [&] {
    const auto fill = [=](std::size_t, lev::descriptor& d) { d = lev::pack(piece, steps); };
    runtime.submit_bulk(lev::from_any_thread, pieces, fill).wait();
  };
  const step by_posts = [&] {
    for (std::size_t i = 0; i < pieces; ++i) runtime.post(piece, steps);
    check(runtime.wait_for_completion().code == lev::status::ok, "post");
  };
  std::vector<std::function<double()>> contestants;
  for (const step& one :
       {by_loop, by_bulk, by_posts, peer_step(openmp(), steps), peer_step(onetbb(), steps)}) {
    contestants.push_back(one ? contestant(count, one) : std::function<double()>());
  }
  const auto us = interleave(how.rounds(), contestants);
  add_peer(figures, loop_over_omp, openmp(), us[0], us[3]);
  add_peer(figures, bulk_over_omp, openmp(), us[1], us[3]);
  add_peer(figures, posts_over_omp, openmp(), us[2], us[3]);
  add_peer(figures, loop_over_tbb, onetbb(), us[0], us[4]);
  figures.add(loop_us, us[0], text("%.2f us of work, serially", 4 * 0.1));
  add_frames(how, figures, runtime);
}

}  // namespace bench
