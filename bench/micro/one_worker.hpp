// A runtime with one worker on a core of its own and a submitter that polls on another: what
// latency is measured with.
#pragma once

#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <cstdint>
#include <stdexcept>

namespace bench {

inline void pin_worker_task(int core) {
  pin_this_thread(core);
}

class one_worker {
 public:
  explicit one_worker(core_pair cores) : runtime_(make_config()), host_pin_(cores.host) {
    // With one worker and a host that never helps, the worker runs this.
    runtime_.submit(lev::define("bench.pin_worker", pin_worker_task), cores.worker).wait();
  }

  lev::runtime& operator*() noexcept { return runtime_; }
  lev::runtime* operator->() noexcept { return &runtime_; }

  // check_worker_ran() throws when the submitter ran tasks itself: then no round trip was measured.
  void check_worker_ran() const {
    if (runtime_.count().helped != 0) {
      throw std::runtime_error("the submitter ran tasks itself under wait_policy::spin");
    }
  }

  // wait_parked() polls until the worker has gone to sleep more than `parks_before` times.
  void wait_parked(std::uint64_t parks_before) const {
    const std::uint64_t deadline_ns = now_ns() + 5'000'000'000;
    while (runtime_.count().parks <= parks_before) {
      if (now_ns() > deadline_ns) throw std::runtime_error("the worker does not park within 5 s");
    }
  }

 private:
  static lev::config make_config() {
    lev::config c;
    c.workers = 1;
    c.wait = lev::wait_policy::spin;
    return c;
  }
  lev::runtime runtime_;
  pinned host_pin_;  // after the runtime: the worker's mask is not this one
};

}  // namespace bench
