// The Mandelbrot set on Jack Rabbit's pool; see applications.hpp.
#include <algorithm>
#include <array>

#include "jack_rabbit/applications.hpp"

namespace leveret_papers {

namespace {

constexpr unsigned width = 640;
constexpr unsigned height = 480;
constexpr int most = 1000;  // iterations

// In fixed point, 26 bits behind it: every compiler counts the same.
constexpr int bits = 26;
unsigned iterations(std::int64_t cx, std::int64_t cy) {
  std::int64_t x = 0;
  std::int64_t y = 0;
  for (unsigned i = 0; i < most; ++i) {
    const std::int64_t xx = x * x >> bits;
    const std::int64_t yy = y * y >> bits;
    if (xx + yy > std::int64_t{4} << bits) return i;
    y = (x * y >> (bits - 1)) + cy;
    x = xx - yy + cx;
  }
  return most;
}

// Of each line. The paper does not say what is seen: here it is all of the set, [-2, 1] across.
const std::vector<std::int64_t>& counts() {
  static const std::vector<std::int64_t> all = [] {
    std::vector<std::int64_t> found;
    constexpr std::int64_t step = (std::int64_t{3} << bits) / width;
    for (unsigned row = 0; row < height; ++row) {
      const std::int64_t cy = step * (std::int64_t{row} - height / 2) + step / 2;
      std::int64_t sum = 0;
      for (unsigned column = 0; column < width; ++column)
        sum += iterations(-(std::int64_t{2} << bits) + step * column, cy);
      found.push_back(sum);
    }
    return found;
  }();
  return all;
}

unsigned lines_of_task(unsigned tasks) {
  return std::max(1u, (2 * height + tasks) / (2 * tasks));
}

}  // namespace

unsigned tasks_of_lines(unsigned tasks) {
  const unsigned lines = lines_of_task(tasks);
  return (height + lines - 1) / lines;
}

double frames_seconds(world& w, unsigned tasks, bool is_diced) {
  constexpr unsigned frames = 1;  // stands for 1000
  std::vector<std::int64_t> work;
  for (const std::int64_t count : counts())
    work.push_back(static_cast<std::int64_t>(double(count) * w.number("jack_rabbit.iteration")));
  rabbit_pool pool;
  pool.has_dicer = is_diced;
  if (is_diced) pool.pieces = work;
  const unsigned lines = lines_of_task(tasks);
  const rabbit_outcome o = run_rabbit(w, pool, [&](cell::machine& m) {
    const auto images = m.memory<char>(std::size_t{8} * width);
    rabbit_batch frame;
    for (unsigned first = 0; first < height; first += lines) {
      rabbit_task t;
      t.first = first;
      t.count = std::min(lines, height - first);
      for (unsigned i = 0; i < t.count; ++i) t.work += work[first + i];
      t.out = {images.ea, 8 * width};  // a line of both images
      frame.tasks.push_back(t);
    }
    return std::vector<rabbit_batch>(frames, frame);
  });
  double seconds = 0;
  for (const double s : o.seconds) seconds += s;
  return seconds * 1000 / frames;
}

}  // namespace leveret_papers
