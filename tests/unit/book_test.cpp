// The book of procedures, as several threads of a host write it.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "machines/processes/book.hpp"
#include "support/machine_test.hpp"

namespace {

// What the loader does to a thread that asks it, while another one is in a dlopen().
thread_local bool waits_for_loader = false;
std::atomic<bool> has_asked{false};
std::atomic<bool> is_loader_free{false};

}  // namespace

// The loader's, as the book asks it.
extern "C" int dladdr1(const void* address, Dl_info* info, void** extra, int what) noexcept {
  using function = int (*)(const void*, Dl_info*, void**, int);
  static const auto next = reinterpret_cast<function>(dlsym(RTLD_NEXT, "dladdr1"));
  while (waits_for_loader && !is_loader_free) {
    has_asked = true;
    std::this_thread::yield();
  }
  return next(address, info, extra, what);
}

namespace lev {
namespace {

const auto first_procedure = define("book.first", [] {});
const auto second_procedure = define("book.second", [] {});

// The constructor of a library that is opened may submit a task: the one that waits for the end of
// the dlopen() must not have what that one needs.
TEST(book, a_thread_that_waits_for_the_loader_keeps_no_other_from_writing) {
  test::start_alarm();
  const auto pages = std::make_unique<processes::book>();
  const auto writer = std::make_unique<processes::book_writer>();
  writer->open(pages.get());
  std::thread waits([&] {
    waits_for_loader = true;
    EXPECT_EQ(writer->write(first_procedure.id), nullptr);
  });
  while (!has_asked) std::this_thread::yield();
  EXPECT_EQ(writer->write(second_procedure.id), nullptr);
  EXPECT_TRUE(writer->has(second_procedure.id));
  EXPECT_FALSE(writer->has(first_procedure.id));
  is_loader_free = true;
  waits.join();
  EXPECT_TRUE(writer->has(first_procedure.id));
  alarm(0);
}

}  // namespace
}  // namespace lev
