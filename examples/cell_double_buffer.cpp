// A simulated Cell: one SPE sums numbers from main memory, block by block. With two buffers the
// next block is in flight while this one is added up.
#include <leveret/cell.hpp>

#include <cstdio>
#include <numeric>

namespace {

using lev::cell::array;

constexpr std::uint32_t block = 4096;  // numbers: a transfer of 16 KiB
constexpr unsigned blocks = 64;

double add_up(lev::cell::spe& s, const lev::cell::local<float>& numbers) {
  s.compute(lev::cycles(block));
  return std::accumulate(numbers.data, numbers.data + block, 0.0);
}

double with_one_buffer(lev::cell::spe& s, const array<float>& numbers) {
  const auto buffer = s.allocate<float>(block);
  double sum = 0;
  for (unsigned i = 0; i < blocks; ++i) {
    s.get(buffer, numbers.at(i * block), 0);
    s.wait_all(1u << 0);
    sum += add_up(s, buffer);
  }
  return sum;
}

double with_two_buffers(lev::cell::spe& s, const array<float>& numbers) {
  const lev::cell::local<float> buffers[] = {s.allocate<float>(block), s.allocate<float>(block)};
  double sum = 0;
  s.get(buffers[0], numbers.at(0), 0);
  for (unsigned i = 0; i < blocks; ++i) {
    const unsigned next = (i + 1) % 2;
    if (i + 1 < blocks) s.get(buffers[next], numbers.at((i + 1) * block), next);
    s.wait_all(1u << i % 2);
    sum += add_up(s, buffers[i % 2]);
  }
  return sum;
}

}  // namespace

int main() {
  double took[2] = {};
  for (const int way : {0, 1}) {
    lev::cell::machine cell(lev::cell::machine_file::named("cell-ps3"));
    const auto numbers = cell.memory<float>(blocks * block);
    for (std::size_t i = 0; i < numbers.size; ++i) numbers[i] = 1;
    double sum = 0;
    const auto way_of_adding = way == 0 ? with_one_buffer : with_two_buffers;
    cell.spe_program(0, [&](lev::cell::spe& s) { sum = way_of_adding(s, numbers); });
    took[way] = lev::seconds_of(cell.run().time) * 1e6;
    if (sum != blocks * block) return 1;
  }
  std::printf("one buffer: %.1f us, two buffers: %.1f us\n", took[0], took[1]);
  return took[1] < took[0] ? 0 : 1;
}
