// TPC: rows of docs/papers/results.md, T5 and T8.
#include <array>
#include <cmath>

#include "tpc/calls.hpp"

namespace leveret_papers {

namespace {

double null_task(world& w, unsigned arguments, bool starts_by_dma, bool ends_by_dma) {
  tpc_calls c;
  c.spes = 1;
  c.tasks = 100;
  c.arguments = arguments;
  c.starts_by_dma = starts_by_dma;
  c.ends_by_dma = ends_by_dma;
  c.waits_for_each = true;
  return run_tpc(w, c).cycles_each;
}

double least(world& w) {
  return null_task(w, 0, false, false);
}
double with_eight(world& w) {
  return null_task(w, 8, false, false);
}
double of_breakdown(world& w) {
  const double ppe =
      w.number("tpc.initiate") + 8 * w.constant(w.file("cell-ps3"), "ppe.mmio_store");
  const double list = w.number("tpc.list_first") + 7 * w.number("tpc.list_more");
  return ppe + 800 + w.number("tpc.serve") + list;
}
double by_dma_start(world& w) {
  return null_task(w, 0, true, false) - least(w);
}
double by_dma_end(world& w) {
  return null_task(w, 0, false, true) - least(w);
}
double ideal_ratio(world&) {
  return 1230 / (312e-9 * 3.2e9);
}

double order_of_ways(world& w) {
  const double mmio_atomic = null_task(w, 0, false, false);
  const double mmio_dma = null_task(w, 0, false, true);
  const double dma_atomic = null_task(w, 0, true, false);
  const double dma_dma = null_task(w, 0, true, true);
  return mmio_atomic < mmio_dma && mmio_dma < dma_atomic && dma_atomic < dma_dma ? 1 : 0;
}

tpc_outcome flow(world& w, unsigned spes, unsigned queue, std::uint32_t bytes) {
  tpc_calls c;
  c.spes = spes;
  c.queue = queue;
  c.tasks = 100 * spes;
  c.arguments = bytes > 0 ? 1 : 0;
  c.bytes_in = bytes;
  c.is_generic = true;
  return run_tpc(w, c);
}

double pipelined(world& w) {
  return flow(w, 4, 4, 0).cycles_each;
}
double longer_queue(world& w) {
  return flow(w, 6, 8, 0).cycles_each > flow(w, 6, 4, 0).cycles_each ? 1 : 0;
}
double longer_queue_of_data(world& w) {
  return flow(w, 6, 8, 4096).cycles_each > flow(w, 6, 4, 4096).cycles_each ? 1 : 0;
}

// The most that memory gives, as the largest arguments reach it.
double most(world& w) {
  return flow(w, 6, 4, 16384).bytes_per_second;
}
constexpr double reached = 0.9;  // of the most

double eight_kib_reach_it(world& w) {
  const double all = most(w);
  for (const unsigned spes : {3u, 4u, 6u})
    for (const unsigned queue : {2u, 4u})
      if (flow(w, spes, queue, 8192).bytes_per_second < reached * all) return 0;
  return flow(w, 2, 2, 8192).bytes_per_second < reached * all ? 1 : 0;
}

double spes_without_queue(world& w) {
  const double all = most(w);
  for (unsigned spes = 1; spes <= 6; ++spes)
    if (flow(w, spes, 1, 8192).bytes_per_second >= reached * all) return spes;
  return 7;
}

double four_kib(world& w) {
  return 100 * flow(w, 2, 4, 4096).bytes_per_second / most(w);
}
double one_kib(world& w) {
  return flow(w, 4, 4, 1024).bytes_per_second * 1e-9;
}

// A transpose: each block of the matrix is got and put, no work.
double transpose_gain(world& w) {
  const auto rate = [&](unsigned spes) {
    cell::machine m(w.file("cell-ps3"));
    const auto there = m.memory<char>(1 << 20);
    for (unsigned i = 0; i < spes; ++i)
      m.spe_program(i, [&](cell::spe& s) {
        const cell::local<char> b[] = {s.allocate<char>(16384), s.allocate<char>(16384)};
        for (unsigned k = 0; k < 60; ++k) {
          s.get(b[k % 2], there.at(16384 * (k % 60)), k % 2, cell::order::barrier);
          s.put(b[k % 2], there.at(16384 * (k % 60)), k % 2, cell::order::fence);
        }
        s.wait_all(3);
      });
    return spes / lev::seconds_of(w.run(m).time);
  };
  return rate(6) / rate(1);
}

// LU of a 4096 x 4096 matrix by blocks, eight of its outer steps: perimeter, then inner. As long as
// all of them would take.
double lu_seconds(world& w, unsigned spes, unsigned block) {
  constexpr unsigned steps = 8;
  const unsigned rows = 4096 / block;
  const std::uint32_t bytes = block * block * 4;
  const double flops = 2.0 * block * block * block;
  const auto inner = static_cast<std::int64_t>(flops / w.number("tpc.lu_rate"));
  tpc_calls c;
  c.spes = spes;
  c.queue = block > 32 ? 2 : 4;
  for (unsigned k = 0; k + 1 < rows; k += rows / steps) {
    const std::uint32_t left = rows - k - 1;
    c.steps.push_back({2 * left, 2, 2 * bytes, bytes, inner / 2});
    c.steps.push_back({left * left, 3, 3 * bytes, bytes, inner});
  }
  return run_tpc(w, c).seconds * rows / steps;
}

double fine_over_coarse(world& w) {
  return lu_seconds(w, 1, 16) / lu_seconds(w, 1, 64);
}
double lu_of_16(world& w) {
  return lu_seconds(w, 1, 16) / lu_seconds(w, 6, 16);
}
double lu_of_64(world& w) {
  return lu_seconds(w, 1, 64) / lu_seconds(w, 6, 64);
}

// SAXPY of blocks of 4 KB: the fewest SPEs that do nine tenths of what six do.
double saxpy_spes(world& w) {
  const auto rate = [&](unsigned spes) {
    tpc_calls c;
    c.spes = spes;
    c.queue = 4;
    c.steps = {{400, 2, 8192, 4096, static_cast<std::int64_t>(1024 * w.number("tpc.saxpy"))}};
    return run_tpc(w, c).bytes_per_second;
  };
  const double all = rate(6);
  for (unsigned spes = 1; spes < 6; ++spes)
    if (rate(spes) >= reached * all) return spes;
  return 6;
}

double peak_of_memory(world& w) {
  return w.constant(w.file("cell-ps3"), "memory.rate") * 1e-9;
}

constexpr std::array rows{
    row{"T5.1 eight", with_eight},
    row{"T5.2", least},
    row{"T5.3 start", by_dma_start},
    row{"T5.3 end", by_dma_end},
    row{"T5.4", of_breakdown},
    row{"T5.5", ideal_ratio},
    row{"T5.6", pipelined},
    row{"T5.7", longer_queue},
    row{"T5.8", eight_kib_reach_it},
    row{"T5.9", spes_without_queue},
    row{"T5.10", four_kib},
    row{"T5.11", one_kib},
    row{"T5.12", longer_queue_of_data},
    row{"T5.13 16x16", lu_of_16},
    row{"T5.13 64x64", lu_of_64},
    row{"T5.14", fine_over_coarse},
    row{"T5.16", transpose_gain},
    row{"T5.19", saxpy_spes},
    row{"T8.1", peak_of_memory},
    row{"T8.4", order_of_ways},
};

}  // namespace

std::span<const row> tpc_rows() {
  return rows;
}

}  // namespace leveret_papers
