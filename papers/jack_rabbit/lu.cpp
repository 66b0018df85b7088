// LU by columns on Jack Rabbit's pool; see applications.hpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "jack_rabbit/applications.hpp"

namespace leveret_papers {

namespace {

constexpr std::uint32_t multipliers = 1;
constexpr std::uint32_t update = 2;

// Columns of A and of L. What only costs time shares a few of them.
struct columns {
  unsigned size;
  unsigned stored;
  cell::array<float> a;
  cell::array<float> l;

  std::uint32_t bytes() const { return size * 4; }
  rabbit_bytes of(const cell::array<float>& from, unsigned column, unsigned first,
                  unsigned count) const {
    return {from.at(std::size_t{column % stored} * size + first), count * 4};
  }
  rabbit_bytes whole(const cell::array<float>& from, unsigned column) const {
    return of(from, column, 0, size);
  }
};

columns make_columns(cell::machine& m, unsigned size, unsigned stored) {
  const std::size_t words = std::size_t{size} * stored;
  return {size, stored, m.memory<float>(words), m.memory<float>(words)};
}

std::vector<rabbit_batch> step(world& w, const columns& c, unsigned k, unsigned spes) {
  std::vector<rabbit_batch> two(2);
  // Parts begin at multiples of four rows: transfers are multiples of 16 bytes.
  const auto ways = static_cast<unsigned>(w.number("jack_rabbit.parts")) * spes;
  const unsigned begin = (k + 1) / 4 * 4;
  for (unsigned i = 0; i < ways; ++i) {
    const unsigned from = begin + (c.size - begin) / 4 * i / ways * 4;
    const unsigned to = begin + (c.size - begin) / 4 * (i + 1) / ways * 4;
    if (from == to) continue;
    rabbit_task t{multipliers, w.cost_of("jack_rabbit.divide").count * (to - from)};
    t.in[0] = c.of(c.a, k, from, to - from);
    t.out = c.of(c.l, k, from, to - from);
    t.first = k * c.size + from;
    two[0].tasks.push_back(t);
  }
  const auto work = static_cast<std::int64_t>((c.size - k - 1) * w.number("jack_rabbit.update"));
  for (unsigned j = k + 1; j < c.size; ++j) {
    rabbit_task t{update, work};
    t.in = {c.whole(c.l, k), c.whole(c.a, j)};
    t.out = c.whole(c.a, j);
    t.first = k;
    two[1].tasks.push_back(t);
  }
  return two;
}

struct sample {
  unsigned step;
  double weight;
};

// Four points of Gauss and Legendre: exact for polynomials of the seventh degree in the step.
std::vector<sample> samples_of(unsigned size, bool is_full) {
  std::vector<sample> found;
  if (is_full)
    for (unsigned k = 0; k + 1 < size; ++k) found.push_back({k, 1});
  else
    for (const auto& [where, weight] : {std::array{69432u, 173927u}, std::array{330009u, 326073u},
                                        std::array{669991u, 326073u}, std::array{930568u, 173927u}})
      found.push_back(
          {static_cast<unsigned>(std::uint64_t{size} * where / 1000000), size * (weight * 1e-6)});
  return found;
}

void add(std::vector<rabbit_batch>& all, std::vector<rabbit_batch> some) {
  for (rabbit_batch& b : some) all.push_back(std::move(b));
}

// Test data: the diagonal is large, so nothing is exchanged.
float element(unsigned size, unsigned i, unsigned j) {
  const unsigned mixed = (i * 2654435761u + j * 40503u) >> 7;
  return static_cast<float>(mixed % 1000) * 0.001f + (i == j ? static_cast<float>(size) : 0.0f);
}

void run_body(const columns& c, const rabbit_task& t, void* first, void* second) {
  auto* x = static_cast<float*>(first);
  if (t.kind == multipliers) {
    const unsigned k = t.first / c.size;
    const float pivot = c.a[std::size_t{k} * c.size + k];  // an argument
    const unsigned row = t.first % c.size;
    for (unsigned i = 0; i < t.in[0].bytes / 4; ++i) x[i] = row + i > k ? x[i] / pivot : 0.0f;
    return;
  }
  auto* y = static_cast<float*>(second);
  for (unsigned i = t.first + 1; i < c.size; ++i) y[i] -= x[i] * y[t.first];
}

double difference_from_serial(const columns& c) {
  const unsigned n = c.size;
  std::vector<double> a(std::size_t{n} * n);
  for (unsigned j = 0; j < n; ++j)
    for (unsigned i = 0; i < n; ++i) a[std::size_t{j} * n + i] = element(n, i, j);
  double most = 0;
  for (unsigned k = 0; k < n; ++k)
    for (unsigned i = k + 1; i < n; ++i) {
      const double l = a[std::size_t{k} * n + i] / a[std::size_t{k} * n + k];
      for (unsigned j = k + 1; j < n; ++j)
        a[std::size_t{j} * n + i] -= l * a[std::size_t{j} * n + k];
      most = std::max(most, std::fabs(l - double(c.l[std::size_t{k} * n + i])));
    }
  for (unsigned j = 0; j < n; ++j)
    for (unsigned i = 0; i <= j; ++i)
      most = std::max(most,
                      std::fabs(a[std::size_t{j} * n + i] - double(c.a[std::size_t{j} * n + i])));
  return most;
}

}  // namespace

double lu_seconds(world& w, const rabbit_lu& what) {
  const std::vector<sample> samples = samples_of(what.size, w.is_full());
  rabbit_pool pool;
  pool.spes = what.spes;
  pool.is_double_buffered = what.is_double_buffered;
  const rabbit_outcome o = run_rabbit(w, pool, [&](cell::machine& m) {
    const columns c = make_columns(m, what.size, 32);
    std::vector<rabbit_batch> batches;
    for (const sample& s : samples) add(batches, step(w, c, s.step, what.spes));
    return batches;
  });
  double seconds = 0;
  for (std::size_t i = 0; i < samples.size(); ++i)
    seconds += samples[i].weight * (o.seconds[2 * i] + o.seconds[2 * i + 1]);
  return seconds;
}

double lu_difference(world& w, const rabbit_lu& what) {
  columns c{};
  double difference = 0;
  rabbit_pool pool;
  pool.spes = what.spes;
  pool.is_double_buffered = what.is_double_buffered;
  pool.body = [&](const rabbit_task& t, void* x, void* y) { run_body(c, t, x, y); };
  run_rabbit(
      w, pool,
      [&](cell::machine& m) {
        c = make_columns(m, what.size, what.size);
        for (unsigned j = 0; j < c.size; ++j)
          for (unsigned i = 0; i < c.size; ++i)
            c.a[std::size_t{j} * c.size + i] = element(c.size, i, j);
        std::vector<rabbit_batch> batches;
        for (unsigned k = 0; k + 1 < c.size; ++k) add(batches, step(w, c, k, what.spes));
        return batches;
      },
      [&](cell::machine&) { difference = difference_from_serial(c); });
  return difference;
}

}  // namespace leveret_papers
