// imbalance: a Mandelbrot picture, rows of very unequal work, in T tasks that Leveret may dice;
// wall / (serial / cores).
//
// Without dicing the best possible is 2.0 for one task on two cores and 1.3 for three. With dicing
// T should not matter.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>
#include <leveret_apps/mandelbrot.hpp>

#include <algorithm>

namespace bench {
namespace {

constexpr figure_spec worst_over_ideal{"worst_over_ideal", "ratio", "<= 1.03"};

struct task_count {
  unsigned tasks;
  figure_spec figure;
};
constexpr task_count task_counts[] = {
    {1, {"t1", "ratio", "<= 1.03"}},     {2, {"t2", "ratio", "<= 1.03"}},
    {3, {"t3", "ratio", "<= 1.03"}},     {5, {"t5", "ratio", "<= 1.03"}},
    {8, {"t8", "ratio", "<= 1.03"}},     {16, {"t16", "ratio", "<= 1.03"}},
    {64, {"t64", "ratio", "<= 1.03"}},   {128, {"t128", "ratio", "<= 1.03"}},
    {256, {"t256", "ratio", "<= 1.03"}},
};

using picture = std::vector<std::uint16_t>;

// One picture size, and the right picture.
struct problem {
  explicit problem(const leveret_apps::mandelbrot_view& v)
      : view(v), expected(std::size_t{v.width} * v.height), pixels(expected.size()) {
    leveret_apps::mandelbrot_serial(view, expected.data());
  }
  leveret_apps::mandelbrot_view view;
  picture expected;
  picture pixels;
};

template <class Draw>
double drawing_ns(problem& data, Draw&& draw) {
  std::fill(data.pixels.begin(), data.pixels.end(), std::uint16_t{0});
  const std::uint64_t start_ns = now_ns();
  draw(data.pixels.data());
  const double wall_ns = static_cast<double>(now_ns() - start_ns);
  check(data.pixels == data.expected, "picture");
  return wall_ns;
}

// The serial run comes right before the tasks, so that a machine that slows down slows both down.
double over_ideal(lev::runtime& runtime, problem& data, unsigned tasks) {
  const double serial_ns = drawing_ns(
      data, [&](std::uint16_t* counts) { leveret_apps::mandelbrot_serial(data.view, counts); });
  const double wall_ns = drawing_ns(data, [&](std::uint16_t* counts) {
    leveret_apps::mandelbrot(runtime, data.view, tasks, true, counts);
  });
  return wall_ns / (serial_ns / lev::available_cores());
}

}  // namespace

void imbalance(const settings& how, report& figures) {
  leveret_apps::mandelbrot_view view;
  if (how.quick) view.width /= 4;
  problem data(view);
  lev::runtime runtime;

  std::vector<std::function<double()>> contestants;
  for (const task_count& t : task_counts) {
    contestants.push_back([&] { return over_ideal(runtime, data, t.tasks); });
  }
  const auto rounds = interleave(how.rounds(), contestants);

  std::size_t worst = 0;
  for (std::size_t i = 0; i < std::size(task_counts); ++i) {
    if (median(rounds[i]) > median(rounds[worst])) worst = i;
  }
  const std::string ideal = text("serial run / %u cores", lev::available_cores());
  figures.add(worst_over_ideal, rounds[worst],
              text("%s; worst with %u tasks", ideal.c_str(), task_counts[worst].tasks));
  for (std::size_t i = 0; i < std::size(task_counts); ++i) {
    figures.add(task_counts[i].figure, rounds[i], ideal);
  }
}

}  // namespace bench
