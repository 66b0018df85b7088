// Procedures of libraries that the host has opened: workers find them there, and keep them.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fault/hostile.hpp"

namespace lev::test {

namespace {

// A function of late_library.cpp as a procedure; the library is opened by that path.
template <class... Values>
procedure<void(Values...)> define_in(const std::string& path, const char* function,
                                     const char* name) {
  void* library = dlopen(path.c_str(), RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return {};
  return {define_raw<Values...>(name, reinterpret_cast<body>(dlsym(library, function))).id};
}

using triple_procedure = procedure<void(std::int64_t, result<std::int64_t>)>;
triple_procedure define_triple(const std::string& path, const char* name) {
  return define_in<std::int64_t, result<std::int64_t>>(path, "fault_triple", name);
}

// A folder that is removed with this object.
class temporary_folder {
 public:
  temporary_folder() { EXPECT_NE(mkdtemp(path_), nullptr); }
  ~temporary_folder() { std::filesystem::remove_all(path_); }
  temporary_folder(temporary_folder&&) = delete;
  std::string copy_of_library(const std::string& name) const {
    const std::string path = std::string(path_) + "/" + name;
    std::filesystem::copy_file(FAULT_LIBRARY, path);
    return path;
  }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/leveret-test-XXXXXX";
};

TEST(library, confined_workers_are_replaced_for_a_new_one) {
  start_alarm();
  runtime r(settings_at(isolation::confined, 2));
  ASSERT_TRUE(is_usable(r));
  const triple_procedure triple = define_triple(FAULT_LIBRARY, "fault.triple");
  for (std::int64_t i = 0; i < 50; ++i) {
    std::int64_t got = 0;
    const outcome o = r.submit(triple, i, got).wait_outcome(wait_limit_ns);
    ASSERT_EQ(o.code, status::ok) << text_of(o);
    ASSERT_EQ(got, 3 * i);
  }
  close_and_check(r);
}

// The first submit of a procedure looks for its library, by a thread that is to be cancelled.
struct last_submit {
  runtime* home;
  triple_procedure triple;
  status code = status::pending;
};
void* make_last_submit(void* of) {
  auto& last = *static_cast<last_submit*>(of);
  pthread_cancel(pthread_self());
  std::int64_t got = 0;
  last.code = last.home->submit(last.triple, 14, got).wait_outcome(wait_limit_ns).code;
  pthread_testcancel();
  return nullptr;
}

TEST(library, is_found_by_a_thread_that_is_cancelled) {
  start_alarm();
  const triple_procedure triple = define_triple(FAULT_LIBRARY, "fault.cancelled");
  for (const isolation level : {isolation::crash, isolation::confined}) {
    runtime r(settings_at(level, 2));
    ASSERT_TRUE(is_usable(r));
    last_submit last{&r, triple};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, &make_last_submit, &last), 0);
    void* end = nullptr;
    ASSERT_EQ(pthread_join(thread, &end), 0);
    EXPECT_EQ(end, PTHREAD_CANCELED);
    EXPECT_EQ(last.code, status::ok) << status_name(last.code);
    close_and_check(r);
  }
}

// A plug-in may be opened by a name in the working directory, and a daemon leaves that.
TEST(library, is_found_when_its_folder_is_no_longer_the_working_directory) {
  start_alarm();
  const std::filesystem::path before = std::filesystem::current_path();
  const temporary_folder folder;
  folder.copy_of_library("plugin.so");
  std::filesystem::current_path(folder.path());
  const triple_procedure triple = define_triple("./plugin.so", "fault.relative");
  std::filesystem::current_path(before);
  for (const isolation level : {isolation::crash, isolation::confined}) {
    runtime r(settings_at(level, 2));
    std::int64_t got = 0;
    const outcome o = r.submit(triple, 14, got).wait_outcome(wait_limit_ns);
    EXPECT_EQ(o.code, status::ok) << text_of(o);
    EXPECT_EQ(got, 42);
  }
}

// Each file is a library of its own, with a count of its own.
TEST(library, stays_in_a_worker_however_many_there_are) {
  start_alarm();
  constexpr int count = 40;
  const temporary_folder folder;
  std::vector<procedure<void(result<std::int64_t>)>> all;
  for (int i = 0; i < count; ++i) {
    const std::string name = "fault.kept_" + std::to_string(i);
    all.push_back(define_in<result<std::int64_t>>(folder.copy_of_library(name + ".so"),
                                                  "fault_calls", name.c_str()));
  }
  runtime r(settings_at(isolation::crash, 1));
  for (std::int64_t turn = 1; turn <= 2; ++turn) {
    for (const auto& calls : all) {
      std::int64_t got = 0;
      const outcome o = r.submit(calls, got).wait_outcome(wait_limit_ns);
      ASSERT_EQ(o.code, status::ok) << text_of(o);
      EXPECT_EQ(got, turn);
    }
  }
  close_and_check(r);
}

}  // namespace

}  // namespace lev::test
