// Programs that close files which are not theirs, as daemons do, and then open some of their own:
// the host, or a body in its worker. What they opened stays open and as it was, and calls end.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

constexpr int first_file = 3;
constexpr int past_last_file = 1200;  // more than Leveret has numbers for
constexpr int files_opened = 12;
constexpr char text[] = "mine";

// Each file, or one of three.
void close_files(std::mt19937& random) {
  const bool closes_all = random() % 2 == 0;
  for (int file = first_file; file != past_last_file; ++file) {
    if (closes_all || random() % 3 == 0) close(file);
  }
}

class own_files {
 public:
  own_files() {
    for (int& file : files_) {
      char name[] = "/tmp/leveret-closed-files-XXXXXX";
      file = mkstemp(name);
      unlink(name);
      if (file < 0 || write(file, text, sizeof text) != sizeof text) _exit(10);
      struct stat about;
      fstat(file, &about);
      inodes_.push_back(about.st_ino);
    }
  }
  bool are_as_they_were() const {
    for (int i = 0; i < files_opened; ++i) {
      struct stat about;
      if (fstat(files_[i], &about) != 0 || about.st_ino != inodes_[static_cast<unsigned>(i)] ||
          about.st_size != sizeof text || lseek(files_[i], 0, SEEK_CUR) != sizeof text)
        return false;
    }
    return true;
  }

 private:
  int files_[files_opened];
  std::vector<ino_t> inodes_;
};

const auto twice =
    define("closed_files.twice", [](std::uint64_t x, result<std::uint64_t> y) { y = 2 * x; });
const auto crash = define("closed_files.crash", [] { raise(SIGSEGV); });

// The files stay open, for later bodies of this worker to look at.
own_files* files_of_worker = nullptr;
const auto close_in_worker = define("closed_files.close", [](std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  close_files(random);
  files_of_worker = new own_files;
});
const auto look_in_worker = define("closed_files.look", [](result<std::uint64_t> is_right) {
  is_right = files_of_worker == nullptr || files_of_worker->are_as_they_were();
});

config settings_of(unsigned seed) {
  static std::string name;
  config c;
  c.machine = "processes";
  c.workers = 1 + seed % 3;
  name = "closed-files-" + std::to_string(getpid());
  if (seed % 2 != 0) c.processes.pool = name.c_str();
  return c;
}

template <class... Arguments>
status end_of(runtime& r, Arguments&&... arguments) {
  try {
    return r.submit(arguments...).wait_outcome().code;
  } catch (const error& e) {
    return e.code();
  }
}

// Without its files the pool may be down; no answer is wrong.
bool is_right_or_down(runtime& r) {
  std::uint64_t y = 0;
  const status end = end_of(r, twice, std::uint64_t{21}, y);
  return end == status::ok ? y == 42 : end == status::pool_down;
}

void host_that_closes(unsigned seed) {
  std::mt19937 random(seed);
  own_files* mine = nullptr;
  {
    runtime r(settings_of(seed));
    if (!is_right_or_down(r)) _exit(1);
    close_files(random);
    mine = new own_files;
    for (int i = 0; i < 5; ++i) {
      if (!is_right_or_down(r)) _exit(2);
    }
    const status end = end_of(r, crash);
    if (end != status::poison && end != status::pool_down) _exit(3);
    if (!is_right_or_down(r)) _exit(4);
  }
  _exit(mine->are_as_they_were() ? 0 : 5);
}

void body_that_closes(unsigned seed) {
  config c = settings_of(seed);
  c.workers = 1;
  runtime r(c);
  r.submit(close_in_worker, std::uint64_t{seed}).wait();
  if (!is_right_or_down(r)) _exit(6);
  std::uint64_t is_right = 0;
  r.submit(look_in_worker, is_right).wait();
  if (is_right == 0) _exit(7);
  r.close();
  _exit(0);
}

class closed_files : public testing::TestWithParam<unsigned> {
 protected:
  // In a process of its own: this one needs its files.
  static int exit_code_of(void (*program)(unsigned)) {
    start_alarm();
    const pid_t child = fork();
    if (child == 0) {
      start_alarm();
      try {
        program(GetParam());
      } catch (const error& e) {
        _exit(100 + static_cast<int>(e.code()));
      }
    }
    int how = 0;
    if (waitpid(child, &how, 0) != child) return -1;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + WTERMSIG(how);
  }
};
INSTANTIATE_TEST_SUITE_P(seed, closed_files, testing::Range(1u, 7u));

TEST_P(closed_files, of_a_host_are_not_taken_for_those_it_opens) {
  EXPECT_EQ(exit_code_of(host_that_closes), 0);
}

TEST_P(closed_files, of_a_worker_are_not_taken_for_those_its_bodies_open) {
  EXPECT_EQ(exit_code_of(body_that_closes), 0);
}

}  // namespace
}  // namespace lev::test
