// task_graph: a random graph of tasks whose result is known. Every task is an integer kernel on
// blocks of one memory; edges, mutexes and slices keep the order that the result depends on, so
// every machine and every schedule must give what a serial run gives, bit for bit.
//
// The memory is `blocks` blocks. A task writes one block, x = f(x, other blocks), or adds to a
// shared sum under a mutex (addition commutes, so the order does not matter). It comes after the
// last writer and all readers since of the block it writes, and after the last writer of those it
// reads.
#pragma once

#include <leveret/leveret.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "support/procedures.hpp"

namespace lev::test {

constexpr std::size_t graph_blocks = 12;
constexpr std::size_t graph_rows = 8;
constexpr std::size_t graph_columns = 24;
constexpr std::size_t graph_pitch = 32;  // columns and some that nobody touches
constexpr std::size_t graph_sums = 3;

struct graph_memory {
  std::array<std::array<std::uint64_t, graph_rows * graph_pitch>, graph_blocks> blocks{};
  std::array<std::uint64_t, graph_sums> sums{};
  bool operator==(const graph_memory&) const = default;
};

// One task of a graph.
struct graph_task {
  enum class kind { mix, mix_sliced, mix_block, add_to_sum, nested } what;
  std::size_t target;
  std::size_t sources[2];
  std::uint64_t salt;
};

class task_graph {
 public:
  explicit task_graph(std::uint64_t seed, std::size_t count = 60) {
    random_source random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      graph_task t;
      t.what = static_cast<graph_task::kind>(random.below(5));
      t.target = random.below(graph_blocks);
      // Sources other than the target: an output must not overlap an input.
      for (std::size_t& s : t.sources)
        s = (t.target + 1 + random.below(graph_blocks - 1)) % graph_blocks;
      t.salt = random.next();
      tasks_.push_back(t);
    }
  }

  // Runs the graph on `r`, in submission windows, and waits for it.
  void run(runtime& r, graph_memory& m) const;
  void run_serially(graph_memory& m) const {
    for (const graph_task& t : tasks_) run_one(t, m);
  }

 private:
  struct history {
    std::vector<ticket> tickets;  // of all tasks, until the end
    std::array<std::size_t, graph_blocks> writer;
    std::array<std::vector<std::size_t>, graph_blocks> readers;
  };
  static void run_one(const graph_task& t, graph_memory& m);
  static std::uint64_t* data(graph_memory& m, std::size_t block) { return m.blocks[block].data(); }
  options order(const history& h, const graph_task& t) const;
  static ticket submit(runtime& r, const options& o, const graph_task& t, graph_memory& m,
                       const std::array<mutex_id, graph_sums>& mutexes);

  std::vector<graph_task> tasks_;
};

// The kernels. Each works on an element at a time, so that slices do not change the result.
inline std::uint64_t mix_element(std::uint64_t x, std::uint64_t a, std::uint64_t b,
                                 std::uint64_t salt) {
  return mix64(x + 3 * a + salt) ^ (b * 5);
}

inline const auto graph_mix = define("graph.mix", [](inout<std::uint64_t> x, in<std::uint64_t> a,
                                                     in<std::uint64_t> b, std::uint64_t salt) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) {
      x.row(r)[i] = mix_element(x.row(r)[i], a.row(r)[i], b.row(r)[i], salt);
    }
  }
});

inline const auto graph_add =
    define("graph.add", [](inout<std::uint64_t> sum, in<std::uint64_t> a, std::uint64_t salt) {
      for (std::size_t i = 0; i < a.size(); ++i) sum[0] += mix64(a[i] ^ salt);
    });

// A task that splits its work among children and waits for them.
inline const auto graph_nested =
    define("graph.nested", [](ref<runtime> home, inout<std::uint64_t> x, in<std::uint64_t> a,
                              in<std::uint64_t> b, std::uint64_t salt) {
      constexpr std::size_t parts = 3;
      const std::size_t share = x.size() / parts + 1;
      ticket children[parts];
      for (std::size_t p = 0; p < parts; ++p) {
        const std::size_t begin = p * share;
        const std::size_t size = begin + share <= x.size() ? share : x.size() - begin;
        children[p] =
            home.to->submit(graph_mix, view(x.data() + begin, size), view(a.data() + begin, size),
                            view(b.data() + begin, size), salt);
      }
      for (ticket& child : children) child.wait();
    });

inline void task_graph::run_one(const graph_task& t, graph_memory& m) {
  std::uint64_t* x = data(m, t.target);
  const std::uint64_t* a = data(m, t.sources[0]);
  const std::uint64_t* b = data(m, t.sources[1]);
  if (t.what == graph_task::kind::add_to_sum) {
    for (std::size_t i = 0; i < m.blocks[0].size(); ++i) {
      m.sums[t.salt % graph_sums] += mix64(a[i] ^ t.salt);
    }
    return;
  }
  const bool is_block = t.what == graph_task::kind::mix_block;
  for (std::size_t i = 0; i < m.blocks[0].size(); ++i) {
    if (is_block && i % graph_pitch >= graph_columns) continue;
    x[i] = mix_element(x[i], a[i], b[i], t.salt);
  }
}

// The tasks that a task comes after. Too many readers: then after all tasks of the block, chained.
inline options task_graph::order(const history& h, const graph_task& t) const {
  options o;
  unsigned named = 0;
  const auto name = [&](std::size_t task) {
    if (task != ~std::size_t{0} && named < options::after_max) {
      o.after(h.tickets[task]);
      ++named;
    }
  };
  const bool writes = t.what != graph_task::kind::add_to_sum;
  if (writes) name(h.writer[t.target]);
  if (writes) {
    for (const std::size_t reader : h.readers[t.target]) name(reader);
  }
  name(h.writer[t.sources[0]]);
  if (writes) name(h.writer[t.sources[1]]);
  return o;
}

inline ticket task_graph::submit(runtime& r, const options& o, const graph_task& t, graph_memory& m,
                                 const std::array<mutex_id, graph_sums>& mutexes) {
  const std::size_t size = m.blocks[0].size();
  std::uint64_t* x = data(m, t.target);
  std::uint64_t* a = data(m, t.sources[0]);
  std::uint64_t* b = data(m, t.sources[1]);
  const auto block = [](std::uint64_t* p) {
    return strided(p, graph_rows, graph_columns, graph_pitch);
  };
  options own = o;
  switch (t.what) {
    case graph_task::kind::mix:
      return r.submit(own, graph_mix, view(x, size), view(a, size), view(b, size), t.salt);
    case graph_task::kind::mix_sliced:
      return r.submit(own.grain(1), graph_mix, sliced(view(x, size)), sliced(view(a, size)),
                      sliced(view(b, size)), t.salt);
    case graph_task::kind::mix_block:
      return r.submit(own.grain(1), graph_mix, sliced(block(x)), sliced(block(a)), sliced(block(b)),
                      t.salt);
    case graph_task::kind::add_to_sum:
      own.locks(mutexes[t.salt % graph_sums]);
      return r.submit(own, graph_add, view(&m.sums[t.salt % graph_sums], 1), view(a, size), t.salt);
    case graph_task::kind::nested:
      break;
  }
  // Tasks in worker processes do not submit: there it is one task.
  if (std::string_view(r.machine()) == "processes")
    return r.submit(own, graph_mix, view(x, size), view(a, size), view(b, size), t.salt);
  return r.submit(own, graph_nested, ref{&r}, view(x, size), view(a, size), view(b, size), t.salt);
}

inline void task_graph::run(runtime& r, graph_memory& m) const {
  std::array<mutex_id, graph_sums> mutexes;
  for (mutex_id& id : mutexes) {
    if (r.make_mutex(&id) != status::ok) return;
  }
  history h;
  h.writer.fill(~std::size_t{0});
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const graph_task& t = tasks_[i];
    h.tickets.push_back(submit(r, order(h, t), t, m, mutexes));
    h.readers[t.sources[0]].push_back(i);
    if (t.what == graph_task::kind::add_to_sum) continue;
    h.readers[t.sources[1]].push_back(i);
    h.writer[t.target] = i;
    h.readers[t.target].clear();
  }
  // Checked by the caller: a task that failed leaves other memory behind.
  wait_all(h.tickets.data(), h.tickets.size());
}

}  // namespace lev::test
