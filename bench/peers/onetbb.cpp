// oneTBB: one task_group, its default arena of one thread per core.
#include "peers/peers.hpp"

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

}  // namespace

const peer* onetbb_peer() {
  static constexpr peer table{"oneTBB", stream, null_stream, fib};
  return &table;
}

}  // namespace bench
