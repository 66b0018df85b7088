// A host of a shared pool, told by its standard input what to do, one command a line; it answers
// each with a line. Arguments: pool, workers, task_ns_max, and any of these:
//
//   limited             a limit that its workers have
//   sleepy              threads that wait sleep at once
//   confined            its workers are confined
//   files_N             it may have N open files
//
// Commands:
//
//   run N US            N tasks of US microseconds with copied arguments; "right PIDS", reruns
//   meet N              N tasks, each of which waits for all of them to begin; answers as run
//   share N             N tasks on one shared array
//   write N PATH        submits N tasks, each of which appends a byte to a file and never ends
//   hang N              submits N tasks that never end; answers when one has begun
//   post_hang           submits a task that never ends, behind others; answers at once
//   read PATH           a task that reads a byte from a pipe with a name; answers its status
//   overrun             a task that never ends, under a time limit; answers its status
//   end N               N times a task that never ends is begun, and ended; answers the last status
//   end_waiting         a task that no worker can begin is ended; answers its status
//   crash               a task that ends its worker at each attempt; answers its status
//   print N             a task that prints a number; answers its status
//   flood               submits for ever, answers once before
//   workers             the processes that run tasks
//   leave               closes the runtime, answers, and waits for the next command
//   join                opens it again
#include <leveret/leveret.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void pass_time(std::int64_t us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) {
  }
}

const auto square =
    lev::define("member.square", [](std::int64_t us, lev::in<std::int64_t> x,
                                    lev::out<std::int64_t> y, lev::result<std::int64_t> pid) {
      pass_time(us);
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
      pid = getpid();
    });
const auto add_one = lev::define("member.add_one", [](lev::inout<std::int64_t> x) {
  for (std::int64_t& v : x) ++v;
});
// One worker cannot be all of them.
struct meeting {
  std::int64_t* begun;
};
const auto meet =
    lev::define("member.meet", [](meeting m, std::int64_t count, lev::result<std::int64_t> pid) {
      pid = getpid();
      __atomic_add_fetch(m.begun, 1, __ATOMIC_SEQ_CST);
      while (__atomic_load_n(m.begun, __ATOMIC_SEQ_CST) < count) sched_yield();
    });
const auto append = lev::define("member.append", [](lev::in<char> path) {
  const int file = open(path.data(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  [[maybe_unused]] const ssize_t n = write(file, "x", 1);
  close(file);
  for (volatile bool goes_on = true; goes_on;) {
  }
});
const auto hang = lev::define("member.hang", [](lev::out<std::int64_t> begun) {
  __atomic_store_n(&begun[0], 1, __ATOMIC_SEQ_CST);
  for (volatile bool goes_on = true; goes_on;) {
  }
});
const auto read_byte = lev::define("member.read_byte", [](lev::in<char> path) {
  const int file = open(path.data(), O_RDONLY);
  char c = 0;
  const ssize_t n = read(file, &c, 1);
  close(file);
  if (n != 1) throw std::runtime_error("nothing came");
});
const auto print = lev::define("member.print", [](std::int64_t number) {
  std::printf("%lld\n", static_cast<long long>(number));  // stays in a buffer
});
const auto crash = lev::define("member.crash", [] { raise(SIGSEGV); });
// On a full machine a worker may take longer to die than a host's limit allows.
const lev::options slow = lev::options().task_ns_max(lev::no_time_limit);

class member {
 public:
  explicit member(const lev::config& c) : settings_(c) { join(); }

  std::string obey(const std::string& line) {
    std::istringstream in(line);
    std::string what;
    std::int64_t count = 0;
    std::int64_t us = 0;
    in >> what;
    if (what == "read") return in >> path_, read_from_pipe();
    in >> count;
    if (what == "write") return in >> path_, write_bytes(count);
    in >> us;
    if (what == "run") return run(count, us);
    if (what == "meet") return meet_all(count);
    if (what == "share") return share(count);
    if (what == "hang") return hang_up(count);
    if (what == "post_hang") return runtime_->post(hang, begun_), "posted";
    if (what == "overrun") return end_of(runtime_->submit(hang, begun_));
    if (what == "end") return end_tasks(count);
    if (what == "end_waiting") return end_waiting();
    if (what == "crash") return end_of(runtime_->submit(slow, crash));
    if (what == "print") return end_of(runtime_->submit(print, count));
    if (what == "leave") return runtime_.reset(), "left";
    if (what == "join") return join(), "joined";
    return "unknown command";
  }
  [[noreturn]] void flood() {
    for (;;) static_cast<void>(run(500, 2));
  }

 private:
  void join() { runtime_.emplace(settings_); }

  std::string run(std::int64_t count, std::int64_t us) {
    const auto n = static_cast<std::size_t>(count);
    std::vector<std::int64_t> x(n), y(n, -1), pids(n, 0);
    std::vector<lev::ticket> tickets;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<std::int64_t>(i);
      tickets.push_back(
          runtime_->submit(square, us, std::span(&x[i], 1), std::span(&y[i], 1), pids[i]));
    }
    for (std::size_t i = 0; i < n; ++i) {
      const lev::outcome o = tickets[i].wait_outcome();
      if (o.code != lev::status::ok) return "failed " + std::to_string(static_cast<int>(o.code));
      if (y[i] != x[i] * x[i]) return "wrong";
    }
    return right_by(pids);
  }
  std::string meet_all(std::int64_t count) {
    const auto n = static_cast<std::size_t>(count);
    lev::shared_array<std::int64_t> begun(1);
    std::vector<std::int64_t> pids(n, 0);
    std::vector<lev::ticket> tickets;
    for (std::int64_t& pid : pids)
      tickets.push_back(runtime_->submit(meet, meeting{&begun[0]}, count, pid));
    const lev::outcome o = lev::wait_all(tickets.data(), tickets.size());
    if (o.code != lev::status::ok) return "failed " + std::to_string(static_cast<int>(o.code));
    return right_by(pids);
  }
  std::string right_by(const std::vector<std::int64_t>& pids) {
    std::ostringstream out;
    out << "right " << runtime_->count().reruns;
    for (const std::int64_t pid : std::set<std::int64_t>(pids.begin(), pids.end()))
      out << ' ' << pid;
    return out.str();
  }
  std::string share(std::int64_t count) {
    const auto n = static_cast<std::size_t>(count);
    lev::shared_array<std::int64_t> x(n);
    std::vector<lev::ticket> tickets;
    for (std::size_t i = 0; i < n; ++i)
      tickets.push_back(runtime_->submit(add_one, std::span(x.data() + i, 1)));
    lev::wait_all(tickets.data(), tickets.size());
    for (std::size_t i = 0; i < n; ++i) {
      if (x[i] != 1) return "wrong";
    }
    return "right";
  }
  std::string write_bytes(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      runtime_->post(append, std::span(path_.c_str(), path_.size() + 1));
    return "submitted";
  }
  std::string hang_up(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) runtime_->post(hang, begun_);
    while (__atomic_load_n(&begun_[0], __ATOMIC_SEQ_CST) == 0) pass_time(1);
    return "hangs";
  }
  std::string end_tasks(std::int64_t count) {
    std::string last;
    for (std::int64_t i = 0; i < count; ++i) {
      lev::shared_array<std::int64_t> begun(1);
      lev::ticket t = runtime_->submit(hang, begun);
      while (i % 2 == 0 && __atomic_load_n(&begun[0], __ATOMIC_SEQ_CST) == 0) pass_time(1);
      if (t.end() != lev::status::ok) return "not asked";
      last = end_of(std::move(t));
      if (last != "cancelled") return last;
    }
    return last;
  }
  std::string end_waiting() {
    lev::ticket t = runtime_->submit(hang, begun_);
    return t.end() == lev::status::ok ? end_of(std::move(t)) : "not asked";
  }
  std::string read_from_pipe() {
    return end_of(runtime_->submit(read_byte, std::span(path_.c_str(), path_.size() + 1)));
  }
  std::string end_of(lev::ticket t) { return lev::status_name(t.wait_outcome().code); }

  lev::config settings_;
  std::string path_;  // until the tasks that use it are over
  lev::shared_array<std::int64_t> begun_{1};
  std::optional<lev::runtime> runtime_;
};

}  // namespace

int main(int count, char** arguments) try {
  lev::config c;
  c.machine = "processes";
  c.processes.pool = arguments[1];
  c.workers = std::atoi(arguments[2]);
  c.processes.task_ns_max = static_cast<std::uint64_t>(std::atoll(arguments[3]));
  for (int i = 4; i < count; ++i) {
    const std::string option = arguments[i];
    if (option == "limited") c.processes.worker_bytes_max = std::size_t{4} << 30;
    if (option == "sleepy") c.spin_ns = 0;
    if (option == "confined") c.processes.isolation = lev::isolation::confined;
    if (option.rfind("files_", 0) == 0) {
      const auto n = static_cast<rlim_t>(std::atoi(option.c_str() + 6));
      const rlimit few{n, n};
      setrlimit(RLIMIT_NOFILE, &few);
    }
  }
  member m(c);
  std::cout << "there" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "flood") {
      std::cout << "floods" << std::endl;
      m.flood();
    }
    std::cout << m.obey(line) << std::endl;
  }
} catch (const std::exception& e) {
  std::cout << "refused " << e.what() << std::endl;
}
