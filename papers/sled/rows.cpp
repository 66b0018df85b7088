// SLED: rows of docs/papers/results.md, T6.
#include <algorithm>
#include <array>

#include "sled/offloads.hpp"

namespace leveret_papers {

namespace {

// The mean over the lengths of the paper's figure 8.
double idle_of(world& w, waiting how) {
  double sum = 0;
  constexpr std::array lengths{30.0, 60.0, 100.0, 200.0, 300.0};
  for (const double us : lengths) {
    offloads o{how, us};
    // Six processes that look at all SPEs and are more than the contexts: one that is stopped while
    // it serves an SPE stops that one, too, for the others' quanta. The paper's mean has none of
    // it.
    if (how == waiting::work_stealing) o.tasks = static_cast<unsigned>(8000 / (us + 10));
    sum += idle_us(w, o);
  }
  return sum / lengths.size();
}

// Three processes of a context that only yield: the time from one turn to the next.
double only_yields(world& w) {
  cell::machine m(w.file("cell-ps3"));
  double us = 0;
  for (int i = 0; i < 3; ++i)
    m.ppe_program(
        [&, i](cell::ppe& p) {
          p.compute(cycles(1000));
          const virtual_time begin = p.now();
          for (int k = 0; k < 50; ++k) p.yield();
          if (i == 0) us = lev::seconds_of(p.now() - begin) * 1e6 / 50;
        },
        "yields", 0);
  w.run(m);
  return us;
}

double by_stealing(world& w) {
  return idle_of(w, waiting::work_stealing);
}
double by_yield(world& w) {
  return idle_of(w, waiting::yield);
}
double by_sled(world& w) {
  return idle_of(w, waiting::sled);
}
double by_sled_in_kernel(world& w) {
  return idle_of(w, waiting::sled_in_kernel);
}
// Section 4.1: of empty tasks.
double by_interrupt(world& w) {
  return idle_us(w, {waiting::interrupt, 0});
}

double yield_to_price(world& w) {
  return w.constant(w.file("cell-ps3"), "ppe.yield_to");
}

double kernel_is_slower(world& w) {
  return by_sled_in_kernel(w) > by_sled(w) ? 1 : 0;
}

// The length from which on, for all longer ones, SLED keeps SPEs idle for less time than YNR.
double crossover(world& w) {
  double from = 100;
  for (const double us : {50.0, 30.0, 25.0, 20.0, 15.0, 12.0, 10.0, 8.0, 5.0}) {
    if (idle_us(w, {waiting::sled, us}) >= idle_us(w, {waiting::yield, us})) return from;
    from = us;
  }
  return from;
}

double yield_is_ahead_of_short(world& w) {
  for (const double us : {1.0, 5.0})
    if (idle_us(w, {waiting::yield, us}) >= idle_us(w, {waiting::sled, us})) return 0;
  return 1;
}

double stealing_gain(world&) {
  return 100 * (10.0 - 3.0) / 10.0;
}
double sled_gain(world&) {
  return 100 * (10.0 - 7.0) / 10.0;
}
double of_30(world&) {
  return 100 * (1 - (30.0 + 3) / (30 + 10));
}
double of_300(world&) {
  return 100 * (1 - (300.0 + 3) / (300 + 10));
}

// Speed of six processes that yield over six that look until their quantum ends.
double yield_over_busy(world& w, double us) {
  const auto rate = [&](waiting how) {
    offloads o{how, us};
    o.tasks = 600;
    return us + idle_us(w, o);
  };
  return rate(waiting::busy) / rate(waiting::yield);
}

double yield_over_busy(world& w) {
  return yield_over_busy(w, 100);
}

// PBPI, whose every task is followed by an exchange of all processes: polling in the kernel over
// polling in the process, by passes.
double kernel_over_user(world& w, unsigned passes) {
  offloads o{waiting::sled_in_kernel, 60};
  o.passes = passes;
  o.reduces = true;
  const double in_kernel = stage_us(w, o);
  o.how = waiting::sled;
  return in_kernel / stage_us(w, o);
}
double exchange_in_kernel(world& w) {
  return kernel_over_user(w, 100);
}

double spread_of_passes(world& w) {
  double least = 1e9;
  double most = 0;
  for (const unsigned passes : {50u, 75u, 100u}) {
    offloads o{waiting::sled, 100};
    o.passes = passes;
    const double utilization = 100 / (100 + idle_us(w, o));
    least = std::min(least, utilization);
    most = std::max(most, utilization);
  }
  return 100 * (most / least - 1);
}

// By how many percent the tasks of an application are done earlier than with YNR.
template <std::size_t Count>
double gain_over_yield(world& w, waiting how, const std::array<double, Count>& lengths) {
  double with = 0;
  double without = 0;
  for (const double us : lengths) {
    offloads o{how, us};
    if (how == waiting::work_stealing) o.tasks = static_cast<unsigned>(8000 / (us + 10));
    with += us + idle_us(w, o);
    without += us + idle_us(w, {waiting::yield, us});
  }
  return 100 * (without / with - 1);
}

// Most of PBPI's tasks are shorter than 100 us, RAxML's are longer; more is not in the text.
constexpr std::array of_pbpi{20.0, 40.0, 60.0, 80.0, 100.0};
constexpr std::array of_raxml{100.0, 200.0, 300.0, 500.0};

double pbpi_by_stealing(world& w) {
  return gain_over_yield(w, waiting::work_stealing, of_pbpi);
}
double pbpi_by_sled(world& w) {
  return gain_over_yield(w, waiting::sled, of_pbpi);
}
double raxml_by_sled(world& w) {
  return gain_over_yield(w, waiting::sled, of_raxml);
}

// The most of those lengths, each alone.
template <std::size_t Count>
double most_over_yield(world& w, waiting how, const std::array<double, Count>& lengths) {
  double most = -100;
  for (const double us : lengths) most = std::max(most, gain_over_yield(w, how, std::array{us}));
  return most;
}

double pbpi_by_stealing_at_most(world& w) {
  return most_over_yield(w, waiting::work_stealing, of_pbpi);
}
double pbpi_by_sled_at_most(world& w) {
  return most_over_yield(w, waiting::sled, of_pbpi);
}
double raxml_by_sled_at_most(world& w) {
  return most_over_yield(w, waiting::sled, of_raxml);
}

// Six processes with an SPE each over one that splits its tasks among six.
double six_over_one(world& w, double us) {
  const double six = (us + idle_us(w, {waiting::yield, us})) / 6;
  const double part = us / 6;
  return (part + idle_us(w, {waiting::one_of_six, part})) / six;
}
double six_over_one(world& w) {
  return six_over_one(w, 100);
}

double idle_saved(world& w) {
  double with = 0;
  double without = 0;
  for (const double us : of_pbpi) {
    with += idle_us(w, {waiting::sled, us});
    without += idle_us(w, {waiting::yield, us});
  }
  return 100 * (1 - with / without);
}

constexpr std::array rows{
    row{"T6.1", only_yields},
    row{"T6.2", by_stealing},
    row{"T6.3", yield_to_price},
    row{"T6.4", by_yield},
    row{"T6.5 user", by_sled},
    row{"T6.5 kernel", kernel_is_slower},
    row{"T6.6 crossover", crossover},
    row{"T6.6 short", yield_is_ahead_of_short},
    row{"T6.7", by_interrupt},
    row{"T6.8 stealing", stealing_gain},
    row{"T6.8 SLED", sled_gain},
    row{"T6.9 30us", of_30},
    row{"T6.9 300us", of_300},
    row{"T6.10", yield_over_busy},
    row{"T6.11", six_over_one},
    row{"T6.12 PBPI stealing", pbpi_by_stealing},
    row{"T6.12 PBPI stealing most", pbpi_by_stealing_at_most},
    row{"T6.12 PBPI SLED", pbpi_by_sled},
    row{"T6.12 PBPI SLED most", pbpi_by_sled_at_most},
    row{"T6.12 RAxML SLED", raxml_by_sled},
    row{"T6.12 RAxML SLED most", raxml_by_sled_at_most},
    row{"T6.13", idle_saved},
    row{"T6.14", spread_of_passes},
    row{"T6.15", exchange_in_kernel},
};

std::vector<line_of_points> idle_by_length(world& w) {
  std::vector<line_of_points> lines{
      {"YNR", {}}, {"SLED", {}}, {"SLED, polling in the kernel", {}}, {"interrupt mailbox", {}}};
  for (const double us : {5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 100.0, 200.0, 300.0}) {
    std::size_t i = 0;
    for (const waiting how :
         {waiting::yield, waiting::sled, waiting::sled_in_kernel, waiting::interrupt})
      lines[i++].points.push_back({us, idle_us(w, {how, us})});
  }
  return lines;
}

std::vector<line_of_points> idle_by_passes(world& w) {
  std::vector<line_of_points> lines{{"in the process", {}}, {"in the kernel", {}}};
  for (const unsigned passes : {10u, 25u, 50u, 75u, 100u, 200u, 400u}) {
    std::size_t i = 0;
    for (const waiting how : {waiting::sled, waiting::sled_in_kernel}) {
      offloads o{how, 100};
      o.passes = passes;
      lines[i++].points.push_back({double(passes), idle_us(w, o)});
    }
  }
  return lines;
}

constexpr std::array lengths_of_figures{10.0, 20.0, 30.0, 60.0, 100.0, 200.0, 300.0};

std::vector<line_of_points> gains_by_length(world& w) {
  std::vector<line_of_points> lines{{"YNR over busy waiting", {}}};
  for (const double us : lengths_of_figures)
    lines[0].points.push_back({us, yield_over_busy(w, us)});
  return lines;
}

std::vector<line_of_points> six_over_one_by_length(world& w) {
  std::vector<line_of_points> lines{{"six processes over one", {}}};
  for (const double us : lengths_of_figures) lines[0].points.push_back({us, six_over_one(w, us)});
  return lines;
}

// Of the mean idle times, as the paper's.
std::vector<line_of_points> expected_utilization(world& w) {
  std::vector<line_of_points> lines;
  const std::array<std::pair<const char*, waiting>, 4> ways{
      {{"work stealing", waiting::work_stealing},
       {"SLED", waiting::sled},
       {"YNR", waiting::yield},
       {"interrupt mailbox", waiting::interrupt}}};
  for (const auto& [name, how] : ways) {
    lines.push_back({name, {}});
    const double idle = idle_of(w, how);
    for (const double us : lengths_of_figures)
      lines.back().points.push_back({us, 100 * us / (us + idle)});
  }
  return lines;
}

// Time over the shortest of all passes, for each length of a task.
std::vector<line_of_points> kernel_by_passes(world& w) {
  constexpr std::array passes{10u, 25u, 50u, 100u, 200u, 400u};
  std::vector<line_of_points> lines;
  for (const double us : {15.0, 30.0, 100.0, 300.0}) {
    lines.push_back({std::to_string(static_cast<int>(us)) + " us", {}});
    double least = 1e9;
    for (const unsigned count : passes) {
      offloads o{waiting::sled_in_kernel, us};
      o.passes = count;
      lines.back().points.push_back({double(count), us + idle_us(w, o)});
      least = std::min(least, lines.back().points.back().y);
    }
    for (point& p : lines.back().points) p.y /= least;
  }
  return lines;
}

std::vector<line_of_points> exchanges_by_passes(world& w) {
  std::vector<line_of_points> lines{{"in the process", {}}, {"in the kernel", {}}};
  for (const unsigned passes : {10u, 25u, 50u, 100u, 200u, 400u, 1000u}) {
    std::size_t i = 0;
    for (const waiting how : {waiting::sled, waiting::sled_in_kernel}) {
      offloads o{how, 60};
      o.passes = passes;
      o.reduces = true;
      lines[i++].points.push_back({double(passes), stage_us(w, o)});
    }
  }
  return lines;
}

constexpr std::array figures{
    figure{"sled", "S3 figure 14", "SLED, all processes exchange after each task of 60 us",
           "passes", "us of a task and its exchange", exchanges_by_passes},
    figure{"sled", "S3 figure 2", "six processes that yield over six that look", "us of a task",
           "times as fast", gains_by_length},
    figure{"sled", "S3 figure 3", "six processes with an SPE each over one with six",
           "us of a task", "times as fast", six_over_one_by_length},
    figure{"sled", "S3 figure 8", "expected utilization, from mean idle times", "us of a task", "%",
           expected_utilization},
    figure{"sled", "S3 figure 9", "SLED, polling in the kernel: time over the shortest", "passes",
           "times as long", kernel_by_passes},
    figure{"sled", "S3 figure 7", "idle time of an SPE for each task", "us of a task", "us",
           idle_by_length},
    figure{"sled", "S3 figure 10", "idle time with SLED, tasks of 100 us", "passes", "us",
           idle_by_passes},
};

}  // namespace

std::span<const row> sled_rows() {
  return rows;
}

std::span<const figure> sled_figures() {
  return figures;
}

}  // namespace leveret_papers
