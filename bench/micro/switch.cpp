// switch: what giving way costs: from one item in flight to the next, 16 of them, in core cycles;
// and against Boost.Fiber's.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/interleave.hpp>

namespace bench {
namespace {

constexpr figure_spec bare_cycles{"bare_cycles", "cycles", "<= 20"};
constexpr figure_spec over_boost_fiber{"over_boost_fiber", "ratio", "<= 0.125"};
constexpr figure_spec bare_ns{"bare_ns", "ns", ""};

constexpr unsigned width = 16;

// cycle_ns() is the time of one core cycle, now: that of one dependent addition.
double cycle_ns() {
  constexpr std::size_t steps = 1'000'000;
  double best_ns = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    std::uint64_t x = 1;
    const std::uint64_t start_ns = now_ns();
    for (std::size_t step = 0; step < steps; ++step) {
      x += 1;
      asm volatile("" : "+r"(x));
    }
    best_ns = std::min(best_ns, static_cast<double>(now_ns() - start_ns) / steps);
  }
  return best_ns;
}

double strand_switch_ns(std::size_t turns) {
  const std::uint64_t start_ns = now_ns();
  lev::interleave(width, width, [turns](std::size_t, lev::strand& s) {
    for (std::size_t turn = 0; turn < turns; ++turn) s.yield();
  });
  return static_cast<double>(now_ns() - start_ns) / static_cast<double>(turns * width);
}

}  // namespace

void switch_cost(const settings& how, report& figures) {
  const pinned here(usable_cores()[0]);
  const std::size_t turns = how.scaled(200'000);
  std::vector<std::function<double()>> contestants = {[&] { return strand_switch_ns(turns); },
                                                      cycle_ns};
  const bool has_peer = boost_fiber_switch_ns != nullptr;
  if (has_peer) {
    contestants.push_back([&] { return boost_fiber_switch_ns(width, turns / 10); });
  }
  const auto rounds = interleave(how.rounds(), contestants);
  figures.add(bare_cycles, ratio(rounds[0], rounds[1]),
              text("a cycle: %.3f ns", median(rounds[1])));
  figures.add(over_boost_fiber, has_peer ? ratio(rounds[0], rounds[2]) : samples{},
              has_peer ? text("Boost.Fiber: %.0f ns", median(rounds[2]))
                       : "not built: libboost-fiber-dev not found");
  figures.add(bare_ns, rounds[0]);
}

}  // namespace bench
