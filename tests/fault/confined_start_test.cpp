// How confined workers begin: with one thread, with standard output and error of their host or
// nothing in their place, and without what the host knows from its start.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "fault/hostile.hpp"

extern char** environ;

namespace lev::test {

namespace {

class confined_start : public testing::Test {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
};

// --- Libraries that do something odd while they are loaded -------------------------------------

using answer_procedure = procedure<void(result<std::int64_t>)>;

body find_odd(const std::string& kind, const char* function) {
  const std::string path = ODD_LIBRARIES "/odd_library_" + kind + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return library == nullptr ? nullptr : reinterpret_cast<body>(dlsym(library, function));
}
answer_procedure load_odd(const std::string& kind) {
  const body run = find_odd(kind, "odd_answer");
  return {define_raw<result<std::int64_t>>(("fault." + kind).c_str(), run).id};
}

// Its tasks are refused by its name, those of others go on, and no worker is the worse for it: each
// leaves once for each library that comes while it is there.
void expect_refused(const std::string& kind, const std::string& why) {
  config c = settings_at(isolation::confined, 2);
  c.processes.max_attempts = 1;
  runtime r(c);
  ASSERT_TRUE(is_usable(r));
  const answer_procedure odd = load_odd(kind);
  const answer_procedure good = load_odd("threaded_briefly");
  std::int64_t got = -1;
  for (int i = 0; i < 20; ++i) {
    const outcome o = r.submit(odd, got).wait_outcome(wait_limit_ns);
    EXPECT_EQ(o.code, status::bad_procedure);
    const std::string text = text_of(o);
    EXPECT_NE(text.find("odd_library_" + kind + ".so " + why), std::string::npos) << text;
    EXPECT_EQ(got, -1);
    if (i == 10) {
      EXPECT_EQ(r.submit(die_procedure).wait_outcome().code, status::poison);
    }
    EXPECT_TRUE(is_usable(r));
  }
  EXPECT_LE(r.count().deaths, 2u + 1u);
  EXPECT_EQ(r.submit(good, got).wait_outcome(wait_limit_ns).code, status::ok);
  EXPECT_EQ(got, 1);
  EXPECT_LE(r.count().deaths, 2u + 1u + 2u);
  EXPECT_EQ(r.submit(odd, got).wait_outcome(wait_limit_ns).code, status::bad_procedure);
  close_and_check(r);
}

TEST_F(confined_start, a_library_that_starts_a_thread_is_refused) {
  expect_refused("threaded", "starts threads while it is loaded");
}
TEST_F(confined_start, a_library_that_ends_its_process_is_refused) {
  expect_refused("aborting", "ends its process while it is loaded (signal 6)");
}
TEST_F(confined_start, a_library_that_is_never_loaded_is_refused) {
  if (!is_deep()) GTEST_SKIP() << "takes ten seconds (LEVERET_DEEP=1)";
  expect_refused("endless", "is not loaded after 10 s");
}

TEST_F(confined_start, threads_that_are_over_are_none) {
  const answer_procedure brief = load_odd("threaded_briefly");
  runtime r(settings_at(isolation::confined, 2));
  for (int i = 0; i < 10; ++i) {
    std::int64_t got = 0;
    EXPECT_EQ(r.submit(brief, got).wait_outcome(wait_limit_ns).code, status::ok);
  }
  EXPECT_LE(r.count().deaths, 2u);
  close_and_check(r);
}

// A program's main thread may end before the others; /proc/self is that thread's. Returns what
// `what` returns in such a program; 255 or more: it did not return.
template <class What>
int said_without_main_thread(What&& what) {
  const pid_t host = fork();
  if (host == 0) {
    std::thread([&] {
      while (access("/proc/self/fd/0", F_OK) == 0) std::this_thread::yield();
      try {
        _exit(what());
      } catch (const error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        _exit(255);
      }
    }).detach();
    syscall(SYS_exit, 0);  // of this thread
  }
  int how = -1;
  EXPECT_EQ(waitpid(host, &how, 0), host);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 256 + how;
}

TEST_F(confined_start, a_host_whose_main_thread_has_ended_has_workers) {
  EXPECT_EQ(said_without_main_thread([] {
              runtime r(settings_at(isolation::confined));
              return is_usable(r) ? 0 : 1;
            }),
            0);
}

// Or its worker would call what the new file has where the function was.
TEST_F(confined_start, a_host_whose_main_thread_has_ended_knows_a_library_that_was_replaced) {
  char folder[] = "/tmp/leveret-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/plugin.so";
  std::filesystem::copy_file(FAULT_LIBRARY, path);
  EXPECT_EQ(said_without_main_thread([&] {
              void* library = dlopen(path.c_str(), RTLD_NOW);
              const auto triple = define_raw<std::int64_t, result<std::int64_t>>(
                  "fault.replaced", reinterpret_cast<body>(dlsym(library, "fault_triple")));
              std::filesystem::copy_file(FAULT_LIBRARY, path + ".new");
              std::filesystem::rename(path + ".new", path);
              runtime r(settings_at(isolation::crash));
              std::int64_t got = 0;
              const procedure<void(std::int64_t, result<std::int64_t>)> p{triple.id};
              const outcome o = r.submit(p, std::int64_t{14}, got).wait_outcome(wait_limit_ns);
              return static_cast<int>(o.code);
            }),
            static_cast<int>(status::bad_procedure));
  std::filesystem::remove_all(folder);
}

// A library is trusted until it is loaded. What it has found out until then helps its bodies
// little.
TEST_F(confined_start, the_board_is_not_to_be_had) {
  const auto spoil =
      define_raw<int, result<std::int64_t>>("fault.spoil_board", find_odd("looking", "odd_spoil"));
  const procedure<void(int, result<std::int64_t>)> p{spoil.id};
  runtime r(settings_at(isolation::confined));
  std::int64_t code = -1;
  const outcome asked = r.submit(p, 0, code).wait_outcome(wait_limit_ns);
  EXPECT_EQ(asked.code, status::ok) << text_of(asked);
  EXPECT_EQ(code, EACCES);
  const outcome o = r.submit(p, 1, code).wait_outcome(wait_limit_ns);
  EXPECT_EQ(o.code, status::poison);
  EXPECT_NE(text_of(o).find("SIGSEGV"), std::string::npos) << text_of(o);
  EXPECT_TRUE(is_usable(r));
  close_and_check(r);
}

// --- Standard input, output and error ----------------------------------------------------------

// Catches the output to a file as long as it lives.
class catcher {
 public:
  explicit catcher(int file) : file_(file), before_(dup(file)) {
    EXPECT_EQ(pipe(ends_), 0);
    dup2(ends_[1], file);
  }
  ~catcher() { finish(); }
  catcher(catcher&&) = delete;
  std::string finish() {
    if (before_ < 0) return "";
    dup2(before_, file_);
    close(before_);
    close(ends_[1]);
    before_ = -1;
    std::string text;
    char part[256];
    for (ssize_t n; (n = read(ends_[0], part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(n));
    close(ends_[0]);
    return text;
  }

 private:
  int file_;
  int before_;
  int ends_[2] = {-1, -1};
};

TEST_F(confined_start, a_library_cannot_take_the_place_of_standard_error) {
  const answer_procedure odd = load_odd("taking_output");
  catcher caught(STDERR_FILENO);
  std::int64_t got = 0;
  {
    runtime r(settings_at(isolation::confined));
    EXPECT_EQ(r.submit(odd, got).wait_outcome(wait_limit_ns).code, status::ok);
    close_and_check(r);
  }
  EXPECT_EQ(caught.finish(), "!");
  EXPECT_EQ(got, 1);
}

// The exit status of a host that begins with these files closed. What it and its worker have said,
// on standard output or error or to explain themselves, is in `said`.
int run_host(const char* name, int closed, std::string* said) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t host = fork();
  if (host == 0) {
    dup2(ends[1], 10);
    closefrom(11);
    for (int file = 3; file < 10; ++file) close(file);
    for (int file = 0; file < 3; ++file) {
      dup2(10, file);
      if ((closed >> file & 1) != 0) close(file);
    }
    const std::string path = std::string(ODD_HOSTS "/odd_host_") + name;
    execl(path.c_str(), path.c_str(), "10", nullptr);
    _exit(127);
  }
  close(ends[1]);
  said->clear();
  char part[256];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
    said->append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int how = -1;
  waitpid(host, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

TEST_F(confined_start, hosts_whose_files_are_closed_have_confined_workers) {
  for (int closed = 0; closed < 8; ++closed) {
    std::string said;
    EXPECT_EQ(run_host("never", closed, &said), 0) << closed << " " << said;
    std::string printed;
    if ((closed & 2) == 0) printed = "o";
    if ((closed & 4) == 0) printed += "e";
    if ((closed & 2) == 0) printed += "printed by the host\n";
    EXPECT_EQ(said, printed) << closed;
  }
}

// --- Threads of the program --------------------------------------------------------------------

TEST_F(confined_start, threads_of_the_zygote_are_none_of_a_worker) {
  std::string said;
  EXPECT_EQ(run_host("at_start", 0, &said), 0) << said;
}

TEST_F(confined_start, a_program_whose_forks_start_threads_is_refused) {
  std::string said;
  EXPECT_EQ(run_host("in_forks", 0, &said), 1);
  EXPECT_NE(said.find("confined workers must have one thread"), std::string::npos) << said;
}

// --- What the host knows -----------------------------------------------------------------------

// Whether the 16 bytes whose complement is `wanted` are somewhere from `begin` to `end`, or to
// where there is no memory. Looked for by their complement: they are not here by themselves.
bool is_between(std::uintptr_t begin, std::uintptr_t end, const std::uint64_t (&wanted)[2]) {
  volatile bool is_found = false;
  if (sigsetjmp(after_fault, 1) != 0) return is_found;
  for (std::uintptr_t at = begin; !is_found && at < end; ++at) {
    const auto* p = reinterpret_cast<const volatile unsigned char*>(at);
    const auto* w = reinterpret_cast<const unsigned char*>(wanted);
    unsigned equal = 0;
    while (equal < sizeof wanted && p[equal] == static_cast<unsigned char>(~w[equal])) ++equal;
    is_found = equal == sizeof wanted;
  }
  return is_found;
}

struct search {
  std::uint64_t wanted[2];
  bool is_found;
};

int search_module(dl_phdr_info* info, std::size_t, void* context) {
  auto& s = *static_cast<search*>(context);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD || (h.p_flags & PF_R) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + h.p_vaddr;
    s.is_found |= is_between(begin, begin + h.p_memsz, s.wanted);
  }
  return 0;
}

// All that a body can find without a file: the environment as C libraries know it, the stack with
// what the kernel has put there, the program and its libraries, and the heap.
const auto search_procedure =
    define("fault.search", [](std::uint64_t a, std::uint64_t b, out<int> got) {
      std::signal(SIGBUS, [](int) { siglongjmp(after_fault, 1); });
      std::signal(SIGSEGV, [](int) { siglongjmp(after_fault, 1); });
      search s{{a, b}, false};
      got[0] = 0;
      for (char** e = environ; e != nullptr && *e != nullptr; ++e) ++got[0];
      const auto here = reinterpret_cast<std::uintptr_t>(&s);
      got[1] = is_between(here, ~std::uintptr_t{0}, s.wanted);
      got[2] = is_between(getauxval(AT_EXECFN) / 4096 * 4096, ~std::uintptr_t{0}, s.wanted);
      dl_iterate_phdr(&search_module, &s);
      got[3] = s.is_found;
      const auto top = reinterpret_cast<std::uintptr_t>(sbrk(0));
      constexpr std::uintptr_t most = 64 << 20;
      got[4] = 0;  // downwards, as where it begins is not known
      for (std::uintptr_t at = top - 4096; at > top - most; at -= 4096)
        got[4] |= is_between(at, at + 4096, s.wanted);
    });

class secret_test : public testing::TestWithParam<isolation> {};
INSTANTIATE_TEST_SUITE_P(at, secret_test, testing::Values(isolation::crash, isolation::confined),
                         [](const testing::TestParamInfo<isolation>& i) {
                           return i.param == isolation::crash ? "crash" : "confined";
                         });

// A word of the environment: its name, and all of it as a body looks for it.
TEST_P(secret_test, the_environment_is_no_confined_worker_s) {
  start_alarm();
  std::uint64_t wanted[2] = {0x5a17c0de9e3779b9u ^ static_cast<std::uint64_t>(getpid()),
                             0x8badf00d2545f491u};
  char value[sizeof wanted + 1] = {};
  for (std::size_t i = 0; i < sizeof wanted; ++i) {
    auto& w = reinterpret_cast<unsigned char*>(wanted)[i];
    value[i] = static_cast<char>('a' + w % 26);
    w = static_cast<unsigned char>(~value[i]);
  }
  setenv("LEVERET_TEST_SECRET", value, 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  std::memset(value, 0, sizeof value);
  int got[5] = {-1, -1, -1, -1, -1};
  runtime r(settings_at(GetParam()));
  const outcome o = r.submit(search_procedure, wanted[0], wanted[1], got).wait_outcome();
  ASSERT_EQ(o.code, status::ok) << text_of(o);
  const bool is_confined = GetParam() == isolation::confined;
  EXPECT_EQ(got[0] == 0, is_confined) << got[0] << " variables";
  EXPECT_EQ(got[1], is_confined ? 0 : 1) << "on the stack";
  EXPECT_EQ(got[2], is_confined ? 0 : 1) << "where the kernel has put it";
  EXPECT_EQ(got[3], 0) << "in the program or a library";
  EXPECT_EQ(got[4], 0) << "in the heap";
  close_and_check(r);
  unsetenv("LEVERET_TEST_SECRET");
  unsetenv("OPENBLAS_NUM_THREADS");
  alarm(0);
}

}  // namespace

}  // namespace lev::test
