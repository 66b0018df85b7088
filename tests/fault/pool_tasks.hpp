// The tasks of hosts that do what a seed says (pool_script.cpp): innocent ones, and those that end
// their workers.
#pragma once

#include <leveret/leveret.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace lev::test {

using word = std::int64_t;

inline void pass_time(word us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) {
  }
}
[[noreturn]] inline void never_end() {
  for (volatile bool goes_on = true; goes_on;) {
  }
  std::abort();
}

inline void square_all(word us, in<word> x, out<word> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
  pass_time(us);
}
inline const auto do_square = define("script.square", square_all);
inline const auto do_square_row =
    define("script.square_row", [](word x, inout<word> y) { y[0] = x * x; });
inline const auto do_add_one = define("script.add_one", [](word us, inout<word> x) {
  pass_time(us);
  for (word& v : x) ++v;
});
struct word_of {
  word* place;
};
inline const auto do_once = [] {
  procedure_info info;
  static const kind kinds[] = {kind::value};
  info.name = "script.once";
  info.run = [](const call& c) {
    __atomic_fetch_add(reinterpret_cast<word*>(c.arguments[0].address), 1, __ATOMIC_SEQ_CST);
    return 0;
  };
  info.kinds = kinds;
  info.kind_count = 1;
  info.may_rerun = false;
  procedure<void(word_of)> p;
  if (register_procedure(info, &p.id) != status::ok) std::abort();
  return p;
}();
inline const auto do_refuse = define("script.refuse", [](word us) {
  pass_time(us);
  throw std::runtime_error("it does not want to");
});
inline const auto do_hang = define("script.hang", [](out<word> begun) {
  __atomic_store_n(&begun[0], 1, __ATOMIC_SEQ_CST);
  never_end();
});
// How do_crash ends its worker; the first two also where it is confined.
constexpr const char* crashes[] = {"signal 11 (SIGSEGV)", "it called exit(3)", "signal 6 (SIGABRT)",
                                   "signal 9 (SIGKILL)", "it called exit(0)"};
constexpr std::uint32_t crashes_of_confined = 2;
inline const auto do_crash = define("script.crash", [](word how, word us) {
  pass_time(us);
  if (how == 0) *reinterpret_cast<volatile int*>(us + 8) = 1;
  if (how == 1) _exit(3);
  if (how == 2) std::abort();
  if (how == 3) raise(SIGKILL);
  std::exit(0);
});

}  // namespace lev::test
