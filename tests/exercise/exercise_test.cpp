// Programs made at random, on every machine: none may fail. LEVERET_SEED=n begins elsewhere,
// LEVERET_DEEP=1 goes on for twenty minutes on each machine. See README.md.
#include "exercise/drive.hpp"
#include "support/environment.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace lev::exercise {
namespace {

using test::base_seed;
using test::is_deep;

// As many programs as the machine can run in some 5 s on one core, 11,000 in all; the time is a
// bound for busy computers. Faults are found by few programs or by millions: 23 planted ones by the
// first thousand or two (2026-11-22).
void run(place machine, std::uint64_t programs) {
  if (const char* why = machine_unavailable(is_local(machine) ? place_name(machine) : "processes"))
    GTEST_SKIP() << why;
  plan p;
  p.machines = {machine};
  p.seed = base_seed() * 1'000'000'000;
  p.jobs = machine == place::pool ? 2 : 1;  // hosts that share
  // The locks of a sanitizer's allocator are not looked after in fork(): a child hangs in them.
  if (test::is_sanitized()) p.made_of.without("split");
  p.programs = is_deep() ? 0 : test::is_sanitized() ? programs / 20 : programs;
  p.seconds = is_deep() ? 1'200 : 200;
  const report r = exercise_all(p);
  std::printf("%llu programs on %s from seed %llu on, %.1f s\n",
              static_cast<unsigned long long>(r.programs), place_name(machine),
              static_cast<unsigned long long>(p.seed), r.seconds);
  testing::Test::RecordProperty("programs", std::to_string(r.programs));
  EXPECT_GT(r.programs, 0u);
  for (const finding& f : r.findings) {
    ADD_FAILURE() << "seed " << f.seed << " on " << place_name(f.machine) << ": " << f.what
                  << "\n\n"
                  << f.printed;
  }
}

TEST(exercise, threads) {
  run(place::threads, 4'000);
}
TEST(exercise, sim) {
  run(place::sim, 6'000);
}
TEST(exercise, processes) {
  run(place::processes, 800);
}
TEST(exercise, pool) {
  run(place::pool, 250);
}

}  // namespace
}  // namespace lev::exercise
