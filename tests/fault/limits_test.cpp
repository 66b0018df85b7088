// Systems that give too little: opening a runtime fails with a sentence that helps, leaves nothing
// behind, and works when there is enough again. And hosts that are killed.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "fault/hostile.hpp"
#include "share/faults.hpp"

namespace lev::test {

namespace {

int entries_of(const char* folder) {
  DIR* d = opendir(folder);
  if (d == nullptr) return -1;
  int count = 0;
  while (readdir(d) != nullptr) ++count;
  closedir(d);
  return count;
}
int open_files() {
  return entries_of("/proc/self/fd");
}

bool has_children() {
  return waitpid(-1, nullptr, WNOHANG) >= 0;
}

class lowered {
 public:
  lowered(__rlimit_resource_t what, rlim_t value) : what_(what) {
    getrlimit(what, &before_);
    const rlimit now{value, before_.rlim_max};
    setrlimit(what, &now);
  }
  ~lowered() { setrlimit(what_, &before_); }
  lowered(lowered&&) = delete;

 private:
  __rlimit_resource_t what_;
  rlimit before_{};
};

const auto crash = define("limits.crash", [] { raise(SIGSEGV); });

// Opens a runtime that must be refused; returns why, or "" if it was not.
std::string why_refused(const config& c) {
  try {
    runtime r(c);
    return "";
  } catch (const error& e) {
    return e.what();
  }
}

// Runs `act` in a process of its own under a limit; returns what it says.
template <class Act>
std::string said_under(__rlimit_resource_t what, rlim_t value, Act&& act) {
  int back[2];
  if (pipe(back) != 0) return "no pipe";
  const pid_t child = fork();  // its heap is not there yet
  if (child == 0) {
    alarm(60);
    std::string said;
    {
      const lowered limit(what, value);
      said = act();
    }
    [[maybe_unused]] const ssize_t n = write(back[1], said.data(), said.size());
    _exit(0);
  }
  close(back[1]);
  char text[1024] = "";
  [[maybe_unused]] const ssize_t n = read(back[0], text, sizeof text - 1);
  close(back[0]);
  int how = 0;
  waitpid(child, &how, 0);
  EXPECT_TRUE(WIFEXITED(how)) << "ended by signal " << WTERMSIG(how);
  return text;
}

void open_once() {
  runtime r(settings_at(isolation::crash));
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

TEST(limits, each_number_of_open_files_is_enough_or_refused_clearly) {
  start_alarm();
  open_once();  // the shared heap's file stays open
  const int before = open_files();
  int refused = 0;
  bool has_opened = false;
  for (rlim_t more = 0; more < 40 && !has_opened; ++more) {
    const lowered files(RLIMIT_NOFILE, static_cast<rlim_t>(before) - 3 + more);
    const std::string why = why_refused(settings_at(isolation::crash, 4));
    EXPECT_FALSE(has_children()) << why;
    if ((has_opened = why.empty())) break;
    ++refused;
    EXPECT_NE(why.find("ulimit -n"), std::string::npos) << why;
    if (refused == 1) std::printf("%s\n", why.c_str());
  }
  EXPECT_TRUE(has_opened);
  EXPECT_GT(refused, 3);
  const std::string first =
      said_under(RLIMIT_NOFILE, 3, [] { return why_refused(settings_at(isolation::crash)); });
  EXPECT_NE(first.find("ulimit -n"), std::string::npos) << first;
  EXPECT_EQ(open_files(), before);
  open_once();
}

TEST(limits, too_little_address_space_is_refused_clearly) {
  start_alarm();
  int back[2];
  ASSERT_EQ(pipe(back), 0);
  const pid_t child = fork();  // the limit is of a process whose heap is not there yet
  if (child == 0) {
    std::string said;
    {
      const lowered space(RLIMIT_AS, 48 << 20);
      said = why_refused(settings_at(isolation::crash));
    }
    if (has_children()) said += " A CHILD IS LEFT";
    const std::string later = why_refused(settings_at(isolation::crash));
    if (!later.empty()) said += " LATER: " + later;
    [[maybe_unused]] const ssize_t n = write(back[1], said.data(), said.size());
    _exit(0);
  }
  close(back[1]);
  char text[512] = "";
  [[maybe_unused]] const ssize_t n = read(back[0], text, sizeof text - 1);
  close(back[0]);
  waitpid(child, nullptr, 0);
  const std::string why = text;
  std::printf("%s\n", text);
  EXPECT_NE(why.find("memory"), std::string::npos) << why;
  EXPECT_EQ(why.find("LEFT"), std::string::npos) << why;
  EXPECT_EQ(why.find("LATER"), std::string::npos) << why;
}

// The address space that this process has now, and three GiB.
rlim_t three_gib_more() {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{3} << 30);
}

// A worker whose tasks wait has other stacks, or runs what they wait for on top of them.
struct awaited_task {
  ticket of;
  std::atomic<bool> is_begun{false};
  std::atomic<bool> is_there{false};
};
struct awaits {
  awaited_task* what;
};
const auto wait_for_it = define("limits.wait_for_it", [](awaits a) {
  a.what->is_begun = true;
  while (!a.what->is_there) std::this_thread::yield();
  a.what->of.wait();
});
const auto nothing_at_all = define("limits.nothing_at_all", [] {});

std::string wait_with_one_stack(const char* machine) {
  config c;
  c.machine = machine;
  c.workers = 1;
  c.wait = wait_policy::park;
  c.context_stack_bytes = std::size_t{1} << 32;
  runtime r(c);
  awaited_task b;
  const bool is_sim = std::string(machine) == "sim";  // there the host has the first turn
  b.is_there = is_sim;
  ticket waits = r.submit(wait_for_it, awaits{&b});
  while (!b.is_begun && !is_sim) std::this_thread::yield();
  b.of = r.submit(nothing_at_all);
  b.is_there = true;
  return status_name(waits.wait_outcome(20'000'000'000).code);
}

TEST(limits, a_task_waits_without_memory_for_another_stack) {
  start_alarm();
  for (const char* machine : {"threads", "sim"}) {
    EXPECT_EQ(said_under(RLIMIT_AS, three_gib_more(), [&] { return wait_with_one_stack(machine); }),
              "ok")
        << machine;
  }
}

const auto add_one = define("limits.add_one", [](inout<int> x) { ++x[0]; });

std::string copy_without_store(const char* machine) {
  config c;
  c.machine = machine;
  c.workers = 1;
  c.staging = staging::copy;
  c.local_store_bytes = std::size_t{1} << 32;
  runtime r(c);
  int x = 5;
  ticket t = r.submit(add_one, view(&x, 1));
  const outcome o = t.wait_outcome(20'000'000'000);
  return status_name(o.code) + std::string(x == 5 ? "" : ", and it ran");
}

TEST(limits, a_task_without_memory_for_its_data_is_told) {
  start_alarm();
  for (const char* machine : {"threads", "sim"}) {
    EXPECT_EQ(said_under(RLIMIT_AS, three_gib_more(), [&] { return copy_without_store(machine); }),
              "out_of_memory")
        << machine;
  }
}

// No ticket is free for its pieces, so it gets shared memory for all that its worker's store cannot
// hold; and there is none for a while.
TEST(limits, a_task_without_shared_memory_for_its_data_is_told) {
  start_alarm();
  config c = settings_at(isolation::crash);
  c.tickets = 1;
  c.local_store_bytes = 4096;
  runtime r(c);
  std::vector<int> x(100'000, 5);
  {
    // No limit: one on files is for what makes them longer, and a test before this one may have.
    fault_plan none{fault_name("host.fallocate").index, fault_action::fail, true};
    arm_faults(&none, nullptr);
    std::vector<void*> held;  // what earlier tests of this process have given back would do
    while (void* p = shared_allocate(x.size() * sizeof(int))) held.push_back(p);
    const outcome o = r.submit(add_by_hook_procedure, x).wait_outcome(wait_limit_ns);
    arm_faults(nullptr, nullptr);
    for (void* p : held) shared_free(p);
    EXPECT_EQ(o.code, status::out_of_memory);
    EXPECT_NE(text_of(o).find("No space left"), std::string::npos) << text_of(o);
  }
  EXPECT_EQ(x, std::vector<int>(100'000, 5));
  EXPECT_EQ(r.submit(add_by_hook_procedure, x).wait_outcome(wait_limit_ns).code, status::ok);
  EXPECT_EQ(x, std::vector<int>(100'000, 6));
  EXPECT_EQ(r.count().deaths, 0u);
  close_and_check(r);
}

// Shared memory is a file, and the system ends who makes one too large.
TEST(limits, files_that_may_not_grow_are_refused_clearly) {
  start_alarm();
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{1} << 20, rlim_t{8} << 20}) {
    const std::string why = said_under(RLIMIT_FSIZE, bytes, [] {
      config c = settings_at(isolation::crash);
      c.local_store_bytes = 16 << 20;
      std::string said = why_refused(c);
      if (has_children()) said += " A CHILD IS LEFT";
      return said;
    });
    EXPECT_NE(why.find("ulimit -f"), std::string::npos) << why;
    EXPECT_EQ(why.find("LEFT"), std::string::npos) << why;
    const std::string none = said_under(RLIMIT_FSIZE, bytes, [] {
      const bool is_there = shared_allocate(16 << 20) != nullptr;
      return is_there ? std::string("it was there") : std::string(shared_shortage());
    });
    EXPECT_NE(none.find("ulimit -f"), std::string::npos) << none;
  }
}

TEST(limits, files_that_may_not_grow_are_no_end_of_a_trace) {
  start_alarm();
  const std::string path = testing::TempDir() + "leveret_small_" + std::to_string(getpid());
  const std::string said = said_under(RLIMIT_FSIZE, 100, [&] {
    config c;
    c.workers = 1;
    c.trace_events = 64;
    runtime r(c);
    return std::string(status_name(r.write_trace(path.c_str())));
  });
  std::remove(path.c_str());
  EXPECT_EQ(said, "unavailable");
}

// That the limit on files is what ends it if the memory were asked for: nothing else may.
TEST(limits, more_memory_than_there_is_is_refused_before_it_is_taken) {
  start_alarm();
  const std::string said = said_under(RLIMIT_FSIZE, 32 << 20, [] {
    std::ifstream meminfo("/proc/meminfo");
    std::uint64_t available_kib = 0;
    for (std::string word; meminfo >> word;) {
      std::uint64_t kib = 0;
      if ((word == "MemAvailable:" || word == "SwapFree:") && meminfo >> kib) available_kib += kib;
    }
    const std::uint64_t asked_kib = available_kib + (std::uint64_t{4} << 20);
    if (asked_kib > std::uint64_t{63} << 20) return std::string("so much can be had");
    if (shared_allocate(asked_kib << 10) != nullptr) return std::string("it was there");
    const std::string why = shared_shortage();
    return shared_allocate(4096) == nullptr ? why + ", and then nothing" : why;
  });
  if (said == "so much can be had") GTEST_SKIP() << "the heap is smaller than this computer";
  EXPECT_NE(said.find("MiB left; use less"), std::string::npos) << said;
  EXPECT_EQ(said.find("nothing"), std::string::npos) << said;
  std::printf("%s\n", said.c_str());
}

TEST(limits, too_few_processes_are_refused_clearly) {
  if (geteuid() == 0) GTEST_SKIP() << "the limit does not bind root";
  start_alarm();
  const int before = open_files();
  {
    const lowered processes(RLIMIT_NPROC, 1);
    const std::string why = why_refused(settings_at(isolation::crash, 2));
    EXPECT_NE(why.find("ulimit -u"), std::string::npos) << why;
  }
  EXPECT_FALSE(has_children());
  EXPECT_LE(open_files(), before + 1);
  open_once();
}

// While a worker must be replaced the host has no number free for its file: for longer than it
// takes to start as many workers as may die in a row, and then for good. On a full machine a moment
// may be longer than the second that a pool waits: then another round shows it.
constexpr int rounds_of_shortage = 10;
class few_files : public testing::TestWithParam<bool> {
 protected:
  config settings() const {
    config c = settings_at(isolation::crash);
    if (GetParam()) c.processes.pool = name_.c_str();
    c.processes.restarts_max = 1;
    return c;
  }
  const std::string name_ = "limits-" + std::to_string(getpid());
};
INSTANTIATE_TEST_SUITE_P(limits, few_files, testing::Bool(), [](const auto& i) {
  return std::string(i.param ? "of_a_shared_pool" : "of_a_host");
});

TEST_P(few_files, for_a_moment_are_waited_for) {
  start_alarm();
  status code = status::pool_down;
  for (int i = 0; i < rounds_of_shortage && code == status::pool_down; ++i) {
    runtime r(settings());
    ticket t;
    {
      const lowered files(RLIMIT_NOFILE, 3);
      t = r.submit(crash);
      while (r.count().deaths < 4 && !t.done()) poll(nullptr, 0, 1);
    }
    code = t.wait_outcome().code;
    if (code == status::pool_down) continue;
    EXPECT_TRUE(is_usable(r));
    close_and_check(r);
  }
  EXPECT_EQ(code, status::poison);
}

const auto pass_time = define("limits.pass_time", [] { poll(nullptr, 0, 50); });

// A callback that submits waits for tickets as long as tasks wait for a worker.
struct submits_more {
  runtime* home;
  const std::thread::id waiter = std::this_thread::get_id();
  bool is_by_waiter = false;
  status code = status::ok;
  std::atomic<bool> is_over{false};
};
void submit_more(void* context) {
  auto& s = *static_cast<submits_more*>(context);
  s.is_by_waiter = std::this_thread::get_id() == s.waiter;
  refusal why;
  s.home->submit(options().max_attempts(1), crash).release();
  for (int i = 0; i < 300 && s.code == status::ok; ++i) {
    if (!s.home->try_submit(pack(nothing_at_all), nullptr, &why)) s.code = why.code;
  }
  s.is_over = true;
}

TEST_P(few_files, for_a_moment_are_waited_for_in_callbacks) {
  start_alarm();
  config c = settings();
  c.tickets = 16;
  c.wait = wait_policy::spin;  // so this thread calls it, and the service hears of no end
  status code = status::pool_down;
  bool is_by_waiter = false;  // not if this thread is late at its wait
  for (int i = 0; i < rounds_of_shortage && (code == status::pool_down || !is_by_waiter); ++i) {
    runtime r(c);
    submits_more more{&r};
    ticket t = r.submit(pass_time);
    auto files = std::make_unique<lowered>(RLIMIT_NOFILE, rlim_t{3});
    std::thread waits([&] {
      while (r.count().deaths < 4 && !more.is_over) poll(nullptr, 0, 1);
      files.reset();
    });
    EXPECT_EQ(t.then(&submit_more, &more), status::ok);
    EXPECT_EQ(t.wait_outcome().code, status::ok);
    waits.join();
    while (!more.is_over) poll(nullptr, 0, 1);
    code = more.code;
    is_by_waiter = more.is_by_waiter;
    EXPECT_TRUE(code != status::ok || is_usable(r));
  }
  EXPECT_TRUE(is_by_waiter);
  EXPECT_EQ(code, status::ok);
}

TEST_P(few_files, for_good_are_named) {
  start_alarm();
  runtime r(settings());
  const lowered files(RLIMIT_NOFILE, 3);
  EXPECT_EQ(r.submit(options().max_attempts(2), crash).wait_outcome().code, status::pool_down);
  std::string why;
  try {
    r.submit(crash);
  } catch (const error& e) {
    why = e.what();
  }
  EXPECT_NE(why.find("ulimit -n"), std::string::npos) << why;
}

TEST(limits, a_program_that_does_not_answer_is_no_zygote) {
  start_alarm();
  const char* const command[] = {"true", nullptr};
  config c = settings_at(isolation::crash);
  c.processes.worker_command = command;
  const std::string why = why_refused(c);
  EXPECT_NE(why.find("did not answer"), std::string::npos) << why;
  EXPECT_FALSE(has_children());
}

TEST(limits, a_program_that_does_not_end_is_no_keeper) {
  if (!is_deep()) GTEST_SKIP() << "takes twenty seconds (LEVERET_DEEP=1)";
  start_alarm();
  const char* const command[] = {"sleep", "1000", nullptr};
  const std::string pool = "sleeps-" + std::to_string(getpid());
  config c = settings_at(isolation::crash);
  c.processes.worker_command = command;
  c.processes.pool = pool.c_str();
  const std::string why = why_refused(c);
  EXPECT_NE(why.find("waiting for the pool's keeper"), std::string::npos) << why;
  EXPECT_FALSE(has_children());
}

TEST(limits, many_workers_start_and_end) {
  start_alarm();
  runtime r(settings_at(isolation::crash, 200));
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
  EXPECT_FALSE(has_children());
}

class killed_host_test : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(at, killed_host_test, testing::Values("0", "1"),
                         [](const testing::TestParamInfo<const char*>& i) {
                           return *i.param == '0' ? "crash" : "confined";
                         });

TEST_P(killed_host_test, leaves_nothing) {
  start_alarm();
  const int named_before = entries_of("/dev/shm");
  int back[2];
  ASSERT_EQ(pipe(back), 0);
  const pid_t host = fork();
  if (host == 0) {
    dup2(back[1], STDOUT_FILENO);
    close(back[0]);
    close(back[1]);
    execl(FAULT_HOST, FAULT_HOST, GetParam(), nullptr);
    _exit(127);
  }
  close(back[1]);
  std::FILE* answers = fdopen(back[0], "r");
  long worker = 0;
  long zygote = 0;
  ASSERT_EQ(std::fscanf(answers, "%ld %ld", &worker, &zygote), 2);
  const int worker_file = static_cast<int>(syscall(SYS_pidfd_open, worker, 0));
  const int zygote_file = static_cast<int>(syscall(SYS_pidfd_open, zygote, 0));
  ASSERT_GE(worker_file, 0);
  ASSERT_GE(zygote_file, 0);
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
  for (const int file : {worker_file, zygote_file}) {
    pollfd over{file, POLLIN, 0};
    EXPECT_EQ(poll(&over, 1, 30'000), 1) << "still there after 30 s";
    close(file);
  }
  EXPECT_EQ(entries_of("/dev/shm"), named_before);
  std::fclose(answers);
}

}  // namespace

}  // namespace lev::test
