// isolation-cost: a Mandelbrot picture in 128 tasks, by worker processes and by threads.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>
#include <leveret_apps/mandelbrot.hpp>

namespace bench {
namespace {
constexpr figure_spec over_threads{"over_threads", "ratio", "<= 1.05"};
}

void isolation_cost(const settings& how, report& figures) {
  leveret_apps::mandelbrot_view view;
  if (how.quick) view.width /= 4;
  const std::size_t pixels = std::size_t{view.width} * view.height;
  std::vector<std::uint16_t> expected(pixels);
  leveret_apps::mandelbrot_serial(view, expected.data());
  lev::runtime threads;  // one worker less than cores, and the host that helps
  lev::config c;
  c.machine = "processes";
  lev::runtime processes(c);
  const auto draw = [&](lev::runtime& r) {
    std::vector<std::uint16_t> counts(pixels, 0);
    wait_until_quiet();
    const std::uint64_t start = now_ns();
    leveret_apps::mandelbrot(r, view, 128, false, counts.data());
    const double wall = static_cast<double>(now_ns() - start);
    check(counts == expected, "picture");
    return wall;
  };
  const auto rounds =
      interleave(how.rounds(), {[&] { return draw(threads); }, [&] { return draw(processes); }});
  figures.add(over_threads, ratio(rounds[1], rounds[0]),
              text("machine threads: %.1f ms", median(rounds[0]) * 1e-6));
}

}  // namespace bench
