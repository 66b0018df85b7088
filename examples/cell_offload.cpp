// A simulated Cell: the PPE offloads work through mailboxes. It sends each SPE the address of a
// row; the SPE gets the row, adds it up, puts the sum behind it, and answers with the row's number.
#include <leveret/cell.hpp>

#include <cstdio>

namespace {

constexpr unsigned rows = 48;
constexpr unsigned columns = 1024;
constexpr std::uint32_t stop = ~0u;

struct row {
  float numbers[columns];
  float sum[4];  // 16 bytes: the next legal size above 8
};

void serve(lev::cell::spe& s, const lev::cell::array<row>& work) {
  const auto mine = s.allocate<row>(1);
  for (std::uint32_t which = s.read_mailbox(); which != stop; which = s.read_mailbox()) {
    s.get(mine, work.at(which), 0);
    s.wait_all(1u << 0);
    float sum = 0;
    for (const float x : mine[0].numbers) sum += x;
    mine[0].sum[0] = sum;
    s.compute(lev::cycles(columns / 2));
    s.put(mine, work.at(which), 0);
    s.wait_all(1u << 0);
    s.write_mailbox(which);
  }
}

}  // namespace

int main() {
  lev::cell::machine cell(lev::cell::machine_file::named("cell-ps3"));
  const auto work = cell.memory<row>(rows);
  for (unsigned i = 0; i < rows; ++i)
    for (float& x : work[i].numbers) x = static_cast<float>(i);
  const unsigned spes = cell.spe_count();
  for (unsigned i = 0; i < spes; ++i)
    cell.spe_program(i, [&](lev::cell::spe& s) { serve(s, work); });
  cell.ppe_program([&](lev::cell::ppe& p) {
    for (unsigned i = 0; i < rows; i += spes) {
      for (unsigned k = 0; k < spes; ++k) p.write_mailbox(k, i + k);
      for (unsigned k = 0; k < spes; ++k) p.read_mailbox(k);
    }
    for (unsigned k = 0; k < spes; ++k) p.write_mailbox(k, stop);
  });
  const lev::cell::report r = cell.run();
  for (unsigned i = 0; i < rows; ++i)
    if (work[i].sum[0] != static_cast<float>(i * columns)) return 1;
  std::printf("%u rows in %.1f us\n", rows, lev::seconds_of(r.time) * 1e6);
  return 0;
}
