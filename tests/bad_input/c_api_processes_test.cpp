// The C API's options for worker processes, each by what happens when its bound is crossed, and
// shared memory.
#include <gtest/gtest.h>
#include <leveret/leveret.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "support/environment.hpp"
#include "support/machine_test.hpp"

namespace lev::test {
namespace {

std::uint64_t* numbers_of(const lev_call* call) {
  return reinterpret_cast<std::uint64_t*>(call->arguments[0].address);
}
int count_and_die(const lev_call* call) {
  __atomic_add_fetch(numbers_of(call), 1, __ATOMIC_SEQ_CST);
  raise(SIGKILL);
  return 0;
}
int spin_on(const lev_call*) {
  for (volatile bool goes_on = true; goes_on;) {
  }
  return 0;
}
int open_file(const lev_call*) {
  const int file = open("/dev/null", O_RDONLY);
  return file < 0 ? 1 : close(file);
}
int take_memory(const lev_call*) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  auto* block = static_cast<char*>(std::malloc(bytes));
  if (block == nullptr) return 7;
  std::memset(block, 1, bytes);
  const int sum = block[0] + block[bytes - 1] - 2;
  std::free(block);
  return sum;
}
int tell_parent(const lev_call* call) {
  *numbers_of(call) = static_cast<std::uint64_t>(getppid());
  return 0;
}
int add_context(const lev_call* call) {
  *numbers_of(call) += *static_cast<const std::uint64_t*>(call->context);
  return 0;
}

lev_procedure_id procedure_of(const char* name, lev_body body, void* context = nullptr,
                              lev_kind kind = LEV_INOUT) {
  lev_procedure_id id = lev_lookup(name);
  if (id == 0) {
    EXPECT_EQ(lev_register(name, body, context, &kind, 1, &id), LEV_OK) << lev_last_message();
  }
  return id;
}

// The worker of a zygote that has one.
pid_t child_of(pid_t parent) {
  pid_t found = 0;
  DIR* d = opendir("/proc");
  while (const dirent* entry = readdir(d)) {
    std::ifstream file(std::string("/proc/") + entry->d_name + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(") ");
    char state = 0;
    int its_parent = 0;
    if (name_end != std::string::npos &&
        std::sscanf(text.c_str() + name_end + 2, "%c %d", &state, &its_parent) == 2 &&
        its_parent == parent && state != 'Z')
      found = std::atoi(entry->d_name);
  }
  closedir(d);
  return found;
}

class c_api_processes : public testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "sanitizers need what these limits take away";
    start_alarm();
    numbers_ = static_cast<std::uint64_t*>(lev_shared_allocate(64));
    ASSERT_NE(numbers_, nullptr);
    options_.machine = "processes";
    options_.workers = 1;
  }
  void TearDown() override {
    if (runtime_ != nullptr) {
      EXPECT_EQ(lev_close(runtime_), LEV_OK);
    }
    lev_shared_free(numbers_);
    alarm(0);
  }
  void open_runtime() { ASSERT_EQ(lev_open(&options_, &runtime_), LEV_OK) << lev_last_message(); }
  lev_status run(lev_procedure_id procedure, lev_outcome* outcome = nullptr,
                 lev_kind kind = LEV_INOUT) {
    lev_argument a = lev_memory(kind, numbers_, sizeof *numbers_, 1);
    lev_ticket t = 0;
    const lev_status s = lev_submit(runtime_, procedure, &a, 1, &t);
    return s != LEV_OK ? s : lev_wait(runtime_, t, LEV_NO_TIMEOUT, outcome);
  }
  std::uint64_t deaths() const {
    lev_counters n;
    EXPECT_EQ(lev_count(runtime_, &n), LEV_OK);
    return n.deaths;
  }

  lev_options options_{};
  lev_runtime* runtime_ = nullptr;
  std::uint64_t* numbers_ = nullptr;
};

TEST_F(c_api_processes, max_attempts) {
  options_.max_attempts = 5;
  open_runtime();
  // What it writes to is in place, so that all attempts can count.
  const lev_procedure_id counts =
      procedure_of("c_api.count_there_and_die", &count_and_die, nullptr, LEV_OUT);
  EXPECT_EQ(run(counts, nullptr, LEV_OUT), LEV_POISON);
  EXPECT_EQ(*numbers_, 5u);
}

TEST_F(c_api_processes, staging) {
  options_.staging = LEV_STAGING_IN_PLACE;
  open_runtime();
  EXPECT_EQ(run(procedure_of("c_api.count_and_die", &count_and_die)), LEV_WORKER_DIED);
  EXPECT_EQ(*numbers_, 1u);
}

TEST_F(c_api_processes, task_ns_max) {
  options_.task_ns_max = 50'000'000;
  open_runtime();
  EXPECT_EQ(run(procedure_of("c_api.spin_on", &spin_on)), LEV_OVERRAN);
}

TEST_F(c_api_processes, worker_cpu_seconds_max) {
  options_.worker_cpu_seconds_max = 1;
  options_.max_attempts = 1;
  open_runtime();
  EXPECT_EQ(run(procedure_of("c_api.spin_on", &spin_on)), LEV_POISON);
}

TEST_F(c_api_processes, worker_bytes_max) {
  const lev_procedure_id take = procedure_of("c_api.take_memory", &take_memory);
  options_.worker_bytes_max = std::uint64_t{128} << 20;
  open_runtime();
  lev_outcome o;
  EXPECT_EQ(run(take, &o), LEV_TASK_FAILED);
  EXPECT_EQ(o.task_code, 7);
  ASSERT_EQ(lev_close(runtime_), LEV_OK);
  options_.worker_bytes_max = 0;
  open_runtime();
  EXPECT_EQ(run(take), LEV_OK);
}

TEST_F(c_api_processes, pool) {
  options_.pool = "no name";
  EXPECT_EQ(lev_open(&options_, &runtime_), LEV_BAD_CONFIG);
  EXPECT_EQ(std::strncmp(lev_last_message(), "config.pool: ", 13), 0) << lev_last_message();
  const std::string name = "test-c-" + std::to_string(getpid());
  options_.pool = name.c_str();
  open_runtime();
  lev_runtime* other = nullptr;
  ASSERT_EQ(lev_open(&options_, &other), LEV_OK);  // the same workers
  options_.pool = nullptr;                         // the name was copied
  EXPECT_EQ(run(procedure_of("c_api.count_and_die", &count_and_die)), LEV_POISON);
  lev_counters of_other;
  do {  // its service learns in its own time of those that die while it has a lane to them
    ASSERT_EQ(lev_count(other, &of_other), LEV_OK);
  } while (of_other.deaths == 0);
  EXPECT_EQ(of_other.reruns, 0u);
  EXPECT_EQ(lev_close(other), LEV_OK);
}

TEST_F(c_api_processes, isolation) {
  const lev_procedure_id opens = procedure_of("c_api.open_file", &open_file);
  open_runtime();
  EXPECT_EQ(run(opens), LEV_OK);
  ASSERT_EQ(lev_close(runtime_), LEV_OK);
  options_.isolation = LEV_ISOLATION_CONFINED;
  open_runtime();
  EXPECT_EQ(run(opens), LEV_POISON);
  ASSERT_EQ(lev_close(runtime_), LEV_OK);
  runtime_ = nullptr;
  options_.isolation = static_cast<lev_isolation>(2);
  EXPECT_EQ(lev_open(&options_, &runtime_), LEV_BAD_CONFIG);
  EXPECT_NE(std::strstr(lev_last_message(), "isolation"), nullptr) << lev_last_message();
}

TEST_F(c_api_processes, restarts_max) {
  options_.restarts_max = 1;
  open_runtime();
  const lev_procedure_id tell = procedure_of("c_api.tell_parent", &tell_parent);
  ASSERT_EQ(run(tell), LEV_OK);
  const auto zygote = static_cast<pid_t>(*numbers_);
  // The first has done something; the second may die idle, the third may not.
  for (std::uint64_t i = 0; i < 3; ++i) {
    pid_t worker = 0;
    while ((worker = child_of(zygote)) == 0) poll(nullptr, 0, 1);
    kill(worker, SIGKILL);
    while (deaths() <= i) poll(nullptr, 0, 1);
  }
  EXPECT_EQ(run(tell), LEV_POOL_DOWN);
}

TEST_F(c_api_processes, a_context_is_null_or_shared) {
  auto* context = static_cast<std::uint64_t*>(lev_shared_allocate(sizeof(std::uint64_t)));
  ASSERT_NE(context, nullptr);
  const lev_procedure_id shared = procedure_of("c_api.shared_context", &add_context, context);
  std::uint64_t local = 1;
  const lev_procedure_id of_host = procedure_of("c_api.local_context", &add_context, &local);
  open_runtime();
  *context = 40;
  *numbers_ = 2;
  EXPECT_EQ(run(shared), LEV_OK) << lev_last_message();
  EXPECT_EQ(*numbers_, 42u);
  EXPECT_EQ(run(of_host), LEV_NOT_SUPPORTED);
  EXPECT_NE(std::strstr(lev_last_message(), "context"), nullptr) << lev_last_message();
  ASSERT_EQ(lev_close(runtime_), LEV_OK);
  runtime_ = nullptr;
  lev_shared_free(context);
}

TEST_F(c_api_processes, shared_memory) {
  constexpr std::size_t bytes = 1000;
  auto* block = static_cast<char*>(lev_shared_allocate(bytes));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 128, 0u);
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], 0);
  EXPECT_EQ(lev_is_shared(block, bytes), 1);
  EXPECT_EQ(lev_is_shared(block, SIZE_MAX / 2), 0);
  EXPECT_EQ(lev_is_shared(&bytes, 1), 0);
  EXPECT_EQ(lev_is_shared(nullptr, 0), 0);
  lev_shared_free(block);
  lev_shared_free(nullptr);
  EXPECT_EQ(lev_shared_allocate(0), nullptr);
  EXPECT_EQ(lev_shared_allocate(SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace lev::test
