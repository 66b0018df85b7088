// The Mandelbrot set as tasks of rows: uneven work, to see how well dicing levels it.
//
// Paper: Jack Rabbit section 5.3 (the sample of MARS: 640 x 480 pixels, 1000 iterations, 128 tasks,
// 1000 frames).
#pragma once

#include <cstdint>
#include <leveret/leveret.hpp>

namespace leveret_apps {

// The picture: the pixel at (column, row) shows the point of the plane
//   x = x0 + column * (x1 - x0) / width, y = y0 + row * (y1 - y0) / height.
// The papers do not give the view. This one shows the whole set, and its
// pixels are square.
struct mandelbrot_view {
  std::uint32_t width = 640;
  std::uint32_t height = 480;
  std::uint32_t iterations = 1000;  // at most 65535
  double x0 = -2.25;
  double x1 = 0.95;
  double y0 = -1.2;
  double y1 = 1.2;
};

// mandelbrot_serial() writes for each pixel, row by row, after how many steps of z = z * z + c the
// point had left the circle of radius 2; `iterations` when it never did. A grey image with 16 bits
// a pixel.
void mandelbrot_serial(const mandelbrot_view& view, std::uint16_t* counts);

// mandelbrot() does the same in `tasks` tasks (1 .. height) whose numbers of rows differ by at most
// one. With `dice` Leveret may cut them further. The result is bit for bit that of
// mandelbrot_serial(). Throws lev::error when the runtime refuses a task: too_big for one that is
// larger than the local store and not diced.
void mandelbrot(lev::runtime& runtime, const mandelbrot_view& view, unsigned tasks, bool dice,
                std::uint16_t* counts);

// mandelbrot_frames() makes the same picture `frames` times, waiting for each, as the papers'
// program does.
void mandelbrot_frames(lev::runtime& runtime, const mandelbrot_view& view, unsigned tasks,
                       bool dice, unsigned frames, std::uint16_t* counts);

struct mandelbrot_options {
  mandelbrot_view view;
  unsigned tasks = 128;
  bool dice = true;
  unsigned frames = 1;
  bool check = true;  // compare with mandelbrot_serial()
};

struct mandelbrot_report {
  double seconds = 0;  // by the machine's clock: virtual on `sim`
  // `frames` times mandelbrot_serial(), by this computer's clock; 0 when not checked.
  double serial_seconds = 0;
  double error = 0;              // pixels that differ
  bool correct = false;          // checked, and no pixel differs
  std::uint64_t iterations = 0;  // steps of one frame: its work
  std::uint64_t pieces = 0;      // cut off by dicing, in all frames
};

mandelbrot_report run_mandelbrot(lev::runtime& runtime, const mandelbrot_options& options);

}  // namespace leveret_apps
