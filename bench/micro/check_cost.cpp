// check-cost: what part of a round trip are the checks that every submit makes, also in release:
// kinds, counts, sizes, addresses, overlap (task/validate.hpp)?
//
// The checks run by themselves on the same draft that the round trip submits, each after the one
// before has retired. The cost of waiting for that is measured, too, and subtracted. In a submit
// they overlap with what is around them, so the share is an upper bound. The goal is that of an
// empty task without arguments.
#include "micro/one_worker.hpp"
#include "registry.hpp"
#include "task/validate.hpp"

namespace bench {
namespace {

constexpr figure_spec share{"share", "ratio", "<= 0.10"};
constexpr figure_spec share3{"share_three_arguments", "ratio", ""};
constexpr figure_spec process_share{"share_processes", "ratio", "<= 0.10"};
constexpr figure_spec process_share3{"share_processes_three_arguments", "ratio", ""};
constexpr figure_spec check_ns{"checks_ns", "ns", ""};
constexpr figure_spec check3_ns{"checks_three_arguments_ns", "ns", ""};

void nothing() {}
void nothing_with_memory(lev::in<double>, lev::in<double>, lev::inout<double>) {}

struct line {
  alignas(64) double values[8];
  double* data() noexcept { return values; }
  std::size_t size() const noexcept { return 8; }
};

// Nothing behind it starts before everything in front of it has ended.
inline void finish_all() noexcept {
#if defined(__x86_64__)
  asm volatile("lfence" : : : "memory");
#elif defined(__aarch64__)
  asm volatile("dsb sy\n\tisb" : : : "memory");
#endif
}

double checks_of(const lev::descriptor& d, std::size_t count) {
  const lev::detail::draft draft = lev::detail::draft_of(d);
  bool is_right = true;
  const double both = typical_ns(count, [&] {
    lev::draft_facts facts;
    lev::refusal why;
    is_right &= lev::validate(draft, &facts, &why);
    keep(facts);
    finish_all();
  });
  check(is_right, "the checks");
  return both - typical_ns(count, [] { finish_all(); });
}

}  // namespace

void check_cost(const settings& how, report& figures) {
  const auto nothing_procedure = lev::define("bench.check_nothing", nothing);
  const auto memory_procedure = lev::define("bench.check_memory", nothing_with_memory);
  static line a{{2, 2, 2, 2, 2, 2, 2, 2}}, b{{3, 3, 3, 3, 3, 3, 3, 3}}, c{};
  lev::config settings;
  settings.machine = "processes";
  settings.workers = 1;
  settings.wait = lev::wait_policy::spin;
  lev::runtime processes(settings);  // before the host is pinned: its worker would be, too
  one_worker threads(choose_core_pair());

  const std::size_t trips = how.scaled(200'000);
  const std::size_t checks = how.scaled(400'000);
  const auto trip = [&](lev::runtime& r) {
    wait_until_quiet();
    return typical_ns(trips, [&] { r.submit(nothing_procedure).wait(); });
  };
  const auto trip3 = [&](lev::runtime& r) {
    wait_until_quiet();
    return typical_ns(trips, [&] { r.submit(memory_procedure, a, b, c).wait(); });
  };
  const lev::descriptor none = lev::pack(nothing_procedure);
  const lev::descriptor three = lev::pack(memory_procedure, a, b, c);
  const auto rounds =
      interleave(how.rounds(),
                 {[&] { return checks_of(none, checks); }, [&] { return checks_of(three, checks); },
                  [&] { return trip(*threads); }, [&] { return trip3(*threads); },
                  [&] { return trip(processes); }, [&] { return trip3(processes); }});
  threads.check_worker_ran();

  const auto against = [&](std::size_t i) { return text("%.0f ns", median(rounds[i])); };
  figures.add(share, ratio(rounds[0], rounds[2]), "round trip, threads: " + against(2));
  figures.add(share3, ratio(rounds[1], rounds[3]), "round trip, threads: " + against(3));
  figures.add(process_share, ratio(rounds[0], rounds[4]), "round trip, processes: " + against(4));
  figures.add(process_share3, ratio(rounds[1], rounds[5]), "round trip, processes: " + against(5));
  figures.add(check_ns, rounds[0]);
  figures.add(check3_ns, rounds[1]);
}

}  // namespace bench
