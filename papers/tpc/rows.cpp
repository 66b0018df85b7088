// TPC: rows of docs/papers/results.md, T5 and T8.
#include <array>
#include <cmath>

#include "cellmt/stream.hpp"
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

// Section 4.2: a single argument of varying size, of no bytes as well.
tpc_outcome flow(world& w, unsigned spes, unsigned queue, std::uint32_t bytes) {
  tpc_calls c;
  c.spes = spes;
  c.queue = queue;
  c.tasks = 100 * spes;
  c.arguments = 1;
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
double transpose_rate(world& w, unsigned spes) {
  if (w.is_by_leveret())
    return bytes_per_second(w, {buffering::twofold, 1, 16384, 0, true, spes, "cell-ps3"});
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
}
double transpose_gain(world& w) {
  return transpose_rate(w, 6) / transpose_rate(w, 1);
}

// Section 3: three functions of LU became tasks, the perimeter's bdiv() and bmodd() and the inner
// bmod(), with the master waiting between the phases. The fourth, which factors the diagonal block
// before the perimeter, did not: the master's, of lines that an SPE has put, and at the most that
// its scalar unit does.
std::int64_t of_diagonal(world& w, unsigned block) {
  const double lines = double(block) * block * 4 / cell::line_bytes;
  const double flops = 2.0 / 3 * block * block * block;
  return std::llround(lines * w.constant(w.file("cell-ps3"), "ppe.missed_load") +
                      flops / w.number("tpc.master_rate"));
}

// LU of a 4096 x 4096 matrix by blocks, eight of its outer steps: diagonal, perimeter, then inner.
// As long as all of them would take.
double lu_seconds(world& w, unsigned spes, unsigned block) {
  constexpr unsigned steps = 8;
  const std::int64_t diagonal = of_diagonal(w, block);
  const unsigned rows = 4096 / block;
  const std::uint32_t bytes = block * block * 4;
  const double flops = 2.0 * block * block * block;
  const auto inner = static_cast<std::int64_t>(flops / w.number("tpc.lu_rate"));
  tpc_calls c;
  c.spes = spes;
  c.queue = 4;  // section 4.2: up to four are enough; section 4.3 has two for H.264 alone
  for (unsigned k = 0; k + 1 < rows; k += rows / steps) {
    const std::uint32_t left = rows - k - 1;
    c.steps.push_back({2 * left, 2, 2 * bytes, bytes, inner / 2, diagonal});
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
double saxpy_rate(world& w, unsigned spes) {
  tpc_calls c;
  c.spes = spes;
  c.queue = 4;
  c.steps = {{400, 2, 8192, 4096, static_cast<std::int64_t>(1024 * w.number("tpc.saxpy"))}};
  return run_tpc(w, c).bytes_per_second;
}
double saxpy_spes(world& w) {
  const double all = saxpy_rate(w, 6);
  for (unsigned spes = 1; spes < 6; ++spes)
    if (saxpy_rate(w, spes) >= reached * all) return spes;
  return 6;
}

// The six-step FFT of rows x rows complex elements: three transposes around two phases of
// transforms, a task for each row. Section 3: steps two and three are one call. Step three
// multiplies by the twiddle factors, which are as many as the row and an argument; step five has
// none.
tpc_step transforms(world& w, unsigned rows, bool has_twiddles) {
  const double each = 5.0 * std::log2(double(rows)) + (has_twiddles ? 6 : 0);
  const auto work = static_cast<std::int64_t>(each * rows * w.number("tpc.fft"));
  const std::uint32_t row = rows * 8;
  return has_twiddles ? tpc_step{rows, 2, 2 * row, row, work} : tpc_step{rows, 1, row, row, work};
}

// A transpose by blocks of 32 x 32, 8 KB, each through a local store. Their rows are apart.
tpc_step transpose(unsigned rows) {
  constexpr unsigned side = 32;
  constexpr std::uint32_t bytes = side * side * 8;
  return {rows / side * (rows / side), 2, bytes, bytes, 0, 0, side, rows * 8};
}

tpc_outcome fft(world& w, unsigned spes, const std::vector<tpc_step>& steps) {
  tpc_calls c;
  c.spes = spes;
  c.queue = 4;
  c.steps = steps;
  return run_tpc(w, c);
}

double seconds_of_64k(world& w, unsigned spes) {
  constexpr unsigned rows = 256;
  const tpc_step turn = transpose(rows);
  const std::vector<tpc_step> steps{turn, transforms(w, rows, true), turn,
                                    transforms(w, rows, false), turn};
  return fft(w, spes, steps).seconds;
}
double fft_of_64k(world& w) {
  return seconds_of_64k(w, 1) / seconds_of_64k(w, 6);
}

// Table 1: 8.8 % of one SPE's time are transposes, which gain 1.93, the rest 5.98.
double fft_of_4m(world&) {
  return 1 / ((1 - 0.088) / 5.98 + 0.088 / 1.93);
}

// Leveret counts no waits for copies: by how much longer the tasks take than without arguments.
template <unsigned Rows>
double waiting_of_fft(world& w) {
  const tpc_step step = transforms(w, Rows, true);
  const tpc_outcome all = fft(w, 6, {step});
  if (!w.is_by_leveret()) return 100 * all.waiting_share;
  tpc_step bare = step;
  bare.bytes_in = bare.bytes_out = 0;
  return 100 * (1 - fft(w, 6, {bare}).seconds / all.seconds);
}

// CONV2D of a part of the image, in blocks of 32 x 64; a mask of 5 x 5 needs two more on each side.
constexpr std::uint32_t block_in = 36 * 68 * 4 / 16 * 16;
constexpr std::uint32_t block_out = 32 * 64 * 4;
constexpr unsigned blocks = 600;

// The rival: each of six SPEs has its share of the blocks from the start, and nothing overlaps.
struct static_share {
  unsigned blocks;
  std::uint32_t bytes_in;
  std::uint32_t bytes_out;
  std::int64_t work;
};
double static_seconds(world& w, const static_share& what) {
  cell::machine m(w.file("cell-ps3"));
  const auto there = m.memory<char>(65536);
  for (unsigned i = 0; i < 6; ++i)
    m.spe_program(i, [&](cell::spe& s) {
      const auto here = s.allocate<char>(16384);
      for (unsigned k = 0; k < what.blocks / 6; ++k) {
        s.get(here.ls, there.ea, what.bytes_in, 0);
        s.wait_all(1);
        s.compute(cycles(what.work));
        s.put(here.ls, there.at(32768), what.bytes_out, 0);
        s.wait_all(1);
      }
    });
  return lev::seconds_of(w.run(m).time);
}

double overlap_of_convolution(world& w) {
  const auto work = static_cast<std::int64_t>(32 * 64 * w.number("tpc.convolution"));
  tpc_calls c;
  c.queue = 4;
  c.steps = {{blocks, 2, block_in, block_out, work}};
  return static_seconds(w, {blocks, block_in, block_out, work}) / run_tpc(w, c).seconds;
}

// PBPI: three loops over the sites of each node of the tree, a barrier after each. A site has four
// numbers for each of two children, and four of its own. As many tasks for each SPE, of 4 KB and
// more; the rival's are the same, from the start, and nothing overlaps.
double dynamic_over_static(world& w) {
  constexpr unsigned sites = 128;
  constexpr unsigned tasks = 36;
  constexpr unsigned loops = 3 * 10;
  const auto work = static_cast<std::int64_t>(sites * w.number("tpc.likelihood"));
  tpc_calls c;
  c.queue = 4;
  c.steps.assign(loops, {tasks, 3, sites * 32, sites * 16, work});
  const double rival = static_seconds(w, {loops * tasks, sites * 32, sites * 16, work});
  return rival / run_tpc(w, c).seconds;
}

double peak_of_bus(world& w) {
  return 8 * w.constant(w.file("cell-ps3"), "eib.port") * 1e-9;
}
// Eight operations in single precision each cycle.
double peak_of_spe(world& w) {
  return 8 * w.constant(w.file("cell-ps3"), "clock.rate") * 1e-9;
}

double repeats(world& w) {
  world again = w;
  const double first = lu_of_64(w);
  return first == lu_of_64(again) && w.hash() == again.hash() ? 1 : 0;
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
    row{"T5.15 4M", fft_of_4m},
    row{"T5.15 64K", fft_of_64k},
    row{"T5.16", transpose_gain},
    row{"T5.17 64K", waiting_of_fft<256>},
    row{"T5.17 4M", waiting_of_fft<2048>},
    row{"T5.19", saxpy_spes},
    row{"T5.20", overlap_of_convolution},
    row{"T5.21", dynamic_over_static},
    row{"T8.1", peak_of_memory},
    row{"T8.1 bus", peak_of_bus},
    row{"T8.1 SPE", peak_of_spe},
    row{"T8.2", repeats},
    row{"T8.4", order_of_ways},
};

std::vector<line_of_points> rates_by_spes(world& w) {
  std::vector<line_of_points> lines;
  for (const std::uint32_t bytes : {1024u, 4096u, 8192u, 16384u}) {
    lines.push_back({std::to_string(bytes) + " bytes", {}});
    for (unsigned spes = 1; spes <= 6; ++spes)
      lines.back().points.push_back(
          {double(spes), flow(w, spes, 4, bytes).bytes_per_second * 1e-9});
  }
  return lines;
}

std::vector<line_of_points> null_tasks_by_spes(world& w) {
  std::vector<line_of_points> lines;
  for (const unsigned queue : {1u, 2u, 4u, 8u}) {
    lines.push_back({std::to_string(queue) + " slots", {}});
    for (unsigned spes = 1; spes <= 6; ++spes)
      lines.back().points.push_back({double(spes), flow(w, spes, queue, 0).cycles_each});
  }
  return lines;
}

std::vector<line_of_points> lu_by_spes(world& w) {
  std::vector<line_of_points> lines;
  for (const unsigned block : {16u, 64u}) {
    lines.push_back({"blocks of " + std::to_string(block), {}});
    for (const unsigned spes : {1u, 2u, 4u, 6u})
      lines.back().points.push_back({double(spes), lu_seconds(w, spes, block)});
  }
  return lines;
}

std::vector<line_of_points> ways_by_arguments(world& w) {
  std::vector<line_of_points> lines;
  for (const bool starts_by_dma : {false, true})
    for (const bool ends_by_dma : {false, true}) {
      lines.push_back({std::string(starts_by_dma ? "DMA" : "MMIO") +
                           (ends_by_dma ? ", plain DMA" : ", atomic DMA"),
                       {}});
      for (unsigned k = 0; k <= 8; ++k)
        lines.back().points.push_back({double(k), null_task(w, k, starts_by_dma, ends_by_dma)});
    }
  return lines;
}

// The costs that the row T5.4 adds up, and what the run of all takes.
std::vector<line_of_points> parts_by_arguments(world& w) {
  std::vector<line_of_points> lines{{"PPE", {}}, {"SPE, list", {}}, {"SPE, rest", {}}, {"all", {}}};
  const double store = w.constant(w.file("cell-ps3"), "ppe.mmio_store");
  for (unsigned k = 0; k <= 8; ++k) {
    const double list =
        k == 0 ? 0 : w.number("tpc.list_first") + (k - 1) * w.number("tpc.list_more");
    const std::array parts{w.number("tpc.initiate") + k * store, list, w.number("tpc.serve"),
                           null_task(w, k, false, false)};
    for (std::size_t i = 0; i < parts.size(); ++i) lines[i].points.push_back({double(k), parts[i]});
  }
  return lines;
}

std::vector<line_of_points> fft_by_spes(world& w) {
  std::vector<line_of_points> lines{{"transforms", {}}, {"transposes", {}}};
  const std::vector<tpc_step> steps{transforms(w, 2048, true)};
  for (unsigned spes = 1; spes <= 6; ++spes) {
    lines[0].points.push_back(
        {double(spes), fft(w, 1, steps).seconds / fft(w, spes, steps).seconds});
    lines[1].points.push_back({double(spes), transpose_rate(w, spes) / transpose_rate(w, 1)});
  }
  return lines;
}

std::vector<line_of_points> fft_of_64k_by_spes(world& w) {
  std::vector<line_of_points> lines{{"64K elements", {}}};
  for (unsigned spes = 1; spes <= 6; ++spes)
    lines[0].points.push_back({double(spes), seconds_of_64k(w, spes) * 1e3});
  return lines;
}

std::vector<line_of_points> saxpy_by_spes(world& w) {
  std::vector<line_of_points> lines{{"SAXPY", {}}};
  for (unsigned spes = 1; spes <= 6; ++spes)
    lines[0].points.push_back({double(spes), saxpy_rate(w, spes) * 1e-9});
  return lines;
}

constexpr std::array figures{
    figure{"tpc", "S2 figure 1b", "a null task, by its start and its end", "arguments", "cycles",
           ways_by_arguments},
    figure{"tpc", "S2 figure 1c", "parts of a null task by MMIO and atomic DMA", "arguments",
           "cycles", parts_by_arguments},
    figure{"tpc", "S2 figure 3 FFT", "FFT", "SPEs", "ms", fft_of_64k_by_spes},
    figure{"tpc", "S2 figure 5", "SAXPY in blocks of 4 KB", "SPEs", "GB/s", saxpy_by_spes},
    figure{"tpc", "S2 table 1", "parts of an FFT of 4M", "SPEs", "speed-up", fft_by_spes},
    figure{"tpc", "S2 figure 2 data", "throughput of tasks with one argument, four slots", "SPEs",
           "GB/s", rates_by_spes},
    figure{"tpc", "S2 figure 2 null", "time of a null task", "SPEs", "cycles", null_tasks_by_spes},
    figure{"tpc", "S2 figure 3", "LU of 4096 x 4096", "SPEs", "seconds", lu_by_spes},
};

}  // namespace

std::span<const row> tpc_rows() {
  return rows;
}

std::span<const figure> tpc_figures() {
  return figures;
}

}  // namespace leveret_papers
