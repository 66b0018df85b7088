// A program that root starts, and that gives up rights: all of them once its runtime is open
// ("user"), or for a while, before it opens one ("before") or afterwards ("after"). It says what
// becomes of its tasks.
#include <leveret/leveret.hpp>

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

namespace {

constexpr uid_t somebody = 65'533;
constexpr std::int64_t limit_ns = 20'000'000'000;

const auto hang = lev::define("rights.hang", [](lev::out<int> begun) {
  __atomic_store_n(&begun[0], 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
});
const auto crash = lev::define("rights.crash", [] { raise(SIGKILL); });
const auto end_parent = lev::define("rights.end_parent", [] {
  kill(getppid(), SIGKILL);
  for (;;) pause();
});

void require(bool is_done) {
  if (!is_done) _exit(126);
}

void tell_end_of(lev::ticket t) {
  std::printf("%s\n", lev::status_name(t.wait_outcome(limit_ns).code));
}

// All ways to end a worker that is not willing to.
void end_tasks(lev::runtime& r) {
  lev::shared_array<int> begun(1);
  tell_end_of(r.submit(lev::options().task_ns_max(1'000'000), hang, begun));
  begun[0] = 0;
  lev::ticket t = r.submit(hang, begun);
  while (__atomic_load_n(begun.data(), __ATOMIC_SEQ_CST) == 0) poll(nullptr, 0, 1);
  require(t.end() == lev::status::ok);
  tell_end_of(std::move(t));
  tell_end_of(r.submit(crash));
  lev::ticket last = r.submit(hang, begun);
  std::printf("%s\n", lev::status_name(r.close(1'000'000, true, true)));
}

// Its zygote ends, and it may not start another.
void lose_zygote(lev::runtime& r) {
  tell_end_of(r.submit(end_parent));
  try {
    r.submit(crash);
  } catch (const lev::error& e) {
    std::printf("%s\n", e.what());
  }
}

}  // namespace

int main(int, char** arguments) try {
  const std::string when = arguments[1];
  // LeakSanitizer cannot look at a program that has given up rights, and ends it.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("main begins\n");
  if (when == "before") require(setegid(somebody) == 0 && seteuid(somebody) == 0);
  lev::config c;
  c.machine = "processes";
  c.workers = 1;
  lev::runtime r(c);
  if (when == "user") require(setgid(somebody) == 0 && setuid(somebody) == 0);
  if (when == "after") require(setegid(somebody) == 0 && seteuid(somebody) == 0);
  if (when == "user") end_tasks(r);
  if (when == "after") lose_zygote(r);
} catch (const std::exception& e) {
  std::printf("%s\n", e.what());
}
