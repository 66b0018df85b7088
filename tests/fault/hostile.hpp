// Common parts of the tests of hostile bodies: runtimes whose workers are processes at some level,
// and the way from a body to its lane.
#pragma once

#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <csetjmp>
#include <csignal>
#include <string>

#include "machines/processes/lane.hpp"
#include "support/environment.hpp"
#include "support/leaks.hpp"
#include "support/machine_test.hpp"

namespace lev::test {

constexpr std::int64_t wait_limit_ns = 40'000'000'000;

// Where a body goes on whose handler of a signal found that there is no memory.
inline sigjmp_buf after_fault;

inline config settings_at(isolation level, int workers = 1) {
  config c;
  c.machine = "processes";
  c.workers = workers;
  c.processes.isolation = level;
  c.tickets = 256;
  c.host_threads = 4;
  // Workers that are not confined are believed when they say that they did nothing.
  if (level == isolation::crash) c.processes.restarts_max = 1'000'000;
  return c;
}

// A task of an honest procedure comes back with what it should.
inline const auto add_procedure = define(
    "fault.add", [](std::int64_t a, std::int64_t b, result<std::int64_t> sum) { sum = a + b; });

// The pieces of its hook are in no order that Leveret knows.
inline unsigned cut_in_two(const descriptor& whole, descriptor* pieces, unsigned) {
  const std::uint64_t half = whole.arguments[0].row_bytes / 2 / sizeof(int) * sizeof(int);
  for (unsigned i = 0; i < 2; ++i) pieces[i] = whole;
  pieces[0].arguments[0].row_bytes = half;
  pieces[1].arguments[0].address += half;
  pieces[1].arguments[0].row_bytes -= half;
  return 2;
}
inline const auto add_by_hook_procedure = define(
    "fault.add_by_hook",
    [](inout<int> x) {
      for (int& element : x) ++element;
    },
    cut_in_two);

inline const auto die_procedure = define("fault.die_at_once", [] { raise(SIGKILL); });

inline bool is_usable(runtime& r) {
  std::int64_t sum = 0;
  return r.submit(add_procedure, std::int64_t{40}, std::int64_t{2}, sum)
                 .wait_outcome(wait_limit_ns)
                 .code == status::ok &&
         sum == 42;
}

inline std::string text_of(const outcome& o) {
  if (o.exception == nullptr) return "";
  try {
    std::rethrow_exception(o.exception);
  } catch (const std::exception& e) {
    return e.what();
  }
}

inline void close_and_check(runtime& r) {
  ASSERT_EQ(r.close(wait_limit_ns), status::ok);
  expect_nothing_leaked(r);
}

// The lane of the worker that a body runs in: its arguments lie in it, and lanes are placed so.
inline processes::lane<>& lane_of(const call& c) {
  constexpr std::uintptr_t place_step = std::uintptr_t{1} << 22;
  const auto address = reinterpret_cast<std::uintptr_t>(c.arguments);
  return *reinterpret_cast<processes::lane<>*>(address / place_step * place_step);
}
inline std::uint64_t value_of(const call& c, unsigned i) {
  return c.arguments[i].address;
}

template <class... Values>
procedure<void(Values...)> define_raw(const char* name, body run) {
  static constexpr kind kinds[] = {detail::parameter<Values>::what...};
  procedure_info info;
  info.name = name;
  info.run = run;
  info.kinds = kinds;
  info.kind_count = sizeof...(Values);
  return {detail::register_or_throw(info)};
}

}  // namespace lev::test
