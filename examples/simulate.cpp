// The same program on a simulated machine: virtual time, and with the same seed the same events.
#include <leveret/leveret.hpp>

#include <cstdio>

struct run_result {
  std::uint64_t virtual_ns, trace_hash;
  long sum;
};

void sum(lev::in<int> numbers, lev::result<long> total) {
  long t = 0;
  for (const int n : numbers) t += n;
  total = t;
}

run_result run(std::uint64_t seed,
               lev::procedure<void(lev::in<int>, lev::result<long>)> procedure) {
  static int numbers[64][100];
  long totals[64] = {};
  lev::config config;
  config.machine = "sim";
  config.workers = 6;
  config.seed = seed;
  config.trace_events = 4096;
  lev::runtime runtime(config);
  for (int i = 0; i < 64; ++i) {
    for (int& n : numbers[i]) n = i;
    runtime.post(procedure, lev::view(numbers[i], 100), totals[i]);
  }
  runtime.wait_for_completion();
  run_result result{runtime.now_ns(), runtime.trace_hash(), 0};
  for (const long t : totals) result.sum += t;
  return result;
}

int main() {
  if (const char* why = lev::machine_unavailable("sim")) return std::printf("no sim: %s\n", why), 0;
  // One virtual cycle for each byte read.
  const auto procedure = lev::define(
      "sum", sum, nullptr, [](const lev::descriptor& task) { return task.arguments[0].row_bytes; });
  const run_result a = run(1, procedure);
  const run_result b = run(1, procedure);
  std::printf("64 sums on 6 simulated workers took %llu virtual ns; trace %016llx\n",
              static_cast<unsigned long long>(a.virtual_ns),
              static_cast<unsigned long long>(a.trace_hash));
  const bool same = a.trace_hash == b.trace_hash && a.virtual_ns == b.virtual_ns;
  return same && a.trace_hash != 0 && a.sum == 201600 && b.sum == a.sum ? 0 : 1;
}
