// Programs that are started again as zygotes: which are, by whom, and what their static objects do
// then.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "fault/family.hpp"
#include "machines/processes/zygote.hpp"
#include "support/environment.hpp"

namespace lev::test {
namespace {

constexpr uid_t somebody = 65'533;
constexpr uid_t somebody_else = 65'534;

// The output of a program, and how it ended.
struct told {
  std::string text;
  int how = -1;
};

std::string read_all(int file) {
  std::string text;
  char part[512];
  for (ssize_t n; (n = read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  return text;
}

// Runs `program` in a process in which `prepare` was called before.
told run(const std::string& program, const std::function<void()>& prepare) {
  int back[2];
  EXPECT_EQ(pipe2(back, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(back[1], STDOUT_FILENO);
    dup2(back[1], STDERR_FILENO);
    prepare();
    execl(program.c_str(), program.c_str(), nullptr);
    _exit(127);
  }
  close(back[1]);
  told t;
  t.text = read_all(back[0]);
  close(back[0]);
  EXPECT_EQ(waitpid(child, &t.how, 0), child);
  return t;
}

// A folder from which any user can start programs.
class open_folder {
 public:
  open_folder() {
    char name[] = "/tmp/leveret-test-XXXXXX";
    path_ = mkdtemp(name);
    chmod(name, 0755);
  }
  ~open_folder() { std::filesystem::remove_all(path_); }
  open_folder(open_folder&&) = delete;

  const std::string& path() const { return path_; }
  std::string copy(const std::string& file, mode_t mode = 0755) const {
    const std::string to = path_ + "/" + std::filesystem::path(file).filename().string();
    std::filesystem::copy_file(file, to);
    EXPECT_EQ(chmod(to.c_str(), mode), 0);
    return to;
  }

 private:
  std::string path_;
};

void become(uid_t user) {
  if (geteuid() == 0 && (setgid(user) != 0 || setuid(user) != 0)) _exit(126);
}

// A program that starts more is at fault, and cannot do harm. The limit is one of the user's, and
// counts threads.
void limit_processes() {
  const rlim_t most = geteuid() == 0 ? 40 : 2'000;
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_NPROC, &limit) != 0) _exit(126);
}

void expect_static_runtimes_work(const std::string& program, const std::string& libraries) {
  adopt_orphans();
  const told t = run(program, [&] {
    setenv("LD_LIBRARY_PATH", libraries.c_str(), 1);
    limit_processes();
    become(somebody);
  });
  EXPECT_EQ(t.how, 0) << t.text;
  EXPECT_EQ(t.text, "main ends\n");
  EXPECT_EQ(orphans_left({}), 0);
}

TEST(identity, static_runtimes_start_one_zygote) {
  const open_folder folder;
  expect_static_runtimes_work(folder.copy(STATIC_RUNTIME), "");
}

// Its procedures' code and its constructors are found without a loader.
#ifdef STATIC_PROGRAM
TEST(identity, static_runtimes_start_one_zygote_in_a_fully_static_program) {
  const open_folder folder;
  expect_static_runtimes_work(folder.copy(STATIC_PROGRAM), "");
}
#endif

// /proc/self/exe then names the loader, not the program.
TEST(identity, a_program_that_its_loader_was_given_is_told_to_start_by_its_own_path) {
  Dl_info loader{};
  const auto* base = reinterpret_cast<const void*>(getauxval(AT_BASE));
  ASSERT_TRUE(base != nullptr && dladdr(base, &loader) != 0);
  const told t = run(STATIC_RUNTIME,
                     [&] { execl(loader.dli_fname, loader.dli_fname, STATIC_RUNTIME, nullptr); });
  EXPECT_NE(t.text.find("start it by its own path"), std::string::npos) << t.text;
}

// Started again it would do everything once more: nothing makes a zygote of it before its main().
TEST(identity, a_program_that_has_opened_a_library_with_leveret_is_not_started_again) {
  if (is_sanitized()) GTEST_SKIP() << "the program would have to be sanitized, too";
  const told t = run(LATE_HOST, [] { execl(LATE_HOST, LATE_HOST, THREAD_PLUGIN, nullptr); });
  EXPECT_EQ(t.text.find("main begins\n"), 0u) << t.text;
  EXPECT_EQ(t.text.rfind("main begins\n"), 0u) << t.text;
  EXPECT_NE(t.text.find("dlopen"), std::string::npos) << t.text;
}

#ifdef SHARED_RUNTIME
TEST(identity, static_runtimes_start_one_zygote_where_leveret_is_a_shared_library) {
  const open_folder folder;
  folder.copy(SHARED_LEVERET);
  expect_static_runtimes_work(folder.copy(SHARED_RUNTIME), folder.path());
}
#endif

// A socket of any kind as the zygote's, its other end in `other`.
void name_socket(int type, int* other) {
  int ends[2];
  if (socketpair(AF_UNIX, type, 0, ends) != 0) _exit(126);
  dup2(ends[1], 9);
  setenv(processes::zygote_variable, "9", 1);
  if (other != nullptr) *other = ends[0];
}

TEST(identity, a_variable_that_names_no_zygotes_socket_is_passed_over) {
  for (const char* value : {"", "0", "9", "-1", "9x", "99999999999999999999"}) {
    const told t = run(STATIC_RUNTIME, [&] { setenv(processes::zygote_variable, value, 1); });
    EXPECT_EQ(t.text, "main ends\n") << value;
  }
  const told stream = run(STATIC_RUNTIME, [] { name_socket(SOCK_STREAM, nullptr); });
  EXPECT_EQ(stream.text, "main ends\n");
}

TEST(identity, a_socket_of_another_user_is_passed_over) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes a socket of another user's";
  const told t = run(STATIC_RUNTIME, [] {
    if (seteuid(somebody_else) != 0) _exit(126);
    name_socket(SOCK_SEQPACKET, nullptr);
    if (seteuid(0) != 0) _exit(126);
  });
  EXPECT_EQ(t.text, "main ends\n");
}

// The user of a set-user-id program would tell its zygote what code to run.
TEST(identity, a_set_user_id_program_is_nobodys_zygote) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes a program that has another user's rights";
  const open_folder folder;
  const std::string program = folder.copy(PRIVILEGED_HOST, 04755);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
  processes::introduction about;
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int files[] = {nothing, nothing, nothing};
  ASSERT_TRUE(processes::send_message(ends[0], about, files, 0));
  const told t = run(program, [&] {
    become(somebody_else);
    // Its own pair: the one above was made by root, which is the program's user.
    dup2(ends[1], 9);
    setenv(processes::zygote_variable, "9", 1);
    setenv("LEVERET_WORKER_SOCKET", "9", 1);
  });
  processes::report r;
  int file = -1;
  EXPECT_LT(processes::receive_message(ends[0], r, {&file, 1}), 0)
      << "it has answered like a zygote";
  for (const int f : {ends[0], ends[1], nothing}) close(f);
  if (t.text.find("main 65534 0 ") != 0) {
    EXPECT_EQ(t.text.find("main 65534 65534 "), 0u) << t.text;
    GTEST_SKIP() << "set-user-id programs get no rights in " << folder.path();
  }
  EXPECT_NE(t.text.find("set-user-id"), std::string::npos) << t.text;
  EXPECT_NE(t.text.find("refused 19"), std::string::npos) << t.text;
}

told give_up_rights(const char* when) {
  return run(RIGHTS_HOST, [&] {
    limit_processes();
    execl(RIGHTS_HOST, RIGHTS_HOST, when, nullptr);
  });
}

// As a daemon does that root has started. Its workers are root's.
TEST(identity, a_host_that_has_given_up_its_user_ends_its_workers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  EXPECT_EQ(give_up_rights("user").text, "main begins\noverran\ncancelled\npoison\nok\n");
}

// What it starts is as careful as a set-user-id program, and must not run main() once more.
TEST(identity, a_host_with_two_users_is_told_so_and_not_started_again) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  for (const char* when : {"before", "after"}) {
    const told t = give_up_rights(when);
    EXPECT_EQ(t.text.rfind("main begins\n"), 0u) << t.text;
    EXPECT_NE(t.text.find("seteuid"), std::string::npos) << t.text;
  }
}

}  // namespace
}  // namespace lev::test
