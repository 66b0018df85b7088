// What tasks print, where the reader or the terminal does not take it, or a thread that a task has
// left behind holds the stream: no other task waits for that.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fault/pool_hosts.hpp"

namespace lev::test::streams {
namespace {

constexpr std::int64_t limit_ns = 20'000'000'000;

const auto nothing = define("streams.nothing", [] {});
const auto print = define("streams.print", [] {
  std::printf("a task");  // stays in a buffer
});
const auto print_at_once = define("streams.print_at_once", [] {
  std::printf("a task\n");
  std::fflush(stdout);
});
const auto hold_stream = define("streams.hold_stream", [] {
  std::printf("a task");
  std::atomic<bool> is_held{false};
  std::thread([&is_held] {
    flockfile(stdout);
    is_held = true;
    for (;;) pause();
  }).detach();
  while (!is_held) std::this_thread::yield();
});
const auto retire = define("streams.retire", [] { retire_worker(); });
const auto read_terminal = define("streams.read_terminal", [] {
  const int file = open("/dev/tty", O_RDONLY);
  char c = 0;
  if (file < 0 || read(file, &c, 1) != 1) throw std::runtime_error("nothing came");
});

config settings(int workers, const std::string& pool = "") {
  config c;
  c.machine = "processes";
  c.workers = workers;
  if (!pool.empty()) c.processes.pool = pool.c_str();
  return c;
}

// Hosts with outputs of their own: standard output is `file` while the object lives.
class other_output {
 public:
  explicit other_output(int file) {
    std::fflush(stdout);
    kept_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(file, STDOUT_FILENO);
  }
  ~other_output() {
    std::fflush(stdout);
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }
  other_output(other_output&&) = delete;

 private:
  int kept_ = -1;
};

class streams : public testing::Test {
 protected:
  streams() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~streams() override {
    for (const int file : ends_) close(file);
  }
  // The runtime prints to the pipe.
  void open_printer(std::optional<runtime>& r, int workers) {
    const other_output here(ends_[1]);
    r.emplace(settings(workers, name_));
  }
  void fill_pipe() {
    ASSERT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
    const std::string text(4096, '.');
    while (write(ends_[1], text.data(), text.size()) > 0) {
    }
    ASSERT_EQ(fcntl(ends_[1], F_SETFL, 0), 0);
  }
  void empty_pipe() {
    ASSERT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
    std::string text(4096, 0);
    while (read(ends_[0], text.data(), text.size()) > 0) {
    }
  }

  int ends_[2];
  const std::string name_ = "streams-" + std::to_string(getpid()) + "-" + std::to_string(++pools_);
  static inline int pools_ = 0;
};

// Its text belongs to the task, which ends when the text is written.
TEST_F(streams, a_host_whose_reader_does_not_read_keeps_no_other_waiting) {
  std::optional<runtime> prints;
  open_printer(prints, 2);
  runtime other(settings(2, name_));
  fill_pipe();
  ticket t = prints->submit(print);
  poll(nullptr, 0, 50);  // until it runs, or the test shows nothing
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(other.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  }
  empty_pipe();
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
  prints.reset();
}

TEST_F(streams, a_thread_that_holds_one_keeps_no_other_host_waiting) {
  std::optional<runtime> holds;
  open_printer(holds, 1);
  runtime other(settings(1, name_));
  EXPECT_EQ(holds->submit(hold_stream).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(other.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(holds->submit(nothing).wait_outcome(limit_ns).code, status::ok);
}

TEST_F(streams, a_thread_that_holds_one_does_not_keep_its_worker_from_ending) {
  runtime r(settings(1));
  EXPECT_EQ(r.submit(hold_stream).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(r.submit(retire).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(r.submit(nothing).wait_outcome(limit_ns).code, status::ok);
}

// A host with a terminal that stops processes in the background that print. 0: all is right.
int print_to_terminal() {
  setsid();
  const int screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (screen < 0 || grantpt(screen) != 0 || unlockpt(screen) != 0) return 1;
  const int terminal = open(ptsname(screen), O_RDWR);  // it becomes this session's
  termios how{};
  if (terminal < 0 || tcgetattr(terminal, &how) != 0) return 2;
  how.c_lflag |= TOSTOP;
  if (tcsetattr(terminal, TCSANOW, &how) != 0) return 3;
  const other_output here(terminal);
  runtime r(settings(1));
  const options limited = options().task_ns_max(10'000'000'000);  // or the host would wait for ever
  if (r.submit(limited, print_at_once).wait_outcome(limit_ns).code != status::ok) return 4;
  if (r.submit(limited, read_terminal).wait_outcome(limit_ns).code != status::task_failed) return 5;
  char text[6];
  return read(screen, text, sizeof text) == sizeof text && std::string(text, 6) == "a task" ? 0 : 6;
}

TEST_F(streams, a_terminal_stops_no_worker) {
  const pid_t host = fork();
  if (host == 0) _exit(print_to_terminal());
  int how = -1;
  EXPECT_EQ(waitpid(host, &how, 0), host);
  EXPECT_EQ(how, 0);
}

}  // namespace
}  // namespace lev::test::streams
