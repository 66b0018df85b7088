// Boost.Fiber: fibers of one thread that yield in turn, with its default scheduler.
#include "peers/peers.hpp"
#include "timing.hpp"

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>

#include <vector>

namespace bench {

double boost_fiber_switch_ns(unsigned width, std::size_t turns) {
  std::vector<boost::fibers::fiber> fibers;
  const std::uint64_t start_ns = now_ns();
  for (unsigned i = 0; i < width; ++i) {
    fibers.emplace_back([turns] {
      for (std::size_t turn = 0; turn < turns; ++turn) boost::this_fiber::yield();
    });
  }
  for (boost::fibers::fiber& one : fibers) one.join();
  return static_cast<double>(now_ns() - start_ns) / static_cast<double>(turns * width);
}

}  // namespace bench
