// output: a worker of a shared pool prints where the host of its present task does. The task ends
// when its buffered text is there: a host whose reader does not read keeps its own tasks waiting,
// and no other host's but by text of threads that its tasks have left behind.
#pragma once

#include "machines/processes/zygote.hpp"

#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace lev::processes {

static_assert(STDERR_FILENO == STDOUT_FILENO + 1);  // the two are walked through

// A reader that is gone ends no task that has succeeded: the signal that says so is taken back, and
// the text is dropped.
inline void flush_without_signal(std::FILE* stream) noexcept {
  sigset_t broken_pipe;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  if (fflush_unlocked(stream) != 0 && errno == EPIPE) {
    __fpurge(stream);
    const timespec none{};
    if (sigismember(&pending, SIGPIPE) == 0) sigtimedwait(&broken_pipe, nullptr, &none);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// write_out() writes what is buffered, but does not wait for another thread that holds the stream:
// one that a task has left behind may hold it for ever.
inline void write_out(std::FILE* stream) noexcept {
  if (__fpending(stream) == 0 || ftrylockfile(stream) != 0) return;
  flush_without_signal(stream);
  funlockfile(stream);
}
inline void write_out() noexcept {
  write_out(stdout);
  write_out(stderr);
}

class output {
 public:
  // The identity of a file, however it was opened.
  struct mark {
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const mark&) const = default;
  };

  // Standard output and error of a host, which are closed with this object; -1: none.
  explicit output(int out = -1, int error = -1) noexcept : files_{out, error} {
    for (int i = 0; i < 2; ++i) {
      struct stat about{};
      if (files_[i] >= 0 && fstat(files_[i], &about) == 0) marks_[i] = {about.st_dev, about.st_ino};
    }
  }
  ~output() {
    for (int& f : files_) close_file(&f);
  }
  output(output&&) = delete;

  // write_out() comes before the end of a task that has printed here.
  void write_out() const noexcept {
    if (files_[0] >= 0) processes::write_out();
  }
  // use() makes them this process's. Hosts with one terminal, or one log, have the same: then there
  // is nothing to do.
  void use(mark (&used)[2]) const noexcept {
    if (used[0] == marks_[0] && used[1] == marks_[1]) return;
    processes::write_out();  // of threads that tasks have left behind
    for (int i = 0; i < 2; ++i) {
      if (files_[i] >= 0) dup2(files_[i], STDOUT_FILENO + i);
      used[i] = marks_[i];
    }
  }

 private:
  int files_[2];
  mark marks_[2];
};

// use_nothing_for() opens /dev/null in place of a file.
inline void use_nothing_for(int file, int how) noexcept {
  const int nothing = open("/dev/null", how | O_CLOEXEC);
  if (nothing < 0 || nothing == file) return;
  dup2(nothing, file);
  close(nothing);
}

// drop_output() lets go of a host's output: its reader would otherwise wait for it to end.
inline void drop_output() noexcept {
  write_out();
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) use_nothing_for(file, O_WRONLY);
}

}  // namespace lev::processes
