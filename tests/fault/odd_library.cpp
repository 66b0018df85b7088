// A library that does something odd while it is loaded into a confined worker. The macro LIBRARY_IS
// says what.
#include <leveret/procedure.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum kind { threaded, threaded_briefly, aborting, taking_output, endless, looking };

std::uintptr_t board = 0;  // where the host's board is in this process

void* wait_for_ever(void*) {
  for (;;) pause();
}
void* do_nothing(void*) {
  return nullptr;
}

void start(void* (*what)(void*), bool is_joined) {
  pthread_t t;
  if (pthread_create(&t, nullptr, what, nullptr) != 0) std::abort();
  if (is_joined) {
    pthread_join(t, nullptr);
  } else {
    pthread_detach(t);
  }
}

// Standard output and error are files of its own from here on.
void take_output() {
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  if (eventfd(0, 0) != STDOUT_FILENO || eventfd(0, 0) != STDERR_FILENO) std::abort();
}

// Looks for the board before the worker is confined: later it could not.
void find_board() {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (board == 0 && std::fgets(line, sizeof line, maps) != nullptr) {
    if (std::strstr(line, "leveret-board") != nullptr) board = std::strtoul(line, nullptr, 16);
  }
  std::fclose(maps);
}

[[gnu::constructor]] void load() {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  if (std::strcmp(name, "leveret-worker") != 0) return;
  const kind is = LIBRARY_IS;
  if (is == threaded) start(&wait_for_ever, false);
  if (is == threaded_briefly) {
    for (int i = 0; i < 8; ++i) start(&do_nothing, i % 2 == 0);
  }
  if (is == aborting) std::abort();
  if (is == taking_output) take_output();
  if (is == endless) wait_for_ever(nullptr);
  if (is == looking) find_board();
}

}  // namespace

// Makes the board its own: what mprotect() says is the result. Then it writes there.
extern "C" int odd_spoil(const lev::call& c) {
  if (board == 0) return 1;
  void* const place = reinterpret_cast<void*>(board);
  const std::int64_t code = mprotect(place, 4096, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
  std::memcpy(reinterpret_cast<void*>(c.arguments[1].address), &code, sizeof code);
  if (c.arguments[0].address != 0) *static_cast<volatile int*>(place) = 666;
  return 0;
}

// The one argument is a result: 1, after a character went to standard error.
extern "C" int odd_answer(const lev::call& c) {
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, "!", 1);
  const std::int64_t value = 1;
  std::memcpy(reinterpret_cast<void*>(c.arguments[0].address), &value, sizeof value);
  return 0;
}
