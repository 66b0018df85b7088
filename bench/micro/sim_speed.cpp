// sim-speed: events of a simulated Cell in a second of this computer. Every SPE gets lines with two
// buffers and computes on each; an event is a change of what goes on: an actor's wait that ends, a
// transfer that does. And how long a row of the papers takes, where they were built.
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/cell.hpp>

#include <functional>

#ifdef LEV_BENCH_PAPERS
#include <leveret_papers/expected.hpp>
#endif

namespace bench {
namespace {

constexpr figure_spec events_16{"events_16", "events/s", ">= 8e6"};
constexpr figure_spec events_1024{"events_1024", "events/s", ">= 2e6"};
#ifdef LEV_BENCH_PAPERS
// Jack Rabbit's LU of 4096 columns on six SPEs, four of its outer steps for all.
constexpr figure_spec lu4k{"lu4k_seconds", "s", "<= 60"};
#endif

void stream(lev::cell::spe& s, const lev::cell::array<char>& lines, unsigned count) {
  const lev::cell::local<char> buffers[] = {s.allocate<char>(128), s.allocate<char>(128)};
  s.get(buffers[0], lines.ea, 0);
  for (unsigned i = 0; i < count; ++i) {
    s.get(buffers[(i + 1) % 2], lines.at(128 * (i % 64)), (i + 1) % 2);
    s.wait_all(1u << i % 2);
    s.compute(lev::cycles(50 + s.random(200)));
  }
  s.wait_all(3);
}

double events_per_second(unsigned spes, unsigned all_blocks) {
  const auto file = lev::cell::machine_file::named("cell-ps3").with("machine.spes", spes);
  lev::cell::machine cell(file);
  const auto lines = cell.memory<char>(128 * 64);
  for (unsigned i = 0; i < spes; ++i)
    cell.spe_program(i, [&](lev::cell::spe& s) { stream(s, lines, all_blocks / spes); });
  const std::uint64_t start_ns = now_ns();
  const lev::cell::report r = cell.run();
  const double seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
  check(r.spes[0].transfers == all_blocks / spes + 1, "an SPE gets all of its lines");
  return static_cast<double>(r.events) / seconds;
}

}  // namespace

void sim_speed(const settings& how, report& figures) {
  const auto blocks = static_cast<unsigned>(how.scaled(400'000));
  const auto rounds = interleave(how.rounds(), {[&] { return events_per_second(16, blocks); },
                                                [&] { return events_per_second(1024, blocks); }});
  figures.add(events_16, rounds[0]);
  figures.add(events_1024, rounds[1]);
#ifdef LEV_BENCH_PAPERS
  figures.add(lu4k, interleave(how.rounds(), {[] {
                                 return leveret_papers::simulate_row("T1.1 4k plain 6").seconds;
                               }})[0]);
#endif
}

}  // namespace bench
