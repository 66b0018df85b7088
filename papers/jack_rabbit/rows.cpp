// Jack Rabbit: rows of docs/papers/results.md, T1 to T3.
#include <algorithm>
#include <array>

#include "jack_rabbit/applications.hpp"

namespace leveret_papers {

namespace {

double lu(world& w, unsigned kilo, unsigned spes, bool is_double_buffered) {
  return lu_seconds(w, {kilo * 1024, spes, is_double_buffered});
}

template <unsigned Kilo, unsigned Spes, bool Doubled>
double lu_cell(world& w) {
  return lu(w, Kilo, Spes, Doubled);
}

template <unsigned Kilo>
double lu_gain(world& w) {
  return lu(w, Kilo, 1, false) / lu(w, Kilo, 6, false);
}

double smaller_gain_more(world& w) {
  for (unsigned spes = 2; spes <= 6; ++spes) {
    double last = 1;
    for (const unsigned kilo : {4u, 3u, 2u}) {
      const double share = lu(w, kilo, spes, true) / lu(w, kilo, spes, false);
      if (share >= last) return 0;
      last = share;
    }
  }
  return 1;
}

double five_beat_six(world& w) {
  return lu(w, 1, 5, false) < lu(w, 1, 6, false) ? 1 : 0;
}

double bodies(world& w, unsigned count, unsigned spes, bool is_double_buffered) {
  const char* cost = count == 10000    ? "jack_rabbit.bodies_10k"
                     : count == 100000 ? "jack_rabbit.bodies_100k"
                                       : "jack_rabbit.bodies_1m";
  return bodies_seconds(w, {count, 1000000 / count, spes, is_double_buffered, cost});
}

template <unsigned Bodies>
double bodies_cell(world& w) {
  return bodies(w, Bodies, 1, false);
}
template <unsigned Bodies, unsigned Spes>
double bodies_gain(world& w) {
  return bodies(w, Bodies, 1, false) / bodies(w, Bodies, Spes, false);
}

template <unsigned Bodies>
double bodies_buffered(world& w) {
  for (unsigned spes = 2; spes <= 6; ++spes) {
    const double gain = 1 - bodies(w, Bodies, spes, true) / bodies(w, Bodies, spes, false);
    if (gain < 0 || gain > 0.02) return 0;
  }
  return 1;
}

template <unsigned Bodies>
double sets(world&) {
  return sets_of(Bodies);
}

double all_tasks(world&) {
  double sum = 0;
  for (const unsigned count : {10000u, 100000u, 1000000u})
    sum += (1000000.0 / count) * sets_of(count) * (sets_of(count) + 1.0);
  return sum * 1e-6;
}

double frames_of_40(world& w) {
  return frames_seconds(w, 40, true);
}
double frames_256_over_40(world& w) {
  return frames_seconds(w, 40, true) / frames_seconds(w, 256, true);
}

bool is_between(double value, double low, double high) {
  return low <= value && value <= high;
}
double fine_is_not_slower(world& w) {
  for (const unsigned tasks : {160u, 200u, 256u})
    if (!is_between(frames_seconds(w, tasks, false) / frames_seconds(w, tasks, true), 1, 1.2))
      return 0;
  return 1;
}
double middle_is_not_faster(world& w) {
  for (const unsigned tasks : {32u, 40u, 64u, 96u, 128u})
    if (!is_between(frames_seconds(w, tasks, true) / frames_seconds(w, tasks, false), 1, 1.06))
      return 0;
  return 1;
}

double rival_of_one(world& w) {
  return frames_seconds(w, 1, false) / frames_seconds(w, 40, false);
}
double flatness(world& w) {
  double least = 1e9;
  double most = 0;
  for (const unsigned tasks : {1u, 6u, 24u, 40u, 128u, 256u}) {
    const double seconds = frames_seconds(w, tasks, true);
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  }
  return most / least;
}
double one_is_not_slower(world& w) {
  return frames_seconds(w, 1, true) <= frames_seconds(w, 256, true) ? 1 : 0;
}

template <unsigned Asked>
double lines_of(world&) {
  return tasks_of_lines(Asked);
}

double largest_diced(world& w) {
  const auto threshold = static_cast<std::uint32_t>(w.number("jack_rabbit.threshold"));
  std::uint32_t size = 1024;
  while (size > 0 && dicer_asks(size, threshold, 6) == 0) --size;
  return size;
}

// Jack Rabbit's LU with data: the same differences from a serial one for each schedule.
double values_are_equal(world& w) {
  const double one = lu_difference(w, {48, 1, false});
  const double six = lu_difference(w, {48, 6, true});
  return one == six && one < 1e-4 ? 1 : 0;
}

constexpr std::array all{
    row{"T1.1 4k plain 1", lu_cell<4, 1, false>},
    row{"T1.2 4k plain 2", lu_cell<4, 2, false>},
    row{"T1.2 4k plain 3", lu_cell<4, 3, false>},
    row{"T1.2 4k plain 4", lu_cell<4, 4, false>},
    row{"T1.2 4k plain 5", lu_cell<4, 5, false>},
    row{"T1.1 4k plain 6", lu_cell<4, 6, false>},
    row{"T1.2 3k plain 1", lu_cell<3, 1, false>},
    row{"T1.2 3k plain 2", lu_cell<3, 2, false>},
    row{"T1.2 3k plain 3", lu_cell<3, 3, false>},
    row{"T1.2 3k plain 4", lu_cell<3, 4, false>},
    row{"T1.2 3k plain 5", lu_cell<3, 5, false>},
    row{"T1.2 3k plain 6", lu_cell<3, 6, false>},
    row{"T1.2 2k plain 1", lu_cell<2, 1, false>},
    row{"T1.2 2k plain 2", lu_cell<2, 2, false>},
    row{"T1.2 2k plain 3", lu_cell<2, 3, false>},
    row{"T1.2 2k plain 4", lu_cell<2, 4, false>},
    row{"T1.2 2k plain 5", lu_cell<2, 5, false>},
    row{"T1.2 2k plain 6", lu_cell<2, 6, false>},
    row{"T1.1 1k plain 1", lu_cell<1, 1, false>},
    row{"T1.2 1k plain 2", lu_cell<1, 2, false>},
    row{"T1.2 1k plain 3", lu_cell<1, 3, false>},
    row{"T1.2 1k plain 4", lu_cell<1, 4, false>},
    row{"T1.2 1k plain 5", lu_cell<1, 5, false>},
    row{"T1.2 1k plain 6", lu_cell<1, 6, false>},
    row{"T1.2 4k DB 1", lu_cell<4, 1, true>},
    row{"T1.2 4k DB 2", lu_cell<4, 2, true>},
    row{"T1.2 4k DB 3", lu_cell<4, 3, true>},
    row{"T1.2 4k DB 4", lu_cell<4, 4, true>},
    row{"T1.2 4k DB 5", lu_cell<4, 5, true>},
    row{"T1.1 4k DB 6", lu_cell<4, 6, true>},
    row{"T1.2 3k DB 1", lu_cell<3, 1, true>},
    row{"T1.2 3k DB 2", lu_cell<3, 2, true>},
    row{"T1.2 3k DB 3", lu_cell<3, 3, true>},
    row{"T1.2 3k DB 4", lu_cell<3, 4, true>},
    row{"T1.2 3k DB 5", lu_cell<3, 5, true>},
    row{"T1.2 3k DB 6", lu_cell<3, 6, true>},
    row{"T1.2 2k DB 1", lu_cell<2, 1, true>},
    row{"T1.2 2k DB 2", lu_cell<2, 2, true>},
    row{"T1.2 2k DB 3", lu_cell<2, 3, true>},
    row{"T1.2 2k DB 4", lu_cell<2, 4, true>},
    row{"T1.2 2k DB 5", lu_cell<2, 5, true>},
    row{"T1.2 2k DB 6", lu_cell<2, 6, true>},
    row{"T1.1 1k DB 1", lu_cell<1, 1, true>},
    row{"T1.2 1k DB 2", lu_cell<1, 2, true>},
    row{"T1.2 1k DB 3", lu_cell<1, 3, true>},
    row{"T1.2 1k DB 4", lu_cell<1, 4, true>},
    row{"T1.2 1k DB 5", lu_cell<1, 5, true>},
    row{"T1.2 1k DB 6", lu_cell<1, 6, true>},
    row{"T1.3", smaller_gain_more},
    row{"T1.4", five_beat_six},
    row{"T1.5 3k", lu_gain<3>},
    row{"T1.5 2k", lu_gain<2>},
    row{"T1.5 1k", lu_gain<1>},
    row{"T2.1 10k", bodies_cell<10000>},
    row{"T2.1 100k", bodies_cell<100000>},
    row{"T2.1 1m", bodies_cell<1000000>},
    row{"T2.2 10k 2", bodies_gain<10000, 2>},
    row{"T2.2 10k 3", bodies_gain<10000, 3>},
    row{"T2.2 10k 4", bodies_gain<10000, 4>},
    row{"T2.2 10k 5", bodies_gain<10000, 5>},
    row{"T2.2 10k 6", bodies_gain<10000, 6>},
    row{"T2.2 100k 2", bodies_gain<100000, 2>},
    row{"T2.2 100k 3", bodies_gain<100000, 3>},
    row{"T2.2 100k 4", bodies_gain<100000, 4>},
    row{"T2.2 100k 5", bodies_gain<100000, 5>},
    row{"T2.2 100k 6", bodies_gain<100000, 6>},
    row{"T2.2 1m 2", bodies_gain<1000000, 2>},
    row{"T2.2 1m 3", bodies_gain<1000000, 3>},
    row{"T2.2 1m 4", bodies_gain<1000000, 4>},
    row{"T2.2 1m 5", bodies_gain<1000000, 5>},
    row{"T2.2 1m 6", bodies_gain<1000000, 6>},
    row{"T2.3 100k", bodies_buffered<100000>},
    row{"T2.3 1m", bodies_buffered<1000000>},
    row{"T2.4 10k", sets<10000>},
    row{"T2.4 1m", sets<1000000>},
    row{"T2.4 all", all_tasks},
    row{"T3.1", frames_of_40},
    row{"T3.2", frames_256_over_40},
    row{"T3.3 fine", fine_is_not_slower},
    row{"T3.3 middle", middle_is_not_faster},
    row{"T3.4 one", rival_of_one},
    row{"T3.4 flat", flatness},
    row{"T3.4 single", one_is_not_slower},
    row{"T3.5 128", lines_of<128>},
    row{"T3.5 144", lines_of<144>},
    row{"T3.5 256", lines_of<256>},
    row{"T3.6", largest_diced},
    row{"T8.3", values_are_equal},
};

std::vector<line_of_points> frames_by_tasks(world& w) {
  std::vector<line_of_points> lines{{"with the dicer", {}}, {"without dicer", {}}};
  for (const unsigned tasks : {1u, 6u, 12u, 24u, 40u, 64u, 96u, 128u, 160u, 200u, 256u}) {
    lines[0].points.push_back({double(tasks), frames_seconds(w, tasks, true)});
    lines[1].points.push_back({double(tasks), frames_seconds(w, tasks, false)});
  }
  return lines;
}

constexpr std::array figures{
    figure{"jack_rabbit", "S0 figure 5.7", "1000 frames of the Mandelbrot set, six SPEs", "tasks",
           "seconds", frames_by_tasks},
};

}  // namespace

std::span<const row> jack_rabbit_rows() {
  return all;
}

std::span<const figure> jack_rabbit_figures() {
  return figures;
}

}  // namespace leveret_papers
