// oneTBB: one task_group, its default arena of one thread per core.
#include "peers/peers.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

namespace bench {
namespace {

void stream(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value) {
  tbb::task_group group;
  for (std::size_t i = 0; i < count; ++i) group.run([work, value] { work(value); });
  group.wait();
}

void null_stream(std::size_t count) {
  tbb::task_group group;
  for (std::size_t i = 0; i < count; ++i) group.run([] {});
  group.wait();
}

std::uint64_t fib(unsigned n) {
  if (n < 2) return n;
  std::uint64_t first = 0;
  tbb::task_group group;
  group.run([&first, n] { first = fib(n - 1); });
  const std::uint64_t second = fib(n - 2);
  group.wait();
  return first + second;
}

void loop(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value) {
  tbb::parallel_for(std::size_t{0}, count, [=](std::size_t) { work(value); });
}

struct group_fork {
  template <auto body, class Node>
  static void all(Node* nodes, std::size_t count) {
    tbb::task_group group;
    for (std::size_t i = 0; i + 1 < count; ++i) group.run([node = nodes + i] { body(*node); });
    body(nodes[count - 1]);
    group.wait();
  }
};

constexpr irregular_programs programs = irregular_of<group_fork>();

}  // namespace

const peer* onetbb_peer() {
  static constexpr peer table{"oneTBB", stream, null_stream, fib, loop, &programs};
  return &table;
}

}  // namespace bench
