// Several host processes, such as those of an MPI program, share their worker processes.
#include <leveret/leveret.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

static const auto add_up = lev::define("add_up", [](lev::in<int> x, lev::result<int> sum) {
  int total = 0;
  for (const int v : x) total += v;
  sum = total;
});

// The work of each host: the hosts have only the pool's name in common.
static int host(int rank, const std::string& pool) {
  lev::config c;
  c.machine = "processes";
  c.processes.pool = pool.c_str();
  c.workers = 2;
  lev::runtime runtime(c);
  const int numbers[] = {rank, 10, 20};
  int sum = 0;
  runtime.submit(add_up, numbers, sum).wait();
  return sum == rank + 30 ? 0 : 1;
}

int main() {
  const std::string pool = "example-" + std::to_string(getpid());
  constexpr int hosts = 4;
  for (int rank = 0; rank < hosts; ++rank) {
    if (fork() == 0) _exit(host(rank, pool));
  }
  int right = 0;
  for (int status = 0; wait(&status) > 0;) right += status == 0;
  std::printf("%d of %d hosts got the right sum\n", right, hosts);
  return right == hosts ? 0 : 1;
}
