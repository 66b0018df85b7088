// Two programs whose tasks are ordered by the memory that they use: a matrix factored by blocks,
// and a stream of steps on units of an array. Every contestant runs these loops, and calls the same
// compiled kernels; it brings `Tasks`, which has a function for each kernel that submits it as a
// task.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chased.hpp"

namespace bench {

// A square matrix of `blocks` times `blocks` blocks of `side` rows and columns: block by block, or
// row by row, and then the rows of a block lie apart.
struct block_matrix {
  double* elements;
  std::size_t blocks;
  std::size_t side;
  bool is_by_rows;
  std::size_t stride() const noexcept { return is_by_rows ? blocks * side : side; }
  double* at(std::size_t i, std::size_t j) const noexcept {
    return elements + i * blocks * side * side + j * side * (is_by_rows ? 1 : side);
  }
  std::size_t tasks() const noexcept {
    return blocks + blocks * (blocks - 1) / 2 + (blocks - 1) * blocks * (blocks + 1) / 6;
  }
};
// Where a block lies: its first element, its rows, and how far they are apart.
struct block_place {
  double* first;
  std::size_t side;
  std::size_t stride;
};

// a = L with L * L' = a; a = a / l'; a -= x * y'.
void factor_block(block_place a) noexcept;
void solve_block(block_place l, block_place a) noexcept;
void update_block(block_place x, block_place y, block_place a) noexcept;

template <class Tasks>
void cholesky(Tasks& tasks, const block_matrix& m) {
  const auto place = [&m](std::size_t i, std::size_t j) {
    return block_place{m.at(i, j), m.side, m.stride()};
  };
  for (std::size_t k = 0; k < m.blocks; ++k) {
    tasks.factor(place(k, k));
    for (std::size_t i = k + 1; i < m.blocks; ++i) tasks.solve(place(k, k), place(i, k));
    for (std::size_t i = k + 1; i < m.blocks; ++i)
      for (std::size_t j = k + 1; j <= i; ++j) tasks.update(place(i, k), place(j, k), place(i, j));
  }
}

// Words that steps work on, in units of a cache line. Each step updates two units that lie beside
// each other, and reads another one, so two that overlap by half are ordered, too.
constexpr std::size_t unit_words = 8;
struct unit_array {
  std::uint64_t* words;
  std::size_t units;
};
// `turns` is how long it computes (timing.hpp, chain()).
void run_step(const std::uint64_t* read, std::uint64_t* updated, std::uint64_t turns) noexcept;

template <class Tasks>
void steps(Tasks& tasks, const unit_array& a, std::size_t count, std::uint64_t turns) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t chosen = mix(i);
    const std::size_t updated = chosen % (a.units - 1);
    const std::size_t behind = 2 + (chosen >> 32) % (a.units - 2);
    tasks.step(a.words + (updated + behind) % a.units * unit_words, a.words + updated * unit_words,
               turns);
  }
}

// A contestant's two programs, each until the last task has run.
struct ordered_programs {
  void (*cholesky)(const block_matrix& m);
  void (*steps)(const unit_array& a, std::size_t count, std::uint64_t turns);
};

}  // namespace bench
