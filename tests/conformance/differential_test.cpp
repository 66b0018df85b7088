// Conformance: the same random graphs of tasks on every machine, with every way to wait and to fill
// the queues, give the memory that a serial run gives.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "support/machine_test.hpp"
#include "support/task_graph.hpp"

namespace lev::test {
namespace {

using differential_test = machine_test;
LEV_ON_EVERY_MACHINE(differential_test);

// A configuration at random: what may change the schedule, but not the result.
config shuffled(config c, random_source& random) {
  c.wait = random.below(2) == 0 ? wait_policy::help : wait_policy::park;
  c.full = random.below(2) == 0 ? when_full::help : when_full::wait;
  c.tickets = 512u << random.below(3);
  c.depth = random.below(6);
  c.dice_threshold = random.below(3) * 8;
  c.spin_ns = random.below(2) * 20'000;
  c.local_store_bytes = (random.below(2) == 0 ? 8u : 64u) << 10;
  c.seed = random.next();
  return c;
}

std::string describe(const config& c) {
  return "wait " + std::to_string(static_cast<int>(c.wait)) + ", full " +
         std::to_string(static_cast<int>(c.full)) + ", tickets " + std::to_string(c.tickets) +
         ", depth " + std::to_string(c.depth) + ", threshold " + std::to_string(c.dice_threshold) +
         ", spin " + std::to_string(c.spin_ns) + ", store " + std::to_string(c.local_store_bytes) +
         ", seed " + std::to_string(c.seed);
}

LEV_TEST(differential_test, random_graphs_give_the_serial_result) {
  const std::uint64_t seed = base_seed() * 100'000 + GetParam().seed * 1000;
  for (int i = 0; i < rounds(25); ++i) {
    random_source random(seed + static_cast<std::uint64_t>(i));
    const task_graph graph(random.next(), 40 + random.below(80));
    graph_memory expected;
    graph.run_serially(expected);
    const config c = shuffled(settings(), random);
    SCOPED_TRACE("graph " + std::to_string(i) + ", LEVERET_SEED " + std::to_string(base_seed()) +
                 ", " + describe(c));
    graph_memory memory;
    runtime& r = open(c);
    graph.run(r, memory);
    ASSERT_EQ(r.count().failed, 0u);
    ASSERT_TRUE(memory == expected);
  }
}

}  // namespace
}  // namespace lev::test
