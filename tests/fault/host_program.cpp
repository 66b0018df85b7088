// A host that is killed in the middle of its work: says which processes it has, then works for
// ever. The first argument is the level, 0 or 1.
#include <leveret/leveret.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

static const auto who_procedure = lev::define("fault.who", [](lev::out<std::int64_t> pids) {
  pids[0] = getpid();
  pids[1] = getppid();
});
static const auto spin_procedure = lev::define("fault.spin_forever", [] {
  for (volatile bool goes_on = true; goes_on;) {
  }
});

int main(int, char** arguments) {
  lev::config c;
  c.machine = "processes";
  c.workers = 1;
  c.processes.isolation = static_cast<lev::isolation>(std::atoi(arguments[1]));
  lev::runtime runtime(c);
  std::int64_t pids[2] = {};
  runtime.submit(who_procedure, pids).wait();
  lev::ticket t = runtime.submit(spin_procedure);
  std::printf("%lld %lld\n", static_cast<long long>(pids[0]), static_cast<long long>(pids[1]));
  std::fflush(stdout);
  t.wait();
}
