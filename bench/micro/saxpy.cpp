// saxpy: y += a * x over large arrays, one task per block of y, submitted in bulk; GB/s against one
// plain loop per core.
#include "big_array.hpp"
#include "limits/crew.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

namespace bench {
namespace {

constexpr figure_spec loop_gbps{"loop_gbps", "GB/s", ""};
constexpr figure_spec memcpy_gbps{"memcpy_gbps", "GB/s", ""};

struct block {
  std::size_t floats;
  figure_spec over_loop;
  figure_spec gbps;
};
constexpr block blocks[] = {
    {64, {"b256_over_loop", "ratio", ">= 0.6"}, {"b256_gbps", "GB/s", ""}},
    {256, {"b1k_over_loop", "ratio", ">= 0.8"}, {"b1k_gbps", "GB/s", ""}},
    {1024, {"b4k_over_loop", "ratio", ">= 0.95"}, {"b4k_gbps", "GB/s", ""}},
};

// One compiled copy for the tasks and for the loop.
[[gnu::noinline]] void add_scaled(float a, const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

void saxpy_task(float a, lev::in<float> x, lev::inout<float> y) {
  add_scaled(a, x.data(), y.data(), y.size());
}

using saxpy_procedure = lev::procedure<void(float, lev::in<float>, lev::inout<float>)>;

// The arrays, and how often y was updated: every pass adds x to it, so y tells whether each block
// had each pass once.
struct problem {
  explicit problem(std::size_t count) : x(count), y(count) {
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i % 8 + 1);
  }
  double gbps(std::uint64_t start_ns) const {
    return 3.0 * static_cast<double>(x.bytes()) / static_cast<double>(now_ns() - start_ns);
  }
  void check_answer() const {
    for (std::size_t i = 0; i < y.size(); ++i) {
      check(y[i] == static_cast<float>(passes) * x[i], "saxpy");
    }
  }
  big_array<float> x;
  big_array<float> y;
  int passes = 0;
};

double run_tasks(lev::runtime& runtime, saxpy_procedure p, problem& data, std::size_t floats) {
  const std::uint64_t start_ns = now_ns();
  const std::size_t count = data.x.size() / floats;
  runtime
      .submit_bulk(count, p, 1.0f, lev::each(data.x.data(), floats),
                   lev::each(data.y.data(), floats))
      .wait();
  ++data.passes;
  return data.gbps(start_ns);
}

double run_loop(crew& threads, problem& data) {
  const std::uint64_t start_ns = now_ns();
  threads.split(data.x.size(), [&](std::size_t begin, std::size_t end) {
    add_scaled(1.0f, data.x.data() + begin, data.y.data() + begin, end - begin);
  });
  ++data.passes;
  return data.gbps(start_ns);
}

}  // namespace

void saxpy(const settings& how, report& figures) {
  problem data(std::size_t{64} << (how.quick ? 18 : 20));  // 256 MiB, quick: 64 MiB
  const auto procedure = lev::define("bench.saxpy", saxpy_task);
  lev::runtime runtime;
  crew threads(lev::available_cores());

  std::vector<std::function<double()>> contestants = {[&] { return run_loop(threads, data); }};
  for (const block& b : blocks) {
    contestants.push_back([&] { return run_tasks(runtime, procedure, data, b.floats); });
  }
  const auto rounds = interleave(how.rounds(), contestants);
  data.check_answer();

  // y is not needed any more: it is where the copies go.
  const auto copies =
      interleave(how.rounds(), {[&] {
                   return copy_gbps(threads, reinterpret_cast<char*>(data.y.data()),
                                    reinterpret_cast<const char*>(data.x.data()), data.x.bytes());
                 }});
  for (std::size_t i = 0; i < std::size(blocks); ++i) {
    figures.add(blocks[i].over_loop, ratio(rounds[i + 1], rounds[0]),
                text("plain loop on each core: %.1f GB/s", median(rounds[0])));
    figures.add(blocks[i].gbps, rounds[i + 1]);
  }
  figures.add(loop_gbps, rounds[0]);
  figures.add(memcpy_gbps, copies[0]);
}

}  // namespace bench
