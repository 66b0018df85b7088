// leveret-app: runs one of the papers' applications from a shell and prints one line about it.
//
//   leveret-app mandelbrot --machine threads --workers 4 --tasks 1 --check
//
// Exit status: 0, 1 when a check failed or a task did, 2 for a wrong command line.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "leveret_apps/barnes_hut.hpp"
#include "leveret_apps/lu.hpp"
#include "leveret_apps/mandelbrot.hpp"

namespace {

constexpr const char* usage =
    "usage: leveret-app mandelbrot|lu-columns|lu-blocks|lu-graph|barnes-hut [option ...]\n"
    "  --machine NAME   threads (default), sim, ...\n"
    "  --workers N      0: one less than the cores (default)\n"
    "  --n N            rows of the picture or matrix, or bodies\n"
    "  --tasks N        mandelbrot: tasks of a frame; lu-columns: columns of a task (0: all);\n"
    "                   lu-blocks, lu-graph: rows of a block; barnes-hut: bodies of a task\n"
    "  --steps N        frames, or steps of time\n"
    "  --seed N\n"
    "  --double         lu: double precision\n"
    "  --no-dice        tasks run as they are\n"
    "  --check          compare with the serial reference\n";

struct command_line {
  const char* name = "";
  lev::config config;
  unsigned long n = 0;  // 0: the application's default, as for the next two
  long tasks = -1;
  unsigned long steps = 0;
  bool double_precision = false;
  bool dice = true;
  bool check = false;
};

struct verdict {
  double seconds, serial_seconds, error;
  bool correct;
};

bool parse_number(const char* text, unsigned long max, unsigned long* number) {
  char* end = nullptr;
  *number = std::strtoul(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 && *number <= max;
}

bool parse(int count, char** words, command_line& line) {
  if (count < 2) return false;
  line.name = words[1];
  for (int i = 2; i < count; ++i) {
    const auto is = [&](const char* option) { return std::strcmp(words[i], option) == 0; };
    if (is("--no-dice")) {
      line.dice = false;
    } else if (is("--check")) {
      line.check = true;
    } else if (is("--double")) {
      line.double_precision = true;
    } else if (i + 1 == count) {
      return false;
    } else if (is("--machine")) {
      line.config.machine = words[++i];
    } else {
      const char* const option = words[i];
      unsigned long number = 0;
      if (!parse_number(words[++i], 1000000000, &number)) return false;
      if (std::strcmp(option, "--workers") == 0) {
        line.config.workers = static_cast<int>(number);
      } else if (std::strcmp(option, "--n") == 0 && number > 0) {
        line.n = number;
      } else if (std::strcmp(option, "--tasks") == 0) {
        line.tasks = static_cast<long>(number);
      } else if (std::strcmp(option, "--steps") == 0) {
        line.steps = number;
      } else if (std::strcmp(option, "--seed") == 0) {
        line.config.seed = number;
      } else {
        return false;
      }
    }
  }
  return true;
}

verdict mandelbrot(lev::runtime& runtime, const command_line& line) {
  leveret_apps::mandelbrot_options options;
  if (line.n != 0) options.view.height = static_cast<std::uint32_t>(line.n);
  if (line.n != 0) options.view.width = options.view.height * 4 / 3;
  if (line.tasks >= 0) options.tasks = static_cast<unsigned>(line.tasks);
  if (line.steps != 0) options.frames = static_cast<unsigned>(line.steps);
  options.dice = line.dice;
  options.check = line.check;
  const auto report = leveret_apps::run_mandelbrot(runtime, options);
  return {report.seconds, report.serial_seconds, report.error, report.correct};
}

verdict lu(lev::runtime& runtime, const command_line& line, leveret_apps::lu_variant variant,
           leveret_apps::lu_schedule schedule) {
  leveret_apps::lu_options options;
  options.variant = variant;
  options.blocks.schedule = schedule;
  if (line.n != 0) options.n = line.n;
  if (line.tasks >= 0) options.columns.columns_per_task = static_cast<unsigned>(line.tasks);
  if (line.tasks > 0) options.blocks.block = static_cast<unsigned>(line.tasks);
  options.double_precision = line.double_precision;
  options.columns.dice = line.dice;
  options.seed = line.config.seed;
  options.check = line.check;
  const auto report = leveret_apps::run_lu(runtime, options);
  return {report.seconds, report.serial_seconds, report.error, report.correct};
}

verdict barnes_hut(lev::runtime& runtime, const command_line& line) {
  leveret_apps::barnes_hut_options options;
  if (line.n != 0) options.bodies = line.n;
  if (line.tasks > 0) options.set_bodies = static_cast<unsigned>(line.tasks);
  if (line.steps != 0) options.steps = static_cast<unsigned>(line.steps);
  options.dice = line.dice;
  options.seed = line.config.seed;
  options.check = line.check;
  const auto report = leveret_apps::run_barnes_hut(runtime, options);
  return {report.seconds, report.serial_seconds, report.error, report.correct};
}

// Returns false for an unknown name.
bool run(lev::runtime& runtime, const command_line& line, verdict& result) {
  using leveret_apps::lu_schedule;
  using leveret_apps::lu_variant;
  const auto is = [&](const char* name) { return std::strcmp(line.name, name) == 0; };
  if (is("mandelbrot")) {
    result = mandelbrot(runtime, line);
  } else if (is("lu-columns")) {
    result = lu(runtime, line, lu_variant::columns, lu_schedule::phases);
  } else if (is("lu-blocks")) {
    result = lu(runtime, line, lu_variant::blocks, lu_schedule::phases);
  } else if (is("lu-graph")) {
    result = lu(runtime, line, lu_variant::blocks, lu_schedule::dependencies);
  } else if (is("barnes-hut")) {
    result = barnes_hut(runtime, line);
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  command_line line;
  if (!parse(count, words, line)) {
    std::fputs(usage, stderr);
    return 2;
  }
  try {
    lev::runtime runtime(line.config);
    verdict result{};
    if (!run(runtime, line, result)) {
      std::fputs(usage, stderr);
      return 2;
    }
    std::printf("%s machine=%s workers=%u seconds=%.6f", line.name, runtime.machine(),
                runtime.workers(), result.seconds);
    if (line.check) {
      std::printf(" serial_seconds=%.6f error=%.3g correct=%s", result.serial_seconds, result.error,
                  result.correct ? "yes" : "no");
    }
    std::puts("");
    return line.check && !result.correct ? 1 : 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "leveret-app: %s\n", e.what());
    return 1;
  }
}
