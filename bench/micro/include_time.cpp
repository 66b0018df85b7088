// include-time: how long a file takes to compile that does nothing but include the header, against
// oneTBB's.
//
// Runs the compiler that built this program, on the headers it was built with.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <cstdio>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

constexpr figure_spec over_onetbb{"over_onetbb", "ratio", "< 1"};
constexpr figure_spec leveret_ms{"leveret_ms", "ms", ""};
constexpr figure_spec nothing_ms{"empty_file_ms", "ms", ""};

// Compiles one line of source; it reaches the compiler through its standard input.
double compile_ms(const std::string& source) {
  const std::string command = "'" LEV_BENCH_CXX "' -x c++ -std=c++20 -O2 -I'" LEV_BENCH_INCLUDE
                              "' " LEV_BENCH_TBB_INCLUDE " -c -o /dev/null -";
  const std::uint64_t start_ns = now_ns();
  std::FILE* compiler = popen(command.c_str(), "w");
  if (compiler == nullptr) throw std::runtime_error("the compiler does not start");
  std::fprintf(compiler, "%s\nint main() {}\n", source.c_str());
  if (pclose(compiler) != 0) throw std::runtime_error("does not compile: " + source);
  return static_cast<double>(now_ns() - start_ns) * 1e-6;
}

}  // namespace

void include_time(const settings& how, report& figures) {
  const rival tbb = onetbb();
  std::function<double()> compile_tbb;
  if (tbb.table != nullptr) compile_tbb = [] { return compile_ms("#include <oneapi/tbb.h>"); };
  const auto rounds =
      interleave(how.rounds(), {[] { return compile_ms("#include <leveret/leveret.hpp>"); },
                                compile_tbb, [] { return compile_ms(""); }});
  if (tbb.table == nullptr) {
    figures.add(over_onetbb, {}, tbb.absent);
  } else {
    figures.add(over_onetbb, ratio(rounds[0], rounds[1]),
                text("oneTBB's tbb.h: %.0f ms", median(rounds[1])));
  }
  figures.add(leveret_ms, rounds[0]);
  figures.add(nothing_ms, rounds[2]);
}

}  // namespace bench
