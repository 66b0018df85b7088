// The three ways of the synthetic benchmark, as the listings have them; see stream.hpp.
#include "cellmt/stream.hpp"

#include <algorithm>
#include <cmath>

#include "leveret/by_leveret.hpp"

namespace leveret_papers {

namespace {

constexpr std::uint32_t share_bytes = 1 << 20;  // of memory for an SPE; read again and again

struct plan {
  stream what;
  cell::ea_t ea;
  unsigned blocks;  // of one SPE

  cell::ea_t place(unsigned i) const { return ea + std::uint64_t{i} * what.bytes % share_bytes; }
  cycles work() const {
    return cycles(static_cast<std::int64_t>(std::llround(what.cycles_per_byte * what.bytes)));
  }
};

using block = cell::local<char>;

// Listing 1: the next get stands behind the put of the same buffer.
void by_one_buffer(cell::spe& s, const plan& p, unsigned first, unsigned step, unsigned tag,
                   bool is_threaded) {
  const block b = s.allocate<char>(p.what.bytes);
  for (unsigned i = first; i < p.blocks; i += step) {
    s.get(b, p.place(i), tag, cell::order::barrier);
    if (is_threaded) {
      do {
        s.yield();  // Listing 2
      } while (s.tags_done(1u << tag) == 0);
    } else {
      s.wait_all(1u << tag);
    }
    s.progress();
    s.compute(p.work());
    if (p.what.is_put_back) s.put(b, p.place(i), tag);
  }
  s.wait_all(1u << tag);
}

// Listing 3: two buffers with a tag each; a get stands behind the put of its buffer.
void by_two_buffers(cell::spe& s, const plan& p) {
  const block b[] = {s.allocate<char>(p.what.bytes), s.allocate<char>(p.what.bytes)};
  s.get(b[0], p.place(0), 0);
  for (unsigned i = 0; i < p.blocks; ++i) {
    const unsigned mine = i % 2;
    const unsigned next = 1 - mine;
    if (i + 1 < p.blocks) s.get(b[next], p.place(i + 1), next, cell::order::barrier);
    s.wait_all(1u << mine);
    s.progress();
    s.compute(p.work());
    if (p.what.is_put_back) s.put(b[mine], p.place(i), mine);
  }
  s.wait_all(3);
}

void run_threads(cell::spe& s, const plan& p) {
  const unsigned n = p.what.threads;
  for (unsigned t = 1; t < n; ++t) s.spawn([&s, &p, t, n] { by_one_buffer(s, p, t, n, t, true); });
  by_one_buffer(s, p, 0, n, 0, true);
  for (unsigned t = 1; t < n; ++t) s.join(t);
}

}  // namespace

double bytes_per_second(world& w, const stream& what) {
  if (w.is_by_leveret()) return bytes_per_second_by_leveret(w, what);
  constexpr unsigned blocks_each = 40;
  const unsigned blocks = blocks_each * std::max(15u, what.threads);
  cell::machine m(w.file(what.machine), world::options(false));
  std::vector<plan> plans;
  for (unsigned i = 0; i < what.spes; ++i)
    plans.push_back({what, m.memory<char>(share_bytes, m.chip_of(i)).ea, blocks});
  for (unsigned i = 0; i < what.spes; ++i)
    m.spe_program(i, [&, i](cell::spe& s) {
      const plan& p = plans[i];
      if (what.how == buffering::threads)
        run_threads(s, p);
      else if (what.how == buffering::twofold)
        by_two_buffers(s, p);
      else
        by_one_buffer(s, p, 0, 1, 0, false);
    });
  const double seconds = lev::seconds_of(w.run(m).time);
  return double(what.bytes) * blocks * what.spes / seconds;
}

unsigned threads_that_fit(world& w, std::uint32_t bytes) {
  cell::machine m(w.file("cell-qs20"));
  unsigned fit = 0;
  m.spe_program(0, [&](cell::spe& s) {
    try {
      // The library is static: it has the stacks of 16 threads, however many there are.
      for (unsigned t = 1; t < 16; ++t) s.spawn([] {});
      for (; fit < 16; ++fit) s.allocate<char>(bytes);
    } catch (const cell::error&) {
      // What did not fit is what was asked.
    }
  });
  w.run(m);
  return fit;
}

}  // namespace leveret_papers
