// A simulated Cell: a spin lock on a line of memory, taken with getllar and putllc. Six SPEs add to
// a counter that only the lock protects.
#include <leveret/cell.hpp>

#include <cstdio>

namespace {

using words = lev::cell::local<std::uint32_t>;

void acquire(lev::cell::spe& s, const words& line, lev::cell::ea_t lock) {
  for (;;) {
    s.getllar(line.ls, lock);
    if (line[0] != 0) {  // taken: look again when another SPE has written the line
      s.wait_lost_reservation();
      continue;
    }
    line[0] = 1;
    if (s.putllc(line.ls, lock)) return;
  }
}

void release(lev::cell::spe& s, const words& line, lev::cell::ea_t lock) {
  line[0] = 0;
  s.putlluc(line.ls, lock);
}

}  // namespace

int main() {
  lev::cell::machine cell(lev::cell::machine_file::named("cell-ps3"));
  const auto lock = cell.memory<std::uint32_t>(32);
  const auto counter = cell.memory<std::uint32_t>(32);
  for (unsigned i = 0; i < cell.spe_count(); ++i) {
    cell.spe_program(i, [&](lev::cell::spe& s) {
      const auto line = s.allocate<std::uint32_t>(32);
      const auto mine = s.allocate<std::uint32_t>(32);
      for (int k = 0; k < 100; ++k) {
        acquire(s, line, lock.ea);
        s.get(mine, counter.ea, 0);
        s.wait_all(1u << 0);
        ++mine[0];
        s.put(mine, counter.ea, 0);
        s.wait_all(1u << 0);
        release(s, line, lock.ea);
        s.compute(lev::cycles(s.random(2000)));
      }
    });
  }
  const lev::cell::report r = cell.run();
  std::printf("%u additions under the lock, %.2f us each\n", counter[0],
              lev::seconds_of(r.time) * 1e6 / counter[0]);
  return counter[0] == 600 ? 0 : 1;
}
