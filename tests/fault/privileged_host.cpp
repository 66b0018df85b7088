// A program that a test makes set-user-id: says whose rights it has and what the machine processes
// says to that.
#include <leveret/leveret.hpp>

#include <unistd.h>

#include <cstdio>

int main() {
  const char* why = lev::machine_unavailable("processes");
  std::printf("main %u %u %s\n", getuid(), geteuid(), why == nullptr ? "available" : why);
  lev::config c;
  c.machine = "processes";
  c.workers = 1;
  try {
    lev::runtime r(c);
    std::puts("open");
  } catch (const lev::error& e) {
    std::printf("refused %d\n", static_cast<int>(e.code()));
  }
}
