// switch: what giving way costs, in core cycles: from one item in flight to the next, 16 of them;
// and from one task of a worker to the next, with the get() and the wait() for its tag. The first
// against Boost.Fiber's.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/interleave.hpp>
#include <leveret/leveret.hpp>
#include <leveret/this_task.hpp>

#include <functional>
#include <vector>

namespace bench {
namespace {

constexpr figure_spec bare_cycles{"bare_cycles", "cycles", "<= 20"};
constexpr figure_spec tag_cycles{"tag_cycles", "cycles", "<= 40"};
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

// Tasks that get elements from the cache: nothing of it is waiting for memory.
void get_and_wait(lev::far<const std::uint64_t> numbers, std::uint64_t turns,
                  lev::result<std::uint64_t> sum) {
  lev::task_context task = lev::this_task();
  std::uint64_t own = 0;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    const std::uint64_t* number = task.get(numbers, turn % numbers.size());
    task.wait();
    own += *number;
  }
  sum = own;
}

class tasks_in_turn {
 public:
  tasks_in_turn() : runtime_(settings()), procedure_(lev::define("bench.get_wait", get_and_wait)) {}

  double wait_ns(std::uint64_t turns) {
    std::uint64_t sums[width] = {};
    lev::ticket tickets[width];
    const std::uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < width; ++i)
      tickets[i] = runtime_.submit(procedure_, numbers_, turns, sums[i]);
    lev::wait_all(tickets, width);
    const std::uint64_t end_ns = now_ns();
    for (const std::uint64_t sum : sums) check(sum == turns, "each number is one");
    return static_cast<double>(end_ns - start_ns) / static_cast<double>(turns * width);
  }

 private:
  static lev::config settings() {
    lev::config c;
    c.workers = 1;
    c.contexts = width;
    c.wait = lev::wait_policy::park;
    return c;
  }
  lev::runtime runtime_;
  lev::procedure<void(lev::far<const std::uint64_t>, std::uint64_t, lev::result<std::uint64_t>)>
      procedure_;
  const std::vector<std::uint64_t> numbers_ = std::vector<std::uint64_t>(512, 1);
};

}  // namespace

void switch_cost(const settings& how, report& figures) {
  const pinned here(usable_cores()[0]);
  const std::size_t turns = how.scaled(200'000);
  tasks_in_turn tasks;
  std::vector<std::function<double()>> contestants = {
      [&] { return strand_switch_ns(turns); }, cycle_ns, [&] { return tasks.wait_ns(turns); }};
  const bool has_peer = boost_fiber_switch_ns != nullptr;
  if (has_peer) {
    contestants.push_back([&] { return boost_fiber_switch_ns(width, turns / 10); });
  }
  const auto rounds = interleave(how.rounds(), contestants);
  figures.add(bare_cycles, ratio(rounds[0], rounds[1]),
              text("a cycle: %.3f ns", median(rounds[1])));
  figures.add(tag_cycles, ratio(rounds[2], rounds[1]));
  figures.add(over_boost_fiber, has_peer ? ratio(rounds[0], rounds[3]) : samples{},
              has_peer ? text("Boost.Fiber: %.0f ns", median(rounds[3]))
                       : "not built: libboost-fiber-dev not found");
  figures.add(bare_ns, rounds[0]);
}

}  // namespace bench
