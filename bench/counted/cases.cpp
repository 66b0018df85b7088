// The programs that callgrind counts; see cases.hpp.
#include "counted/cases.hpp"

#include <leveret/leveret.hpp>

#include <atomic>
#include <cstring>
#include <stdexcept>

namespace bench::counted {
namespace {

constexpr std::size_t batch = 32;  // tickets that are waited for together

lev::runtime* tasks_runtime = nullptr;  // what tasks submit to
std::atomic<int> is_held{0};            // written by the held worker, read by the host
std::atomic<int> may_go{0};             // written by the host, read by the held worker

void hold() {
  is_held.store(1);
  is_held.notify_all();
  may_go.wait(0);
}
void nothing() {}
void nothing_with_memory(lev::in<double>, lev::in<double>, lev::inout<double>) {}

using fib_procedure = lev::procedure<void(std::uint32_t, lev::result<std::uint64_t>)>;
fib_procedure fib_of_tasks;

std::uint64_t fib(std::uint32_t n) {
  if (n < 2) return n;
  std::uint64_t first = 0;
  lev::ticket child = tasks_runtime->submit(fib_of_tasks, n - 1, first);
  const std::uint64_t second = fib(n - 2);
  child.wait();
  return first + second;
}
void fib_task(std::uint32_t n, lev::result<std::uint64_t> value) {
  value = fib(n);
}
std::uint64_t plain_fib(unsigned n) {
  std::uint64_t a = 0, b = 1;
  for (; n != 0; --n) b += a, a = b - a;
  return a;
}

void expect(bool right) {
  if (!right) throw std::runtime_error("wrong answer in a counted program");
}

struct line {
  alignas(64) double values[8];
  double* data() noexcept { return values; }
  std::size_t size() const noexcept { return 8; }
};

template <class Submit>
void in_batches(unsigned count, Submit&& submit) {
  for (unsigned i = 0; i < count / batch; ++i) {
    lev::ticket tickets[batch];
    for (lev::ticket& t : tickets) t = submit();
    expect(lev::wait_all(tickets, batch).code == lev::status::ok);
  }
}

void run_empty(lev::runtime& runtime, unsigned count) {
  const auto p = lev::define("bench.counted_nothing", nothing);
  in_batches(count, [&] { return runtime.submit(p); });
}
void run_three_arrays(lev::runtime& runtime, unsigned count) {
  static line a{}, b{}, c{};
  const auto p = lev::define("bench.counted_memory", nothing_with_memory);
  in_batches(count, [&] { return runtime.submit(p, a, b, c); });
}
// More than a task's slot has room for.
void nothing_with_five(int, int, int, int, int) {}
void run_five_arguments(lev::runtime& runtime, unsigned count) {
  const auto p = lev::define("bench.counted_five", nothing_with_five);
  in_batches(count, [&] { return runtime.submit(p, 1, 2, 3, 4, 5); });
}
void run_fib(lev::runtime& runtime, unsigned n) {
  std::uint64_t value = 0;
  runtime.submit(fib_of_tasks, n, value).wait();
  expect(value == plain_fib(n));
}
void run_bulk(lev::runtime& runtime, unsigned count) {
  const auto p = lev::define("bench.counted_nothing", nothing);
  const auto make = [p](std::size_t, lev::descriptor& d) { d.procedure = p.id; };
  runtime.submit_bulk(lev::from_any_thread, count, make).wait();
}
void run_bulk_in_order(lev::runtime& runtime, unsigned count) {
  const auto p = lev::define("bench.counted_nothing", nothing);
  runtime.submit_bulk(count, [p](std::size_t, lev::descriptor& d) { d.procedure = p.id; }).wait();
}

// A column of values, as any of what a bulk may have.
void nothing_with_value(std::uint32_t) {}
void run_bulk_columns(lev::runtime& runtime, unsigned count) {
  static std::uint32_t column[1 << 17];
  const auto p = lev::define("bench.counted_value", nothing_with_value);
  runtime.submit_bulk(count, p, lev::each(column, 1)).wait();
}

// Tasks that declare memory: the next ones' is asked for while one runs.
void nothing_with_row(lev::inout<double>) {}
void run_bulk_ahead(lev::runtime& runtime, unsigned count) {
  static line rows[256]{};
  const auto p = lev::define("bench.counted_row", nothing_with_row);
  const auto make = [p](std::size_t i, lev::descriptor& d) {
    double* const row = rows[i % 256].values;
    if (d.argument_count == 0) d = lev::pack(p, lev::view(row, 8));
    d.arguments[0].address = reinterpret_cast<std::uintptr_t>(row);
  };
  runtime.submit_bulk(lev::from_any_thread, count, make).wait();
}

// A matrix of `blocks` times `blocks` blocks is factored, without the arithmetic: each task names
// one to three blocks, and follows those that have used them.
void nothing_with_block(lev::inout<double>) {}
void nothing_with_two(lev::in<double>, lev::inout<double>) {}
void run_ordered(lev::runtime& runtime, unsigned blocks) {
  static line matrix[16][16]{};
  const auto factor = lev::define("bench.counted_block", nothing_with_block);
  const auto solve = lev::define("bench.counted_two", nothing_with_two);
  const auto update = lev::define("bench.counted_memory", nothing_with_memory);
  lev::ordered tasks(runtime);
  for (unsigned k = 0; k < blocks; ++k) {
    tasks.submit(factor, matrix[k][k]);
    for (unsigned i = k + 1; i < blocks; ++i) tasks.submit(solve, matrix[k][k], matrix[i][k]);
    for (unsigned i = k + 1; i < blocks; ++i)
      for (unsigned j = k + 1; j <= i; ++j)
        tasks.submit(update, matrix[i][k], matrix[j][k], matrix[i][j]);
  }
  tasks.wait();
}

using program = void (*)(lev::runtime&, unsigned);
constexpr program programs[] = {run_empty,        run_three_arrays, run_five_arguments,
                                run_fib,          run_bulk,         run_bulk_in_order,
                                run_bulk_columns, run_bulk_ahead,   run_ordered};
static_assert(std::size(programs) == std::size(cases));

}  // namespace

// Known to callgrind by name.
extern "C" [[gnu::noinline, gnu::used]] void lev_bench_counted(program p, lev::runtime& runtime,
                                                               unsigned amount) {
  p(runtime, amount);
}

void run(const counted_case& which) {
  lev::config settings;
  settings.workers = 1;
  settings.wait = lev::wait_policy::help;
  lev::runtime runtime(settings);
  tasks_runtime = &runtime;
  fib_of_tasks = lev::define("bench.counted_fib", fib_task);
  runtime.post(lev::define("bench.counted_hold", hold));
  is_held.wait(0);
  const program p = programs[&which - cases];
  p(runtime, which.less);  // what is done once only
  lev_bench_counted(p, runtime, which.less);
  lev_bench_counted(p, runtime, which.more);
  may_go.store(1);
  may_go.notify_all();
}

}  // namespace bench::counted
