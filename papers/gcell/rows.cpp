// gcell: rows of docs/papers/results.md, T7.
#include <array>

#include "gcell/jobs.hpp"

namespace leveret_papers {

namespace {

double of_qs21(world& w, unsigned spes, double delay_us) {
  // The nominal delay is what the paper's speed-up counts; the job takes it.
  gcell_jobs j;
  j.spes = spes;
  j.delay_us = delay_us / w.number("gcell.delay");
  return efficiency(w, j) * w.number("gcell.delay");
}

double eight_at_50(world& w) {
  return of_qs21(w, 8, 50);
}
double thresholds(world& w) {
  constexpr double linear = 0.9;
  if (of_qs21(w, 8, 50) < linear || of_qs21(w, 12, 50) >= linear) return 0;
  if (of_qs21(w, 12, 100) < linear || of_qs21(w, 16, 100) >= linear) return 0;
  return of_qs21(w, 16, 200) >= linear ? 1 : 0;
}

// The measurements of December 2007: a PS3, a letter for each job.
double of_2007(world& w, unsigned spes, double delay_us) {
  gcell_jobs j;
  j.machine = "cell-ps3";
  j.spes = spes;
  j.jobs = 2000;
  j.delay_us = delay_us;
  j.is_batched = false;
  return us_of_a_job(w, j);
}

template <unsigned Spes, unsigned Delay>
double cell_of_2007(world& w) {
  return of_2007(w, Spes, Delay);
}

double event_is_slower(world& w) {
  gcell_jobs j;
  j.delay_us = 50;
  j.jobs = 3000;
  const double with_back_off = us_of_a_job(w, j);
  j.waits_for_event = true;
  return us_of_a_job(w, j) >= with_back_off ? 1 : 0;
}

double ceiling(world& w) {
  return 6 / w.number("gcell.delay");
}

double aligned_over_not(world& w) {
  const auto seconds = [&](std::uint32_t shift) {
    cell::machine m(w.file("cell-qs21"));
    const auto there = m.memory<char>(65536);
    m.spe_program(0, [&](cell::spe& s) {
      const auto here = s.allocate<char>(32768);
      for (unsigned k = 0; k < 200; ++k) s.get(here.ls, there.ea + shift, 16384, k % 16);
      s.wait_all(0xffff);
    });
    return lev::seconds_of(w.run(m).time);
  };
  return seconds(16) / seconds(0);
}

constexpr std::array rows{
    row{"T7.0", cell_of_2007<6, 5>},
    row{"T7.0 one", cell_of_2007<1, 5>},
    row{"T7.1 efficiency", eight_at_50},
    row{"T7.1-7.3", thresholds},
    row{"T7.2007 50us 1", cell_of_2007<1, 50>},
    row{"T7.2007 50us 2", cell_of_2007<2, 50>},
    row{"T7.2007 50us 3", cell_of_2007<3, 50>},
    row{"T7.2007 50us 6", cell_of_2007<6, 50>},
    row{"T7.2007 100us 1", cell_of_2007<1, 100>},
    row{"T7.2007 100us 2", cell_of_2007<2, 100>},
    row{"T7.2007 100us 3", cell_of_2007<3, 100>},
    row{"T7.2007 100us 4", cell_of_2007<4, 100>},
    row{"T7.2007 100us 6", cell_of_2007<6, 100>},
    row{"T7.2007 300us 1", cell_of_2007<1, 300>},
    row{"T7.2007 300us 6", cell_of_2007<6, 300>},
    row{"T7.2007 500us 1", cell_of_2007<1, 500>},
    row{"T7.2007 500us 6", cell_of_2007<6, 500>},
    row{"T7.4", event_is_slower},
    row{"T7.5", ceiling},
    row{"T7.6", aligned_over_not},
};

std::vector<line_of_points> speed_ups(world& w) {
  std::vector<line_of_points> lines;
  for (const double us : {10.0, 50.0, 100.0, 200.0, 500.0}) {
    lines.push_back({std::to_string(static_cast<int>(us)) + " us", {}});
    for (const unsigned spes : {1u, 2u, 4u, 6u, 8u, 10u, 12u, 14u, 16u})
      lines.back().points.push_back({double(spes), spes * of_qs21(w, spes, us)});
  }
  return lines;
}

std::vector<line_of_points> speed_ups_by_length(world& w) {
  std::vector<line_of_points> lines{{"6 SPEs, PS3", {}}, {"16 SPEs, QS21", {}}};
  for (const double us : {10.0, 20.0, 50.0, 100.0, 200.0, 500.0}) {
    gcell_jobs six{"cell-ps3", 6};
    six.delay_us = us;
    lines[0].points.push_back({us, 6 * efficiency(w, six)});
    lines[1].points.push_back({us, 16 * of_qs21(w, 16, us)});
  }
  return lines;
}

constexpr std::array figures{
    figure{"gcell", "S4 figure 2 by length", "speed-up by the length of a job", "us", "speed-up",
           speed_ups_by_length},
    figure{"gcell", "S4 figure 2", "speed-up by the length of a job, QS21", "SPEs", "speed-up",
           speed_ups},
};

}  // namespace

std::span<const row> gcell_rows() {
  return rows;
}

std::span<const figure> gcell_figures() {
  return figures;
}

}  // namespace leveret_papers
