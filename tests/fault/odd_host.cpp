// A host program with a confined worker. The macro HOST_THREADS says when threads start in its
// zygote: never, while its constructors run, or in each process that it forks. Exit code 0: a task
// has run, and could write to standard output and error. What is refused is said on the file whose
// number is the first argument.
#include <leveret/leveret.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

enum threads { never, at_start, in_forks };

static void start_thread() {
  pthread_t t;
  const auto wait = [](void*) -> void* {
    for (;;) pause();
  };
  if (pthread_create(&t, nullptr, wait, nullptr) != 0) std::abort();
}

[[gnu::constructor]] static void begin() {
  if (HOST_THREADS == at_start) start_thread();
  if (HOST_THREADS == in_forks) pthread_atfork(nullptr, nullptr, &start_thread);
}

static const auto print_procedure = lev::define("fault.print", [](lev::out<std::int64_t> got) {
  got[0] = write(STDOUT_FILENO, "o", 1);
  got[1] = write(STDERR_FILENO, "e", 1);
});

int main(int, char** arguments) try {
  lev::config c;
  c.machine = "processes";
  c.workers = 2;
  c.processes.isolation = lev::isolation::confined;
  lev::runtime runtime(c);
  lev::shared_array<int> array(100'000);
  std::int64_t got[2] = {-1, -1};
  runtime.submit(print_procedure, got).wait();
  std::printf("printed by the host\n");
  std::fflush(stdout);
  for (const int x : array) {
    if (x != 0) return 3;  // it was printed into an array
  }
  return got[0] == 1 && got[1] == 1 ? 0 : 2;
} catch (const lev::error& e) {
  const int file = std::atoi(arguments[1]);
  return write(file, e.what(), std::strlen(e.what())) > 0 ? 1 : 4;
}
