// Bodies that mean harm: each row of the table of attacks (docs/reference/isolation.md) is a test,
// at each level that stands up to it.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "fault/hostile.hpp"

namespace lev::test {

namespace {

// --- What bodies try ---------------------------------------------------------------------------

enum class attack {
  open_file,
  stat_file,
  make_socket,
  fork_child,
  start_thread,
  execute,
  trace_host,
  signal_host,
  signal_zygote,
  write_host,
  make_memory_file,
  become_dumpable,
  map_code,
  protect_code,
  map_shared,
  read_bell,
  write_other_file,
  raise_limit,
  count
};

constexpr const char* attack_names[] = {
    "open_file",        "stat_file",        "make_socket", "fork_child",    "start_thread",
    "execute",          "trace_host",       "signal_host", "signal_zygote", "write_host",
    "make_memory_file", "become_dumpable",  "map_code",    "protect_code",  "map_shared",
    "read_bell",        "write_other_file", "raise_limit"};
static_assert(std::size(attack_names) == static_cast<std::size_t>(attack::count));

long write_to_host(pid_t host, std::uint64_t address) {
  int evil = 666;
  const iovec from{&evil, sizeof evil};
  const iovec to{reinterpret_cast<void*>(address), sizeof evil};
  return process_vm_writev(host, &from, 1, &to, 1, 0);
}

long try_memory(attack what) {
  constexpr std::size_t page = 4096;
  constexpr int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  if (what == attack::map_code)
    return mmap(nullptr, page, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
  if (what == attack::map_shared)
    return mmap(nullptr, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
  void* p = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mprotect(p, page, all);
}

long try_process(attack what, pid_t host, std::uint64_t address) {
  char* const arguments[] = {const_cast<char*>("true"), nullptr};
  switch (what) {
    case attack::fork_child:
      return fork();
    case attack::start_thread:
      return syscall(SYS_clone, CLONE_VM | SIGCHLD, 0, 0, 0, 0);
    case attack::execute:
      return execv("/bin/true", arguments);
    case attack::trace_host:
      return ptrace(PTRACE_SEIZE, host, 0, 0);
    case attack::signal_host:
      return kill(host, SIGUSR1);
    case attack::signal_zygote:
      return kill(getppid(), SIGKILL);
    case attack::write_host:
      return write_to_host(host, address);
    default:
      return try_memory(what);
  }
}

long try_attack(attack what, pid_t host, std::uint64_t address) {
  char byte = 0;
  struct stat about;
  const rlimit more{1024, 1024};
  switch (what) {
    case attack::open_file:
      return open("/etc/passwd", O_RDONLY);
    case attack::stat_file:
      return stat("/etc/passwd", &about);
    case attack::make_socket:
      return socket(AF_INET, SOCK_STREAM, 0);
    case attack::make_memory_file:
      return memfd_create("x", 0);
    case attack::become_dumpable:
      return prctl(PR_SET_DUMPABLE, 1);
    case attack::read_bell:
      return read(4, &byte, 1);
    case attack::write_other_file:
      return write(0, &byte, 1);
    case attack::raise_limit:
      return setrlimit(RLIMIT_FSIZE, &more);
    default:
      return try_process(what, host, address);
  }
}

const auto attack_procedure =
    define("fault.attack", [](int what, int host, std::uint64_t address, out<std::int64_t> got) {
      errno = 0;
      const long code = try_attack(static_cast<attack>(what), host, address);
      got[0] = code;
      got[1] = errno;
    });

// In a pool of the host's own, and in one that it would share.
class confined_test : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
};

volatile int untouched = 7;

TEST_P(confined_test, cannot) {
  const auto [number, is_pool_shared] = GetParam();
  const auto what = static_cast<attack>(number);
  config c = settings_at(isolation::confined);
  const std::string pool = "security-" + std::to_string(getpid());
  if (is_pool_shared) c.processes.pool = pool.c_str();
  runtime r(c);
  std::int64_t got[2] = {-1, -1};
  const outcome o = r.submit(attack_procedure, number, static_cast<int>(getpid()),
                             reinterpret_cast<std::uint64_t>(&untouched), got)
                        .wait_outcome(wait_limit_ns);
  if (what == attack::stat_file) {  // refused instead: C libraries ask about their streams
    EXPECT_EQ(o.code, status::ok);
    EXPECT_EQ(got[0], -1);
    EXPECT_EQ(got[1], EPERM);
  } else {
    EXPECT_EQ(o.code, status::poison);
    const std::string text = text_of(o);
    EXPECT_NE(text.find("SIGSYS"), std::string::npos) << text;
    EXPECT_NE(text.find("attempt 1;"), std::string::npos) << text;
    EXPECT_EQ(got[0], -1) << "a failed task's output arrived";
  }
  EXPECT_EQ(untouched, 7);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

INSTANTIATE_TEST_SUITE_P(attack, confined_test,
                         testing::Combine(testing::Range(0, static_cast<int>(attack::count)),
                                          testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<int, bool>>& i) {
                           const std::string name = attack_names[std::get<0>(i.param)];
                           return std::get<1>(i.param) ? name + "_of_a_shared_pool" : name;
                         });

// System calls, all that there are and some more: those that are in none of these lists end the
// worker.
constexpr long allowed_calls[] = {
    SYS_futex,          SYS_munmap,       SYS_brk,         SYS_clock_gettime,   SYS_clock_getres,
    SYS_nanosleep,      SYS_gettimeofday, SYS_sched_yield, SYS_clock_nanosleep, SYS_getrandom,
    SYS_getpid,         SYS_getppid,      SYS_gettid,      SYS_getcpu,          SYS_rt_sigreturn,
    SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_sigaltstack, SYS_restart_syscall, SYS_exit,
    SYS_exit_group,     SYS_getrusage,
#if defined(__x86_64__)
    SYS_time,
#endif
};
// Those that are looked at more closely: with zeros for arguments mmap() and kill() end it, too.
constexpr long refused_calls[] = {SYS_newfstatat, SYS_fstat,  SYS_statx,    SYS_ioctl,
                                  SYS_lseek,      SYS_mremap, SYS_mprotect, SYS_madvise};

// Those that the kernel's own probes make, and nobody else may: it does not ask seccomp about them.
constexpr bool is_of_probes(long number) {
#if defined(__x86_64__)
  return number == 335 || number == 336;
#else
  return number < 0;
#endif
}

const auto call_procedure = define("fault.call", [](std::int64_t number, out<std::int64_t> got) {
  errno = 0;
  got[0] = syscall(number, 0, 0, 0, 0, 0, 0);
  got[1] = errno;
});

bool is_in(std::span<const long> list, long number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

TEST(security, confined_workers_have_the_system_calls_that_are_listed) {
  start_alarm();
  constexpr long calls_max = 512;
  constexpr long x32 = 0x40000000;  // on x86-64, the same calls for other programs
  runtime r(settings_at(isolation::confined));
  std::vector<long> numbers;
  for (long n = 0; n < calls_max; ++n) {
    if (!is_in(allowed_calls, n) && !is_of_probes(n)) numbers.push_back(n);
  }
  for (const long n : {0L, 1L, 9L, 39L, 59L}) numbers.push_back(x32 + n);
  for (const long n : numbers) {
    std::int64_t got[2] = {0, 0};
    const outcome o = r.submit(call_procedure, std::int64_t{n}, got).wait_outcome(wait_limit_ns);
    if (is_in(refused_calls, n)) {
      EXPECT_EQ(o.code, status::ok) << n;
      EXPECT_TRUE(got[0] != 0 || n == SYS_madvise) << n;
    } else {
      EXPECT_EQ(o.code, status::poison) << n;
      EXPECT_NE(text_of(o).find("SIGSYS"), std::string::npos) << n << text_of(o);
    }
  }
  close_and_check(r);
}

// --- At both levels ----------------------------------------------------------------------------

class hostile_test : public testing::TestWithParam<isolation> {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
  static config settings(int workers = 1) { return settings_at(GetParam(), workers); }
};

INSTANTIATE_TEST_SUITE_P(at, hostile_test, testing::Values(isolation::crash, isolation::confined),
                         [](const testing::TestParamInfo<isolation>& i) {
                           return i.param == isolation::crash ? "crash" : "confined";
                         });

const auto double_procedure = define("fault.double", [](in<int> x, out<int> y, inout<int> z) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = 2 * x[i];
    z[i] += 1;
  }
});

TEST_P(hostile_test, honest_work_with_shared_memory_goes_on) {
  for (const staging how : {staging::automatic, staging::in_place, staging::copy}) {
    config c = settings(2);
    c.staging = how;
    runtime r(c);
    shared_array<int> x(1000), y(1000), z(1000);
    for (int i = 0; i < 1000; ++i) x[static_cast<std::size_t>(i)] = i;
    ASSERT_EQ(r.submit(double_procedure, x, y, z).wait_outcome(wait_limit_ns).code, status::ok);
    ASSERT_EQ(r.submit(double_procedure, sliced(x), sliced(y), sliced(z))
                  .wait_outcome(wait_limit_ns)
                  .code,
              status::ok);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(y[static_cast<std::size_t>(i)], 2 * i);
      ASSERT_EQ(z[static_cast<std::size_t>(i)], 2);
    }
    close_and_check(r);
  }
}

const auto allocate_procedure = define("fault.allocate", [](std::uint64_t bytes, result<int> sum) {
  std::vector<char> v(bytes, 1);
  sum = v[bytes / 2];
});

TEST_P(hostile_test, memory_is_limited) {
  config c = settings();
  c.processes.worker_bytes_max = 64 << 20;
  runtime r(c);
  int sum = 0;
  EXPECT_EQ(r.submit(allocate_procedure, std::uint64_t{8} << 20, sum).wait_outcome().code,
            status::ok);
  const outcome o = r.submit(allocate_procedure, std::uint64_t{1} << 30, sum).wait_outcome();
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_NE(text_of(o).find("bad_alloc"), std::string::npos) << text_of(o);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

const auto spin_procedure = define("fault.spin", [] {
  for (volatile bool goes_on = true; goes_on;) {
  }
});

TEST_P(hostile_test, time_is_limited) {
  runtime r(settings());
  const options limited = options().task_ns_max(500'000'000);
  EXPECT_EQ(r.submit(limited, spin_procedure).wait_outcome(wait_limit_ns).code, status::overran);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

TEST_P(hostile_test, cpu_time_is_limited) {
  config c = settings();
  c.processes.worker_cpu_seconds_max = 1;
  c.processes.max_attempts = 1;
  runtime r(c);
  EXPECT_EQ(r.submit(spin_procedure).wait_outcome(wait_limit_ns).code, status::poison);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

// --- The shared mappings -----------------------------------------------------------------------

const auto write_input = define("fault.write_input", [](in<int> x, out<int> got) {
  got[0] = mprotect(const_cast<int*>(x.data()), 4096, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
  *const_cast<volatile int*>(x.data()) = 13;
});
const auto protect_input = define("fault.protect_input", [](in<int> x, out<int> got) {
  const auto page = reinterpret_cast<std::uintptr_t>(x.data()) / 4096 * 4096;
  got[0] = mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
});

TEST(security, confined_workers_cannot_write_to_shared_inputs) {
  start_alarm();
  runtime r(settings_at(isolation::confined));
  shared_array<int> x(1024);
  x[0] = 5;
  int got = -1;
  const outcome o = r.submit(write_input, x, view(&got, 1)).wait_outcome(wait_limit_ns);
  EXPECT_EQ(o.code, status::poison);
  EXPECT_NE(text_of(o).find("SIGSEGV"), std::string::npos) << text_of(o);
  EXPECT_EQ(r.submit(protect_input, x, view(&got, 1)).wait_outcome(wait_limit_ns).code, status::ok);
  EXPECT_EQ(got, EACCES);
  EXPECT_EQ(x[0], 5);
  close_and_check(r);
}

// The first mapping in this process whose name has `name` in it.
bool find_mapping(const char* name, std::uintptr_t* begin, std::uintptr_t* end) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  bool is_found = false;
  while (!is_found && std::fgets(line, sizeof line, maps) != nullptr) {
    is_found = std::strstr(line, name) != nullptr && std::sscanf(line, "%lx-%lx", begin, end) == 2;
  }
  std::fclose(maps);
  return is_found;
}

// For a mapping: what mprotect(), a new writable mapping, ftruncate() to less and to more answer.
const auto attack_mapping = define("fault.attack_mapping", [](int which, out<int> got) {
  const char* const names[] = {"leveret-board", "leveret-heap", "leveret-lane"};
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  got[0] = -2;
  if (!find_mapping(names[which], &begin, &end)) return;
  got[0] = mprotect(reinterpret_cast<void*>(begin), 4096, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
  char path[100];
  std::snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", begin, end);
  const int file = open(path, O_RDWR);
  got[1] = got[2] = got[3] = -1;
  if (file < 0) return;
  void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  got[1] = p == MAP_FAILED ? errno : 0;
  got[2] = ftruncate(file, 0) == 0 ? 0 : errno;
  got[3] = ftruncate(file, static_cast<off_t>(end - begin) * 2) == 0 ? 0 : errno;
});

TEST(security, shared_files_are_sealed) {
  start_alarm();
  const shared_array<int> array(1024);  // the heap is not empty
  runtime r(settings_at(isolation::crash));
  for (const int which : {0, 1, 2}) {
    int got[4] = {-3, -3, -3, -3};
    ASSERT_EQ(r.submit(attack_mapping, which, got).wait_outcome(wait_limit_ns).code, status::ok);
    EXPECT_EQ(got[0], which == 0 ? EACCES : 0) << which;
    if (got[1] == -1) GTEST_SKIP() << "this user cannot open /proc/self/map_files";
    EXPECT_EQ(got[1], which == 0 ? EPERM : 0) << which;
    EXPECT_EQ(got[2], EPERM) << which;
    // The heap grows with its arrays, and where it ends harms nobody.
    EXPECT_EQ(got[3], which == 1 ? 0 : EPERM) << which;
  }
  close_and_check(r);
}

// --- Orphans and libraries ---------------------------------------------------------------------

const auto fork_procedure = define("fault.fork", [](result<int> pid) { pid = fork(); });

// The child has neither lane nor heap: it cannot go on as a second worker.
TEST(security, what_a_task_forks_is_no_worker) {
  start_alarm();
  runtime r(settings_at(isolation::crash));
  for (int i = 0; i < 10; ++i) {
    int pid = 0;
    ASSERT_EQ(r.submit(fork_procedure, pid).wait_outcome(wait_limit_ns).code, status::ok);
    EXPECT_GT(pid, 0) << "the child answered";
    EXPECT_TRUE(is_usable(r));
  }
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns).code, status::ok);
  EXPECT_EQ(r.count().completed, 20u);
  close_and_check(r);
}

const auto throw_procedure = define("fault.throw", [] {
  std::printf("a word from a confined worker\n");
  throw std::bad_alloc();
});
const auto abort_procedure = define("fault.abort", [] { std::abort(); });

TEST_P(hostile_test, exceptions_output_and_abort_work_as_elsewhere) {
  runtime r(settings());
  const outcome thrown = r.submit(throw_procedure).wait_outcome(wait_limit_ns);
  EXPECT_EQ(thrown.code, status::task_failed) << text_of(thrown);
  const outcome aborted = r.submit(abort_procedure).wait_outcome(wait_limit_ns);
  EXPECT_EQ(aborted.code, status::poison);
  EXPECT_NE(text_of(aborted).find("SIGABRT"), std::string::npos) << text_of(aborted);
  close_and_check(r);
}

}  // namespace

}  // namespace lev::test
