// get-compute-put: random blocks of a large array are fetched, worked on and, in half of the cases,
// written back, by one worker. By size of the block and cycles of work per byte:
//
//   simple     copy a block in, work on it, copy it back: single buffering
//   double     ask for the next block, work on this one where it lies: double buffering by hand
//   contexts   tasks that get() a block and wait(): the others run meanwhile
//   ahead      a bulk of tasks, each with its block declared, so that the worker looks ahead
//   dependent  where the next block is stands in this one: contexts against a plain loop
//
// All of them run on the same worker, the loops as one task.
//
// Paper: CellMT section 5.2, Figures 3 to 9. There, blocks follow each other, and the DMA engine
// knows no hardware prefetching; here they are scattered, so that hardware cannot guess them.
#include "big_array.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>
#include <leveret/this_task.hpp>

#include <algorithm>
#include <memory>
#include <string>

namespace bench {
namespace {

// Over copying first, and over double buffering by hand.
struct lookahead {
  std::size_t bytes;
  figure_spec over_copying;
  figure_spec over_double;
};
constexpr lookahead lookaheads[] = {
    {128, {"lookahead_128", "ratio", ">= 1.7"}, {"lookahead_128_over_double", "ratio", ">= 0.9"}},
    {256, {"lookahead_256", "ratio", ">= 1.5"}, {"lookahead_256_over_double", "ratio", ">= 0.9"}},
};
constexpr figure_spec dep_64{"dep_64", "ratio", ">= 4.5"};
constexpr figure_spec dep_256{"dep_256", "ratio", ">= 2.8"};
constexpr figure_spec dep_512{"dep_512", "ratio", ">= 1.8"};
constexpr figure_spec worst_over_double{"worst_over_double", "ratio", ">= 0.95"};

constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t block_bytes_min = 16, block_bytes_max = 16 << 10;
constexpr std::size_t tasks_of_pass = 64;

// The work on a block.
struct work {
  std::size_t words;
  std::uint32_t cycles_per_byte;
  bool writes;
};

// Each step is a multiplication that depends on the last one: 4 cycles. Returns what all steps have
// made; what is written back is one more than what was there (the other summand is 0 but for one
// case in 2^64, and the compiler does not know).
[[gnu::noinline]] std::uint64_t compute(std::uint64_t* block, work w) {
  std::uint64_t state = 1;
  const std::uint32_t steps = 2 * w.cycles_per_byte;
  for (std::size_t i = 0; i < w.words; ++i) {
    const std::uint64_t word = block[i];
    if (steps == 0) state += word;
    for (std::uint32_t s = 0; s < steps; ++s) state = (state ^ word) * 6364136223846793005u;
    if (w.writes) block[i] = word + 1 + (state == 0);
  }
  return state;
}

// The array in blocks of one size: block `index` of the order in which they are visited.
struct blocks {
  std::uint64_t* data;
  std::size_t count;
  std::size_t words;
  std::size_t place_of(std::size_t index) const {
    return scatter(index & (count - 1), count) * words;
  }
  std::uint64_t* at(std::size_t index) const { return data + place_of(index); }
};

// The plan of a pass: its work, and its blocks of the order.
struct plan {
  blocks b;
  work w;
};
struct span {
  std::size_t begin;
  std::size_t end;
};

using far_words = lev::far<std::uint64_t>;

void simple_loop(lev::in<plan> pass, span s, lev::result<std::uint64_t> answer) {
  const auto [b, w] = pass[0];
  std::uint64_t buffer[block_bytes_max / word_bytes];
  std::uint64_t sum = 0;
  for (std::size_t i = s.begin; i < s.end; ++i) {
    std::memcpy(buffer, b.at(i), w.words * word_bytes);
    sum += compute(buffer, w);
    if (w.writes) std::memcpy(b.at(i), buffer, w.words * word_bytes);
  }
  answer = sum;
}

void double_loop(lev::in<plan> pass, span s, lev::result<std::uint64_t> answer) {
  const auto [b, w] = pass[0];
  std::uint64_t sum = 0;
  for (std::size_t i = s.begin; i < s.end; ++i) {
    const std::uint64_t* next = b.at(i + 1);
    for (std::size_t word = 0; word < w.words; word += 8) __builtin_prefetch(next + word);
    sum += compute(b.at(i), w);
  }
  answer = sum;
}

void with_contexts(far_words data, lev::in<plan> pass, span s, lev::result<std::uint64_t> answer) {
  const auto [b, w] = pass[0];
  lev::task_context task = lev::this_task();
  std::uint64_t sum = 0;
  for (std::size_t i = s.begin; i < s.end; ++i) {
    const std::size_t at = b.place_of(i);
    std::uint64_t* block = task.get(data, at, w.words);
    task.wait();
    sum += compute(block, w);
    if (w.writes) task.put(data, at, w.words, block);
  }
  answer = sum;
}

void declared(lev::inout<std::uint64_t> block, work w) {
  keep(compute(block.data(), w));
}

// The first word of a block says where the next one is.
void dependent_loop(lev::in<plan> pass, span s, lev::result<std::uint64_t> answer) {
  const auto [b, w] = pass[0];
  std::uint64_t sum = 0;
  std::size_t at = b.place_of(s.begin);
  for (std::size_t i = s.begin; i < s.end; ++i) {
    std::uint64_t* block = b.data + at;
    at = block[0];
    sum += compute(block, w);
  }
  answer = sum;
}

void dependent_contexts(far_words data, lev::in<plan> pass, span s,
                        lev::result<std::uint64_t> answer) {
  const auto [b, w] = pass[0];
  lev::task_context task = lev::this_task();
  std::uint64_t sum = 0;
  std::size_t at = b.place_of(s.begin);
  for (std::size_t i = s.begin; i < s.end; ++i) {
    std::uint64_t* block = task.get(data, at, w.words);
    task.wait();
    at = block[0];
    sum += compute(block, w);
  }
  answer = sum;
}

struct procedures {
  lev::procedure<void(lev::in<plan>, span, lev::result<std::uint64_t>)> simple =
      lev::define("bench.gcp_simple", simple_loop);
  lev::procedure<void(lev::in<plan>, span, lev::result<std::uint64_t>)> twice =
      lev::define("bench.gcp_double", double_loop);
  lev::procedure<void(lev::in<plan>, span, lev::result<std::uint64_t>)> chain =
      lev::define("bench.gcp_dependent", dependent_loop);
  lev::procedure<void(far_words, lev::in<plan>, span, lev::result<std::uint64_t>)> contexts =
      lev::define("bench.gcp_contexts", with_contexts);
  lev::procedure<void(far_words, lev::in<plan>, span, lev::result<std::uint64_t>)> chain_contexts =
      lev::define("bench.gcp_dependent_contexts", dependent_contexts);
  lev::procedure<void(lev::inout<std::uint64_t>, work)> ahead =
      lev::define("bench.gcp_declared", declared);
};

lev::config one_worker(std::uint32_t contexts) {
  lev::config c;
  c.workers = 1;
  c.pin = true;
  c.wait = lev::wait_policy::park;
  c.full = lev::when_full::wait;
  c.contexts = contexts;
  return c;
}

// One array, one set of runtimes; every pass visits blocks that no pass before it has visited
// lately.
class ground {
 public:
  explicit ground(const settings& how)
      : array_((std::size_t{how.quick ? 64u : 512u} << 20) / word_bytes),
        pass_ns_(how.quick ? 1e6 : 10e6) {}

  // prepare() lays out blocks of one size: each one's first word says where the next is.
  void prepare(std::size_t words) {
    blocks_ = {array_.data(), array_.size() / words, words};
    for (std::size_t i = 0; i < blocks_.count; ++i) *blocks_.at(i) = blocks_.place_of(i + 1);
  }

  // choose() returns the blocks of a pass: as many as take about 10 ms.
  span choose(const work& w) {
    const double block_ns =
        40 + static_cast<double>(w.words * word_bytes) * (0.15 + 0.35 * w.cycles_per_byte);
    const auto wanted = static_cast<std::size_t>(pass_ns_ / block_ns);
    const std::size_t per_task = std::max<std::size_t>(1, wanted / tasks_of_pass);
    const std::size_t begin = cursor_;
    cursor_ += per_task * tasks_of_pass;
    return {begin, cursor_};
  }

  const blocks& in_blocks() const { return blocks_; }

  // Each returns ns per block.
  template <class Procedure>
  double loop(Procedure p, const work& w) {
    return timed(w, [&](span s) {
      std::uint64_t answer = 0;
      const plan pass{blocks_, w};
      plain_.submit(p, lev::view(&pass, 1), s, answer).wait();
      return answer;
    });
  }
  template <class Procedure>
  double in_contexts(lev::runtime& r, Procedure p, const work& w) {
    return timed(w, [&](span s) {
      std::uint64_t answers[tasks_of_pass] = {};
      lev::ticket tickets[tasks_of_pass];
      const std::size_t each = (s.end - s.begin) / tasks_of_pass;
      const plan pass{blocks_, w};
      const far_words all(array_.data(), array_.size());
      for (std::size_t i = 0; i < tasks_of_pass; ++i) {
        const span part{s.begin + i * each, s.begin + (i + 1) * each};
        tickets[i] = r.submit(p, all, lev::view(&pass, 1), part, answers[i]);
      }
      lev::wait_all(tickets, tasks_of_pass);
      std::uint64_t sum = 0;
      for (const std::uint64_t a : answers) sum += a;
      return sum;
    });
  }
  double declared_blocks(const work& w) {
    const auto p = bodies.ahead;
    const span s = choose(w);
    const auto make = [&](std::size_t i, lev::descriptor& task) {
      std::uint64_t* const block = blocks_.at(s.begin + i);
      if (task.argument_count == 0) task = lev::pack(p, lev::view(block, w.words), w);
      task.arguments[0].address = reinterpret_cast<std::uintptr_t>(block);
    };
    const std::uint64_t start_ns = now_ns();
    plain_.submit_bulk(lev::from_any_thread, s.end - s.begin, make).wait();
    return static_cast<double>(now_ns() - start_ns) / static_cast<double>(s.end - s.begin);
  }

  lev::runtime& automatic() { return automatic_; }
  const procedures bodies;

 private:
  // The answer of blocks that were not written is checked, after the time was taken.
  template <class Pass>
  double timed(const work& w, Pass&& pass) {
    const span s = choose(w);
    const std::uint64_t start_ns = now_ns();
    const std::uint64_t answer = pass(s);
    const std::uint64_t end_ns = now_ns();
    check(w.writes || answer == expected(s, w), "an answer differs from the plain loop's");
    if (w.writes) check(answer != 0, "a pass that wrote has an answer");
    return static_cast<double>(end_ns - start_ns) / static_cast<double>(s.end - s.begin);
  }
  std::uint64_t expected(span s, const work& w) const {
    std::uint64_t sum = 0;
    for (std::size_t i = s.begin; i < s.end; ++i) sum += compute(blocks_.at(i), w);
    return sum;
  }

  big_array<std::uint64_t> array_;
  double pass_ns_;
  blocks blocks_{};
  std::size_t cursor_ = 0;
  lev::runtime plain_{one_worker(1)};
  lev::runtime automatic_{one_worker(0)};
};

samples gigabytes(const samples& block_ns, const work& w) {
  samples rates;
  for (const double ns : block_ns) rates.push_back(static_cast<double>(w.words * word_bytes) / ns);
  return rates;
}

void add_lookahead(ground& g, const settings& how, report& figures, const lookahead& l) {
  const work w{l.bytes / word_bytes, 1, true};
  g.prepare(w.words);
  const auto ns = interleave(how.rounds(), {[&] { return g.loop(g.bodies.simple, w); },
                                            [&] { return g.declared_blocks(w); },
                                            [&] { return g.loop(g.bodies.twice, w); }});
  figures.add(l.over_copying, ratio(ns[0], ns[1]),
              text("copying %.0f ns a block, tasks %.0f, double buffering %.0f", median(ns[0]),
                   median(ns[1]), median(ns[2])));
  figures.add(l.over_double, ratio(ns[2], ns[1]));
}

void add_dependent(ground& g, const settings& how, report& figures, const figure_spec& spec,
                   std::size_t bytes) {
  const work w{bytes / word_bytes, 0, false};
  g.prepare(w.words);
  const auto ns = interleave(
      how.rounds(), {[&] { return g.loop(g.bodies.chain, w); },
                     [&] { return g.in_contexts(g.automatic(), g.bodies.chain_contexts, w); }});
  figures.add(spec, ratio(ns[0], ns[1]),
              text("plain loop %.0f ns a block, contexts %.0f", median(ns[0]), median(ns[1])));
}

// Figures 5 to 9: read, compute, write. Returns contexts over double buffering.
samples add_cell(ground& g, const settings& how, report& figures, const work& w) {
  const auto ns = interleave(
      how.rounds(),
      {[&] { return g.loop(g.bodies.simple, w); }, [&] { return g.loop(g.bodies.twice, w); },
       [&] { return g.in_contexts(g.automatic(), g.bodies.contexts, w); }});
  constexpr const char* ways[] = {"simple", "double", "contexts"};
  for (std::size_t way = 0; way < std::size(ways); ++way) {
    figures.add({text("rcw_%s_%zu_%u", ways[way], w.words * word_bytes, w.cycles_per_byte).c_str(),
                 "GB/s", ""},
                gigabytes(ns[way], w));
  }
  return ratio(ns[1], ns[2]);
}

void add_grid(ground& g, const settings& how, report& figures) {
  samples worst;
  std::string at;
  for (std::size_t bytes = block_bytes_min; bytes <= block_bytes_max; bytes *= 2) {
    g.prepare(bytes / word_bytes);
    for (const std::uint32_t cycles : {0u, 1u, 4u, 16u}) {
      const samples one = add_cell(g, how, figures, {bytes / word_bytes, cycles, true});
      if (!worst.empty() && median(one) >= median(worst)) continue;
      worst = one;
      at = text("blocks of %zu bytes, %u cycles a byte", bytes, cycles);
    }
  }
  figures.add(worst_over_double, worst, at);
}

// Figures 3 and 4: read only, no work, by the number of contexts.
void add_counts(ground& g, const settings& how, report& figures) {
  constexpr std::uint32_t counts[] = {1, 2, 3, 4, 8, 15, 16};
  std::vector<std::unique_ptr<lev::runtime>> runtimes;
  for (const std::uint32_t n : counts)
    runtimes.push_back(std::make_unique<lev::runtime>(one_worker(n)));
  for (std::size_t bytes = block_bytes_min; bytes <= block_bytes_max; bytes *= 2) {
    const work w{bytes / word_bytes, 0, false};
    g.prepare(w.words);
    std::vector<std::function<double()>> ways = {[&] { return g.loop(g.bodies.simple, w); },
                                                 [&] { return g.loop(g.bodies.twice, w); }};
    for (auto& r : runtimes)
      ways.push_back([&] { return g.in_contexts(*r, g.bodies.contexts, w); });
    const auto ns = interleave(how.rounds(), ways);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const std::string name = way == 0   ? "simple"
                               : way == 1 ? "double"
                                          : text("contexts%u", counts[way - 2]);
      figures.add({text("ro_%s_%zu", name.c_str(), bytes).c_str(), "GB/s", ""},
                  gigabytes(ns[way], w));
    }
  }
}

}  // namespace

void get_compute_put(const settings& how, report& figures) {
  ground g(how);
  for (const lookahead& l : lookaheads) add_lookahead(g, how, figures, l);
  add_dependent(g, how, figures, dep_64, 64);
  add_dependent(g, how, figures, dep_256, 256);
  add_dependent(g, how, figures, dep_512, 512);
  add_grid(g, how, figures);
  add_counts(g, how, figures);
}

}  // namespace bench
