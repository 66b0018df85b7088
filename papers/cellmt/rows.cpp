// CellMT: rows of docs/papers/results.md, T4.
#include <algorithm>
#include <array>

#include "cellmt/stream.hpp"

namespace leveret_papers {

namespace {

constexpr unsigned many = 15;  // threads of the paper's comparisons

double rate(world& w, buffering how, unsigned threads, std::uint32_t bytes, double work,
            bool is_put_back) {
  return bytes_per_second(w, {how, threads, bytes, work, is_put_back});
}

// Threads over double buffering, read only.
double read_gain(world& w, unsigned threads, std::uint32_t bytes) {
  return rate(w, buffering::threads, threads, bytes, 0, false) /
         rate(w, buffering::twofold, 1, bytes, 0, false);
}

double update_gain(world& w, buffering to, std::uint32_t bytes, double work) {
  return rate(w, buffering::threads, many, bytes, work, true) / rate(w, to, 1, bytes, work, true);
}

unsigned threads_for(world& w, std::uint32_t bytes) {
  return std::min(many, threads_that_fit(w, bytes));
}

double yield_cycles(world& w) {
  cell::machine m(w.file("cell-qs20"));
  std::int64_t took = 0;
  m.spe_program(0, [&](cell::spe& s) {
    s.spawn([&s] {
      for (int i = 0; i < 100; ++i) s.yield();
    });
    const cycles begin = s.now_cycles();
    for (int i = 0; i < 100; ++i) s.yield();
    took = (s.now_cycles() - begin).count / 200;
  });
  w.run(m);
  return static_cast<double>(took);
}

// dmabench: one transfer at a time.
double latency(world& w, unsigned spes, std::uint32_t bytes = 128) {
  cell::machine m(w.file("cell-qs20"));
  const auto there = m.memory<char>(1 << 20);
  std::int64_t took = 0;
  for (unsigned i = 0; i < spes; ++i)
    m.spe_program(i, [&, i](cell::spe& s) {
      const auto b = s.allocate<char>(bytes);
      const cycles begin = s.now_cycles();
      for (int k = 0; k < 100; ++k) {
        s.get(b, there.at(std::size_t{bytes < 128 ? 128 : bytes} * i), 0);
        s.wait_all(1);
      }
      if (i == 0) took = (s.now_cycles() - begin).count / 100;
    });
  w.run(m);
  return static_cast<double>(took);
}

double latency_of_one(world& w) {
  return latency(w, 1);
}
double latency_of_all(world& w) {
  return latency(w, 16);
}
double read_peak(world& w) {
  return rate(w, buffering::twofold, 1, 16384, 0, false) * 1e-9;
}
double one_thread(world& w) {
  return read_gain(w, 1, 128);
}
double two_threads(world& w) {
  return read_gain(w, 2, 128);
}
double three_threads(world& w) {
  return read_gain(w, 3, 128);
}

double best_read_gain(world& w) {
  double best = 0;
  for (const std::uint32_t bytes : {16u, 32u, 64u, 128u})
    best = std::max(best, read_gain(w, many, bytes));
  return best;
}

// The largest block for which 15 threads still gain more than a tenth.
double end_of_read_gain(world& w) {
  double last = 0;
  for (const std::uint32_t bytes : {128u, 256u, 512u, 1024u, 2048u})
    if (read_gain(w, many, bytes) > 1.1) last = bytes;
  return last;
}

double large_blocks_are_equal(world& w) {
  return read_gain(w, threads_for(w, 4096), 4096);
}

double twofold_over_single(world& w) {
  return rate(w, buffering::twofold, 1, 128, 0, true) / rate(w, buffering::single, 1, 128, 0, true);
}

double twofold_of_much_work(world& w) {
  return rate(w, buffering::twofold, 1, 16384, 64, true) /
         rate(w, buffering::single, 1, 16384, 64, true);
}

double best_update_gain(world& w) {
  double best = 0;
  for (const std::uint32_t bytes : {16u, 64u, 128u})
    best = std::max(best, update_gain(w, buffering::twofold, bytes, 0));
  return best;
}

double update_gain_at_256(world& w) {
  return update_gain(w, buffering::twofold, 256, 4);
}

double best_gain_over_single(world& w) {
  double best = 0;
  for (const std::uint32_t bytes : {16u, 64u, 128u})
    best = std::max(best, update_gain(w, buffering::single, bytes, 0));
  return best;
}

// Sections 5.2 and 5.3: blocks of 16 bytes and more, 0 cycles for each byte and more. With 16 KiB,
// 15 threads do not fit.
double least_gain(world& w, buffering to) {
  double least = 10;
  for (std::uint32_t bytes = 16; bytes <= 8192; bytes *= 2)
    for (const double work : {0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0})
      least = std::min(least, update_gain(w, to, bytes, work));
  return least;
}
double least_over_twofold(world& w) {
  return least_gain(w, buffering::twofold);
}
double least_over_single(world& w) {
  return least_gain(w, buffering::single);
}

double update_peak(world& w) {
  return rate(w, buffering::twofold, 1, 16384, 0, true) * 1e-9;
}

double aes(world& w, buffering how, std::uint32_t bytes) {
  return rate(w, how, how == buffering::threads ? many : 1, bytes, w.number("cellmt.aes"), true);
}

double aes_small_by_threads(world& w) {
  for (const std::uint32_t bytes : {16u, 32u, 64u})
    if (aes(w, buffering::threads, bytes) <= aes(w, buffering::twofold, bytes)) return 0;
  return 1;
}
double aes_middle_by_buffers(world& w) {
  for (const std::uint32_t bytes : {128u, 256u, 512u})
    if (aes(w, buffering::twofold, bytes) <= aes(w, buffering::threads, bytes)) return 0;
  return 1;
}
double aes_single_is_worst(world& w) {
  for (const std::uint32_t bytes : {16u, 64u, 128u, 256u, 512u, 1024u}) {
    const double single = aes(w, buffering::single, bytes);
    if (single > aes(w, buffering::threads, bytes) || single > aes(w, buffering::twofold, bytes))
      return 0;
  }
  return 1;
}

double threads_of_largest(world& w) {
  return threads_that_fit(w, 16384);
}

// 0.7 ticks of the time base.
double yield_by_ticks(world& w) {
  return 0.7 * 3.2e9 / w.number("cellmt.time_base");
}

constexpr std::array rows{
    row{"T4.1", yield_cycles},
    row{"T4.2 one", latency_of_one},
    row{"T4.2 all", latency_of_all},
    row{"T4.3", read_peak},
    row{"T4.4 MT1", one_thread},
    row{"T4.4 MT2", two_threads},
    row{"T4.4 MT3", three_threads},
    row{"T4.5", best_read_gain},
    row{"T4.6 end", end_of_read_gain},
    row{"T4.6 large", large_blocks_are_equal},
    row{"T4.7 small", twofold_over_single},
    row{"T4.7 large", twofold_of_much_work},
    row{"T4.8 most", best_update_gain},
    row{"T4.8 at 256", update_gain_at_256},
    row{"T4.9", best_gain_over_single},
    row{"T4.10 DB", least_over_twofold},
    row{"T4.10 SB", least_over_single},
    row{"T4.11", update_peak},
    row{"T4.13 small", aes_small_by_threads},
    row{"T4.13 middle", aes_middle_by_buffers},
    row{"T4.13 single", aes_single_is_worst},
    row{"T4.15", threads_of_largest},
    row{"T4.16", yield_by_ticks},
};

constexpr std::array block_sizes{16u, 32u, 64u, 128u, 256u, 512u, 1024u, 2048u, 4096u};

std::vector<line_of_points> by_block_size(world& w, bool is_put_back) {
  std::vector<line_of_points> lines{
      {"one buffer", {}}, {"two buffers", {}}, {"3 threads", {}}, {"15 threads", {}}};
  for (const std::uint32_t bytes : block_sizes) {
    const double one = rate(w, buffering::single, 1, bytes, 0, is_put_back);
    const double two = rate(w, buffering::twofold, 1, bytes, 0, is_put_back);
    const double three = rate(w, buffering::threads, 3, bytes, 0, is_put_back);
    const double all = rate(w, buffering::threads, threads_for(w, bytes), bytes, 0, is_put_back);
    std::size_t i = 0;
    for (const double y : {one, two, three, all})
      lines[i++].points.push_back({double(bytes), y * 1e-9});
  }
  return lines;
}
std::vector<line_of_points> reads_by_block_size(world& w) {
  return by_block_size(w, false);
}
std::vector<line_of_points> updates_by_block_size(world& w) {
  return by_block_size(w, true);
}

std::vector<line_of_points> aes_by_block_size(world& w) {
  std::vector<line_of_points> lines{{"one buffer", {}}, {"two buffers", {}}, {"15 threads", {}}};
  for (const std::uint32_t bytes : {16u, 32u, 64u, 128u, 256u, 512u, 1024u}) {
    std::size_t i = 0;
    for (const buffering how : {buffering::single, buffering::twofold, buffering::threads})
      lines[i++].points.push_back({double(bytes), aes(w, how, bytes) * 1e-9});
  }
  return lines;
}

std::vector<line_of_points> latencies_by_size(world& w) {
  std::vector<line_of_points> lines;
  for (const unsigned spes : {1u, 8u, 16u}) {
    lines.push_back({std::to_string(spes) + (spes == 1 ? " SPE" : " SPEs"), {}});
    for (std::uint32_t bytes = 8; bytes <= 16384; bytes *= 2)
      lines.back().points.push_back({double(bytes), latency(w, spes, bytes)});
  }
  return lines;
}

std::vector<line_of_points> read_gains_by_size(world& w) {
  std::vector<line_of_points> lines;
  for (const unsigned threads : {1u, 2u, 3u, 4u, 8u, 15u}) {
    lines.push_back({std::to_string(threads) + (threads == 1 ? " thread" : " threads"), {}});
    for (const std::uint32_t bytes : block_sizes)
      lines.back().points.push_back({double(bytes), read_gain(w, threads, bytes)});
  }
  return lines;
}

constexpr std::array works{0u, 4u, 16u, 64u};

// One line for each amount of work.
template <class Ratio>
std::vector<line_of_points> by_size_and_work(const Ratio& ratio) {
  std::vector<line_of_points> lines;
  for (const unsigned work : works) {
    lines.push_back({std::to_string(work) + " cycles for each byte", {}});
    for (const std::uint32_t bytes : block_sizes)
      lines.back().points.push_back({double(bytes), ratio(bytes, work)});
  }
  return lines;
}
std::vector<line_of_points> two_buffers_over_one(world& w) {
  return by_size_and_work([&](std::uint32_t bytes, unsigned work) {
    return rate(w, buffering::twofold, 1, bytes, work, true) /
           rate(w, buffering::single, 1, bytes, work, true);
  });
}
std::vector<line_of_points> threads_over_two_buffers(world& w) {
  return by_size_and_work([&](std::uint32_t bytes, unsigned work) {
    return update_gain(w, buffering::twofold, bytes, work);
  });
}

constexpr std::array figures{
    figure{"cellmt", "S1 figure 2", "a transfer, one at a time", "bytes", "cycles",
           latencies_by_size},
    figure{"cellmt", "S1 figure 4", "threads over two buffers, read only, sixteen SPEs",
           "bytes of a block", "times as fast", read_gains_by_size},
    figure{"cellmt", "S1 figure 8", "two buffers over one, read and written, sixteen SPEs",
           "bytes of a block", "times as fast", two_buffers_over_one},
    figure{"cellmt", "S1 figure 9", "15 threads over two buffers, read and written, sixteen SPEs",
           "bytes of a block", "times as fast", threads_over_two_buffers},
    figure{"cellmt", "S1 figure 3", "blocks that are read, sixteen SPEs", "bytes of a block",
           "GB/s", reads_by_block_size},
    figure{"cellmt", "S1 figures 5 to 7", "blocks that are read and written, sixteen SPEs",
           "bytes of a block", "GB/s", updates_by_block_size},
    figure{"cellmt", "S1 figure 10", "AES, sixteen SPEs", "bytes of a block", "GB/s",
           aes_by_block_size},
};

}  // namespace

std::span<const row> cellmt_rows() {
  return rows;
}

std::span<const figure> cellmt_figures() {
  return figures;
}

}  // namespace leveret_papers
