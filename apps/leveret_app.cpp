// leveret-app: runs one of the papers' applications from a shell and prints one line about it.
//
//   leveret-app mandelbrot --machine threads --workers 4 --tasks 1 --check
//
// Exit status: 0, 1 when a check failed or a task did, 2 for a wrong command line.
#include <leveret/leveret.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "leveret_apps/aes.hpp"
#include "leveret_apps/barnes_hut.hpp"
#include "leveret_apps/fft.hpp"
#include "leveret_apps/likelihood.hpp"
#include "leveret_apps/list_ranking.hpp"
#include "leveret_apps/lu.hpp"
#include "leveret_apps/mandelbrot.hpp"

namespace {

constexpr const char* usage =
    "usage: leveret-app mandelbrot|lu-columns|lu-blocks|lu-graph|barnes-hut|likelihood|aes|\n"
    "                   list-ranking|fft|saxpy|sgemv|conv2d [option ...]\n"
    "  --machine NAME   threads (default), sim, ...\n"
    "  --workers N      1 to 1024; without it one less than the cores\n"
    "  --contexts N     tasks that a worker has under way; 0: Leveret chooses (default)\n"
    "  --n N            rows of the picture or matrix, bodies, sites, bytes, nodes, or elements\n"
    "  --tasks N        mandelbrot: tasks of a frame; lu-columns: columns of a task (0: all);\n"
    "                   lu-blocks, lu-graph: rows of a block; barnes-hut: bodies of a task;\n"
    "                   likelihood: tasks of a node; aes, list-ranking: tasks of a step\n"
    "  --steps N        frames, steps of time, or trees\n"
    "  --seed N\n"
    "  --double         lu: double precision\n"
    "  --ecb            aes: ECB; otherwise CTR\n"
    "  --openssl        aes: OpenSSL's kernel\n"
    "  --far            aes: tasks get and put chunks; otherwise the data is declared\n"
    "  --chunk N        aes with --far: bytes of a chunk\n"
    "  --buffers N      aes with --far: chunks of a task under way; 2: double buffering\n"
    "  --species N      likelihood: species\n"
    "  --jukes-cantor   likelihood: equal rates and frequencies\n"
    "  --phases         likelihood: waits for each level of the tree\n"
    "  --lists N        list-ranking: lists\n"
    "  --cuts N         list-ranking: places where lists are cut\n"
    "  --no-dice        tasks run as they are\n"
    "  --check          compare with the serial reference\n";

struct command_line {
  const char* name = "";
  lev::config config;
  unsigned long n = 0;  // 0: the application's default, as for the next two
  long tasks = -1;
  unsigned long steps = 0;
  unsigned long chunk = 0;
  unsigned long buffers = 0;
  unsigned long species = 0;
  unsigned long lists = 0;
  long cuts = -1;
  bool double_precision = false;
  bool jukes_cantor = false;
  bool phases = false;
  bool ecb = false;
  bool openssl = false;
  bool far = false;
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

// Options without a value; null for another word.
bool* flag_of(const char* word, command_line& line) {
  const auto is = [&](const char* option) { return std::strcmp(word, option) == 0; };
  if (is("--check")) return &line.check;
  if (is("--double")) return &line.double_precision;
  if (is("--jukes-cantor")) return &line.jukes_cantor;
  if (is("--phases")) return &line.phases;
  if (is("--ecb")) return &line.ecb;
  if (is("--openssl")) return &line.openssl;
  if (is("--far")) return &line.far;
  return nullptr;
}

bool set_number(const char* option, unsigned long number, command_line& line) {
  const auto is = [&](const char* name) { return std::strcmp(option, name) == 0; };
  if (is("--workers") && number > 0) {
    line.config.workers = static_cast<int>(number);
  } else if (is("--contexts")) {
    line.config.contexts = static_cast<std::uint32_t>(number);
  } else if (is("--n") && number > 0) {
    line.n = number;
  } else if (is("--tasks")) {
    line.tasks = static_cast<long>(number);
  } else if (is("--steps")) {
    line.steps = number;
  } else if (is("--seed")) {
    line.config.seed = number;
  } else if (is("--chunk") && number > 0) {
    line.chunk = number;
  } else if (is("--buffers") && number > 0) {
    line.buffers = number;
  } else if (is("--species") && number > 0) {
    line.species = number;
  } else if (is("--lists") && number > 0) {
    line.lists = number;
  } else if (is("--cuts")) {
    line.cuts = static_cast<long>(number);
  } else {
    return false;
  }
  return true;
}

// The first word that is wrong, and why. Always false.
bool is_wrong(const char* word, const char* why) {
  std::fprintf(stderr, "leveret-app: %s: %s\n", word, why);
  return false;
}

bool parse(int count, char** words, command_line& line) {
  if (count < 2) return false;
  line.name = words[1];
  for (int i = 2; i < count; ++i) {
    if (std::strcmp(words[i], "--no-dice") == 0) {
      line.dice = false;
    } else if (bool* flag = flag_of(words[i], line)) {
      *flag = true;
    } else if (i + 1 == count) {
      return is_wrong(words[i], "there is no such option, or its value is missing");
    } else if (std::strcmp(words[i], "--machine") == 0) {
      line.config.machine = words[++i];
    } else {
      const char* const option = words[i];
      unsigned long number = 0;
      const bool is_number = parse_number(words[++i], 1000000000, &number);
      if (!set_number(option, is_number ? number : 1, line))
        return is_wrong(option, "there is no such option, or it takes more than 0");
      if (!is_number) return is_wrong(words[i], "this is no whole number from 0 to 10^9");
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

verdict likelihood(lev::runtime& runtime, const command_line& line) {
  leveret_apps::likelihood_options options;
  if (line.n != 0) options.sites = line.n;
  if (line.species != 0) options.species = static_cast<unsigned>(line.species);
  if (line.phases) options.schedule = leveret_apps::likelihood_schedule::phases;
  if (line.jukes_cantor) options.model = leveret_apps::jukes_cantor(options.model.alpha);
  if (line.tasks >= 0) options.tasks = static_cast<unsigned>(line.tasks);
  if (line.steps != 0) options.steps = static_cast<unsigned>(line.steps);
  options.dice = line.dice;
  options.seed = line.config.seed;
  options.check = line.check;
  const auto report = leveret_apps::run_likelihood(runtime, options);
  return {report.seconds, report.serial_seconds, report.error, report.correct};
}

verdict aes(lev::runtime& runtime, const command_line& line) {
  leveret_apps::aes_options options;
  if (line.n != 0) options.bytes = line.n;
  if (line.tasks >= 0) options.tasks = static_cast<unsigned>(line.tasks);
  if (line.chunk != 0) options.chunk_bytes = static_cast<unsigned>(line.chunk);
  if (line.buffers != 0) options.buffers = static_cast<unsigned>(line.buffers);
  if (line.ecb) options.mode = leveret_apps::aes_mode::ecb;
  if (line.openssl) options.kernel = leveret_apps::aes_kernel::openssl;
  if (line.far) options.form = leveret_apps::aes_form::far;
  options.dice = line.dice;
  options.seed = line.config.seed;
  options.check = line.check;
  const auto report = leveret_apps::run_aes(runtime, options);
  return {report.seconds, report.serial_seconds, report.error, report.correct};
}

verdict list_ranking(lev::runtime& runtime, const command_line& line) {
  leveret_apps::list_ranking_options options;
  if (line.n != 0) options.nodes = line.n;
  if (line.lists != 0) options.lists = line.lists;
  if (line.tasks >= 0) options.tasks = static_cast<unsigned>(line.tasks);
  if (line.cuts >= 0) options.cuts = static_cast<unsigned>(line.cuts);
  options.dice = line.dice;
  options.seed = line.config.seed;
  options.check = line.check;
  const auto report = leveret_apps::run_list_ranking(runtime, options);
  return {report.seconds, report.serial_seconds, report.error, report.correct};
}

verdict arrays(lev::runtime& runtime, const command_line& line,
               leveret_apps::array_report (*run)(lev::runtime&,
                                                 const leveret_apps::array_options&)) {
  leveret_apps::array_options options;
  if (line.n != 0) options.n = line.n;
  if (line.tasks >= 0) options.cut.tasks = static_cast<unsigned>(line.tasks);
  if (line.steps != 0) options.steps = static_cast<unsigned>(line.steps);
  options.cut.dice = line.dice;
  options.seed = line.config.seed;
  options.check = line.check;
  const auto report = run(runtime, options);
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
  } else if (is("likelihood")) {
    result = likelihood(runtime, line);
  } else if (is("aes")) {
    result = aes(runtime, line);
  } else if (is("list-ranking")) {
    result = list_ranking(runtime, line);
  } else if (is("fft")) {
    result = arrays(runtime, line, &leveret_apps::run_fft);
  } else if (is("saxpy")) {
    result = arrays(runtime, line, &leveret_apps::run_saxpy);
  } else if (is("sgemv")) {
    result = arrays(runtime, line, &leveret_apps::run_sgemv);
  } else if (is("conv2d")) {
    result = arrays(runtime, line, &leveret_apps::run_conv2d);
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
      is_wrong(line.name, "there is no such application");
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
