// Last words of a worker process. faulthandler writes Python's part of them; its handlers pass the
// signal on to those here, which add the frames of C (before Python 3.14, which does that itself).
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "obituaries.hpp"
#include "view.hpp"

namespace lev::python {

namespace {

constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
constexpr int frames_max = 48;
// A stack that cannot be walked, as its thread holds the loader's lock, must not keep a dead call
// alive.
constexpr unsigned walk_seconds_max = 2;

// The signal that faulthandler answers with the traceback of a call whose time is nearly over.
int overrun_signal() noexcept {
  return SIGRTMAX - 2;
}

// Of the process that called watch_signals(); what it forks has none.
pid_t owner = 0;
int words_file = -1;
bool writes_frames = false;
volatile std::uint32_t* signal_mark = nullptr;
const volatile std::uint64_t* call_mark = nullptr;
timer_t timer{};
bool has_timer = false;

void write_text(const char* text) noexcept {
  [[maybe_unused]] const ssize_t n = write(words_file, text, std::strlen(text));
}

void write_frames() noexcept {
  void* frames[frames_max];
  const int count = backtrace(frames, frames_max);
  // This function, the handler, and the way to it: faulthandler's handler, which has raised the
  // signal again. What was interrupted begins behind the second return into the kernel's frame.
  int begin = 0;
  for (int i = 3; i < count && begin == 0; ++i) {
    if (frames[i] == frames[2]) begin = i + 1;
  }
  if (begin >= count) return;
  write_text("\nC stack (most recent call first):\n");
  backtrace_symbols_fd(frames + begin, count - begin, words_file);
}

[[gnu::noinline]] void on_fatal_signal(int number) {
  signal(number, SIG_DFL);
  if (getpid() == owner) {
    *signal_mark = static_cast<std::uint32_t>(number);
    signal(SIGALRM, SIG_DFL);
    alarm(walk_seconds_max);
    if (writes_frames) write_frames();
    alarm(0);
  }
  ::raise(number);
}

// Takes the signal of a time limit where nobody shows frames at it: a process that has no page, or
// none yet, would be ended by it. A program that a call starts does not inherit this.
void on_overrun_signal(int) {}

// exit() in a call: native code, mostly, that gives up. Python's frames are written as before a
// time limit, then those of C.
[[gnu::noinline]] void on_exit() {
  struct sigaction now{};
  if (getpid() != owner || *call_mark == 0) return;
  if (sigaction(overrun_signal(), nullptr, &now) != 0) return;
  if (now.sa_handler == SIG_DFL || now.sa_handler == &on_overrun_signal) return;
  signal(SIGALRM, SIG_DFL);
  alarm(walk_seconds_max);
  ::raise(overrun_signal());
  void* frames[frames_max];
  const int count = backtrace(frames, frames_max);
  write_text("\nC stack (most recent call first):\n");
  if (count > 1) backtrace_symbols_fd(frames + 1, count - 1, words_file);  // from here on
  alarm(0);
}

template <class Word>
volatile Word* mark_at(const Py_buffer& page, std::size_t offset) noexcept {
  return reinterpret_cast<volatile Word*>(static_cast<char*>(page.buf) + offset);
}

void watch_signals(int file, nb::object own_page, bool frames) {
  static Py_buffer view;  // of the page in use: a worker of several hosts has one for each
  static bool has_handler = false;
  if (view.obj != own_page.ptr()) {
    Py_buffer next = buffer_of(own_page, PyBUF_WRITABLE);
    std::swap(view, next);
    if (!has_handler) std::atexit(&on_exit);
    has_handler = true;
    signal_mark = mark_at<std::uint32_t>(view, page::signal_at);
    call_mark = mark_at<std::uint64_t>(view, page::call_at);
    if (next.obj != nullptr) PyBuffer_Release(&next);
  }
  void* frame;
  backtrace(&frame, 1);  // loads what it needs
  owner = getpid();
  words_file = file;
  writes_frames = frames;
  struct sigaction act{};
  act.sa_handler = &on_fatal_signal;
  act.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int number : fatal_signals) sigaction(number, &act, nullptr);
}

void make_timer() {
  struct sigaction act{};
  if (sigaction(overrun_signal(), nullptr, &act) == 0 && act.sa_handler == SIG_DFL) {
    act.sa_handler = &on_overrun_signal;
    act.sa_flags = SA_RESTART;
    sigaction(overrun_signal(), &act, nullptr);
  }
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = overrun_signal();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

// Python's frames are shown by faulthandler, which has registered the signal.
void set_timer(std::uint64_t ns) {
  if (!has_timer && ns != 0) make_timer();
  if (!has_timer) return;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000u);
  when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000u);
  timer_settime(timer, 0, &when, nullptr);
}

}  // namespace

void bind_last_words(nb::module_& m) {
  m.def("watch_signals", &watch_signals, nb::arg("file"), nb::arg("page"), nb::arg("frames"),
        "In a worker: has fatal signals marked in its page, and, if told so, C frames written to "
        "a file.");
  m.def("set_timer", &set_timer, nb::arg("ns"),
        "In a worker: sends this thread overrun_signal after a time; 0: not any more.");
  m.def("overrun_signal", &overrun_signal, "The number of that signal.");
}

}  // namespace lev::python
