// buffering: tasks on random 256-byte blocks of a large array, one cycle of work per byte, run by
// one worker that looks four tasks ahead, and by one that does not look ahead.
//
// The limit is a plain loop over the same blocks in the same order, without and with prefetching
// four blocks ahead.
#include "big_array.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

namespace bench {
namespace {

constexpr figure_spec d4_over_d1_256b{"d4_over_d1_256b", "ratio", ">= 1.5"};
constexpr figure_spec d1_ns{"d1_ns", "ns", ""};
constexpr figure_spec d4_ns{"d4_ns", "ns", ""};
constexpr figure_spec loop_ns{"loop_ns", "ns", ""};
constexpr figure_spec prefetched_ns{"prefetched_loop_ns", "ns", ""};

constexpr std::size_t words = 32;  // 256 bytes
constexpr std::size_t ahead = 4;

// Mixes a block and writes it back: two dependent steps of xor and multiply (4 cycles) per word of
// 8 bytes.
[[gnu::noinline]] void mix(std::uint64_t* block) {
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < words; ++i) {
    state = (state ^ block[i]) * 6364136223846793005u;
    state = (state ^ (i + 1)) * 1442695040888963407u;
    block[i] = state;
  }
}

void mix_task(lev::inout<std::uint64_t> block) {
  mix(block.data());
}

using mix_procedure = lev::procedure<void(lev::inout<std::uint64_t>)>;

// All blocks start equal, and every pass mixes each once: they must stay equal.
struct problem {
  explicit problem(std::size_t block_count) : count(block_count), array(block_count * words) {}
  std::uint64_t* block(std::size_t index) const {
    return array.data() + scatter(index, count) * words;
  }
  void check_answer() const {
    std::uint64_t expected[words] = {};
    for (int pass = 0; pass < passes; ++pass) mix(expected);
    for (std::size_t i = 0; i < array.size(); ++i) {
      check(array[i] == expected[i % words], "mixed blocks");
    }
  }
  std::size_t count;
  big_array<std::uint64_t> array;
  int passes = 0;
};

template <class Pass>
double per_block_ns(problem& data, Pass&& pass) {
  const std::uint64_t start_ns = now_ns();
  pass();
  const std::uint64_t end_ns = now_ns();
  ++data.passes;
  return static_cast<double>(end_ns - start_ns) / static_cast<double>(data.count);
}

void run_tasks(lev::runtime& runtime, mix_procedure p, const problem& data) {
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    if (i == 0) {
      task = lev::pack(p, lev::view(data.block(i), words));
    } else {
      task.arguments[0].address = reinterpret_cast<std::uintptr_t>(data.block(i));
    }
  };
  runtime.submit_bulk(data.count, make).wait();
}

void run_loop(const problem& data, bool prefetched) {
  for (std::size_t i = 0; i < data.count; ++i) {
    if (prefetched && i + ahead < data.count) {
      const std::uint64_t* next = data.block(i + ahead);
      for (std::size_t line = 0; line < words; line += 8) __builtin_prefetch(next + line, 1);
    }
    mix(data.block(i));
  }
}

// One worker does all the work: what is compared is the worker's look-ahead.
lev::config one_worker_config(std::uint32_t depth) {
  lev::config c;
  c.workers = 1;
  c.wait = lev::wait_policy::park;
  c.full = lev::when_full::wait;
  c.depth = depth;
  return c;
}

}  // namespace

void buffering(const settings& how, report& figures) {
  const std::size_t bytes = std::size_t{how.quick ? 64u : 512u} << 20;
  problem data(bytes / (words * sizeof(std::uint64_t)));
  const auto procedure = lev::define("bench.mix", mix_task);
  lev::runtime depth1(one_worker_config(1));
  lev::runtime depth4(one_worker_config(ahead));
  const auto rounds =
      interleave(how.rounds(),
                 {[&] { return per_block_ns(data, [&] { run_tasks(depth1, procedure, data); }); },
                  [&] { return per_block_ns(data, [&] { run_tasks(depth4, procedure, data); }); },
                  [&] { return per_block_ns(data, [&] { run_loop(data, false); }); },
                  [&] { return per_block_ns(data, [&] { run_loop(data, true); }); }});
  data.check_answer();
  check(depth1.count().helped + depth4.count().helped == 0, "the worker ran every task");

  const samples loop_gain = ratio(rounds[2], rounds[3]);
  figures.add(d4_over_d1_256b, ratio(rounds[0], rounds[1]),
              text("plain loop gains %.2f by prefetching", median(loop_gain)));
  figures.add(d1_ns, rounds[0]);
  figures.add(d4_ns, rounds[1]);
  figures.add(loop_ns, rounds[2]);
  figures.add(prefetched_ns, rounds[3]);
}

}  // namespace bench
