// Mandelbrot: one kernel for a row, called by the serial reference and by the tasks.
//
// A frame: 1. cut the picture into tasks of rows; 2. submit all as one bulk; 3. wait. Dicing cuts a
// task's range of row numbers and its rows of pixels alike.
#include "leveret_apps/mandelbrot.hpp"

#include <algorithm>
#include <vector>

#include "drained.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

// Jack Rabbit drew 17.3 frames a second with 40 tasks on 6 workers of 3.2 GHz (section 5.3), or
// 1.11e9 cycles a frame. The default view takes 6.2e7 iterations.
constexpr std::uint64_t cycles_per_iteration = 18;

void draw_row(const mandelbrot_view& view, std::uint64_t row, std::uint16_t* counts) {
  const double dx = (view.x1 - view.x0) / view.width;
  const double dy = (view.y1 - view.y0) / view.height;
  const double cy = view.y0 + static_cast<double>(row) * dy;
  for (std::uint32_t column = 0; column < view.width; ++column) {
    const double cx = view.x0 + column * dx;
    double x = 0, y = 0, xx = 0, yy = 0;
    std::uint32_t count = 0;
    while (count < view.iterations && xx + yy <= 4) {
      y = 2 * x * y + cy;
      x = xx - yy + cx;
      xx = x * x;
      yy = y * y;
      ++count;
    }
    counts[column] = static_cast<std::uint16_t>(count);
  }
}

void draw_rows(lev::in<mandelbrot_view> view, lev::range numbers, lev::out<std::uint16_t> rows) {
  for (std::size_t r = 0; r < rows.rows(); ++r) draw_row(view[0], numbers.begin + r, rows.row(r));
}

// Exact, by doing the work: only a machine with virtual time asks.
std::uint64_t draw_rows_cycles(const lev::descriptor& task) {
  const auto& view = *reinterpret_cast<const mandelbrot_view*>(task.arguments[0].address);
  std::vector<std::uint16_t> counts(view.width);
  std::uint64_t iterations = 0;
  for (std::uint64_t r = task.arguments[1].address; r < task.arguments[1].row_bytes; ++r) {
    draw_row(view, r, counts.data());
    for (const std::uint16_t count : counts) iterations += count;
  }
  return iterations * cycles_per_iteration;
}

const auto draw_rows_procedure =
    lev::define("mandelbrot_rows", &draw_rows, nullptr, &draw_rows_cycles);

// Rows [first, end) as a task.
lev::descriptor rows_task(const mandelbrot_view& view, std::uint64_t first, std::uint64_t end,
                          bool dice, std::uint16_t* counts) {
  auto rows = lev::strided(counts + first * view.width, end - first, view.width, view.width);
  rows.is_sliced = dice;
  lev::descriptor task =
      lev::pack(draw_rows_procedure, lev::view(&view, 1), lev::range{first, end}, rows);
  if (!dice) task.arguments[1].flags = 0;
  return task;
}

}  // namespace

void mandelbrot_serial(const mandelbrot_view& view, std::uint16_t* counts) {
  for (std::uint64_t r = 0; r < view.height; ++r) draw_row(view, r, counts + r * view.width);
}

void mandelbrot(lev::runtime& runtime, const mandelbrot_view& view, unsigned tasks, bool dice,
                std::uint16_t* counts) {
  if (view.width == 0 || view.height == 0) return;
  const std::uint64_t count = std::clamp<std::uint64_t>(tasks, 1, view.height);
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    task = rows_task(view, view.height * i / count, view.height * (i + 1) / count, dice, counts);
  };
  drained(runtime, [&] { runtime.submit_bulk(count, make).wait(); });
}

void mandelbrot_frames(lev::runtime& runtime, const mandelbrot_view& view, unsigned tasks,
                       bool dice, unsigned frames, std::uint16_t* counts) {
  for (unsigned frame = 0; frame < frames; ++frame) mandelbrot(runtime, view, tasks, dice, counts);
}

mandelbrot_report run_mandelbrot(lev::runtime& runtime, const mandelbrot_options& options) {
  const mandelbrot_view& view = options.view;
  std::vector<std::uint16_t> counts(std::size_t{view.width} * view.height);
  mandelbrot_report report;
  const std::uint64_t pieces_before = runtime.count().diced;
  report.seconds = machine_seconds(runtime, [&] {
    mandelbrot_frames(runtime, view, options.tasks, options.dice, options.frames, counts.data());
  });
  report.pieces = runtime.count().diced - pieces_before;
  for (const std::uint16_t count : counts) report.iterations += count;
  if (!options.check) return report;

  std::vector<std::uint16_t> expected(counts.size());
  report.serial_seconds = host_seconds([&] {
    for (unsigned f = 0; f < options.frames; ++f) mandelbrot_serial(view, expected.data());
  });
  for (std::size_t i = 0; i < counts.size(); ++i) report.error += counts[i] != expected[i];
  report.correct = report.error == 0;
  return report;
}

}  // namespace leveret_apps
