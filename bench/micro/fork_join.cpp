// fork-join: fib(30) with a task for every call, no cutoff: spawn fib(n - 1), compute fib(n - 2) in
// place, wait.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

namespace bench {
namespace {

constexpr figure_spec fib_ns{"fib_ns", "ns", "<= 50"};
constexpr figure_spec fib_over_onetbb{"fib_over_onetbb", "ratio", "< 1"};
constexpr figure_spec fib_over_openmp{"fib_over_openmp", "ratio", ""};

using fib_procedure = lev::procedure<void(std::uint32_t, lev::result<std::uint64_t>)>;

// The runtime and the procedure of the tasks' submits: set before the first task.
lev::runtime* tasks_runtime = nullptr;
fib_procedure tasks_procedure;

std::uint64_t fib(std::uint32_t n) {
  if (n < 2) return n;
  std::uint64_t first = 0;
  lev::ticket child = tasks_runtime->submit(tasks_procedure, n - 1, first);
  const std::uint64_t second = fib(n - 2);
  child.wait();
  return first + second;
}

void fib_task(std::uint32_t n, lev::result<std::uint64_t> value) {
  value = fib(n);
}

std::uint64_t run_leveret(unsigned n) {
  std::uint64_t value = 0;
  tasks_runtime->submit(tasks_procedure, n, value).wait();
  return value;
}

std::uint64_t plain_fib(unsigned n) {
  std::uint64_t a = 0, b = 1;
  for (; n != 0; --n) b += a, a = b - a;
  return a;
}

template <class Fib>
double per_spawn_ns(unsigned n, Fib&& run) {
  const double spawns = static_cast<double>(plain_fib(n + 1) - 1);  // calls with n >= 2
  const std::uint64_t start_ns = now_ns();
  const std::uint64_t value = run(n);
  const double wall_ns = static_cast<double>(now_ns() - start_ns);
  check(value == plain_fib(n), "fib");
  return wall_ns / spawns;
}

std::function<double()> peer_fib(const rival& r, unsigned n) {
  if (r.table == nullptr) return {};
  return [=] { return per_spawn_ns(n, r.table->fib); };
}

void add_peer(report& figures, const figure_spec& spec, const rival& r, const samples& leveret,
              const samples& peer_rounds) {
  if (r.table == nullptr) return figures.add(spec, {}, r.absent);
  figures.add(spec, ratio(leveret, peer_rounds),
              text("%s: %.0f ns", r.table->name, median(peer_rounds)));
}

}  // namespace

void fork_join(const settings& how, report& figures) {
  const unsigned n = how.quick ? 24 : 30;
  lev::runtime runtime;
  tasks_runtime = &runtime;
  tasks_procedure = lev::define("bench.fib", fib_task);
  const auto rounds = interleave(how.rounds(), {[&] { return per_spawn_ns(n, run_leveret); },
                                                peer_fib(onetbb(), n), peer_fib(openmp(), n)});
  figures.add(fib_ns, rounds[0]);
  add_peer(figures, fib_over_onetbb, onetbb(), rounds[0], rounds[1]);
  add_peer(figures, fib_over_openmp, openmp(), rounds[0], rounds[2]);
}

}  // namespace bench
