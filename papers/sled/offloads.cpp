// Processes, their SPEs, and how each process waits; see offloads.hpp.
#include "sled/offloads.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace leveret_papers {

namespace {

constexpr unsigned processes = 6;
constexpr unsigned of_context = 3;
constexpr std::uint32_t stop = ~0u;
constexpr cycles look{20};

struct state {
  world& w;
  offloads what;
  cell::machine& m;
  std::array<cell::array<std::uint32_t>, processes> ends{};  // tasks that have ended, by SPE
  std::array<std::uint32_t, processes> begun{};
  std::array<cell::ppe_thread, processes> parents{};
  cell::ls_t flag = 0x8000;
  std::array<bool, processes> is_held{};  // somebody serves it
  unsigned open = processes;              // SPEs that have tasks left
  double idle_seconds = 0;                // of all SPEs, each from its first task to its last
};

void serve(cell::spe& s, state& st) {
  const unsigned me = s.index();
  const auto block = s.allocate<std::uint32_t>(32, 0x8000);
  const cell::local<std::uint32_t> flag{block.ls, block.data, 1};
  const auto end = s.allocate<std::uint32_t>(32);
  const double rate = st.w.constant(st.m.file(), "clock.rate");
  virtual_time begin{};
  virtual_time end_of_last{};
  for (std::uint32_t task = 1;; ++task) {
    if (flag[0] != task && flag[0] != stop) s.spin(flag, flag[0], look);
    if (flag[0] == stop) break;
    if (task == 1) begin = s.now();
    const double drawn = 1 + st.what.jitter * (s.random(2001) / 1000.0 - 1);
    const double seconds = st.what.task_us * 1e-6 * drawn;
    st.idle_seconds -= seconds;
    s.compute(cycles(static_cast<std::int64_t>(seconds * rate)));
    end_of_last = s.now();
    end[0] = task;
    s.putqlluc(end.ls, st.ends[me].ea, 0);
    if (st.what.how == waiting::interrupt) s.write_interrupt_mailbox(task);
  }
  st.idle_seconds += lev::seconds_of(end_of_last - begin);
}

void send(cell::ppe& p, state& st, unsigned spe, std::uint32_t value) {
  p.mmio_store(st.m.store_ea(spe, st.flag), &value, sizeof(value));
}

bool is_ready(cell::ppe& p, state& st, unsigned spe) {
  const bool is_out = st.begun[spe] > 0 && st.begun[spe] <= st.what.tasks;
  return is_out && p.load<std::uint32_t>(st.ends[spe].ea) == st.begun[spe];
}

// Handles what the SPE has computed and offloads again.
void offload_again(cell::ppe& p, state& st, unsigned spe) {
  p.compute(st.w.time_of("sled.handle"));
  const bool is_last = st.begun[spe] == st.what.tasks;
  ++st.begun[spe];
  if (is_last) --st.open;
  send(p, st, spe, is_last ? stop : st.begun[spe]);
}

// Figure 6 of the paper: passes over the entries of this context, then a yield to the ready one.
void wait_by_sled(cell::ppe& p, state& st, unsigned me) {
  const unsigned first = me / of_context * of_context;
  if (st.what.how == waiting::sled_in_kernel) p.yield_to(p.self());  // the way into the kernel
  while (!is_ready(p, st, me)) {
    bool has_yielded = false;
    for (unsigned pass = 0; pass < st.what.passes && !has_yielded; ++pass) {
      p.compute(st.w.time_of("sled.look"));
      for (unsigned other = first; other < first + of_context && !has_yielded; ++other)
        if (other != me && is_ready(p, st, other)) has_yielded = p.yield_to(st.parents[other]);
      if (is_ready(p, st, me)) return;
    }
    if (!has_yielded) p.yield();
  }
}

void wait_for_mine(cell::ppe& p, state& st, unsigned me) {
  switch (st.what.how) {
    case waiting::busy:
      for (auto found = p.load<std::uint32_t>(st.ends[me].ea); found != st.begun[me];)
        found = p.spin(st.ends[me].ea, found);
      return;
    case waiting::yield:
      while (!is_ready(p, st, me)) p.yield();
      return;
    case waiting::interrupt:
      (void)p.read_interrupt_mailbox(me);
      return;
    default:
      return wait_by_sled(p, st, me);
  }
}

void own_one(cell::ppe& p, state& st, unsigned me) {
  st.parents[me] = p.self();
  offload_again(p, st, me);
  while (st.begun[me] <= st.what.tasks) {
    wait_for_mine(p, st, me);
    offload_again(p, st, me);
  }
}

// Whoever runs looks at all; there is nothing to switch for.
void serve_all(cell::ppe& p, state& st, unsigned me) {
  st.parents[me] = p.self();
  while (st.open > 0) {
    p.compute(st.w.time_of("sled.look"));
    for (unsigned k = 0; k < processes; ++k) {
      const unsigned spe = (me + k) % processes;
      if (st.is_held[spe] || (st.begun[spe] > 0 && !is_ready(p, st, spe))) continue;
      if (st.is_held[spe]) continue;  // by the other context, meanwhile
      st.is_held[spe] = true;
      offload_again(p, st, spe);
      st.is_held[spe] = false;
      break;
    }
  }
}

// One process, six SPEs: each task is handled once, sent to all of them, and over when all are.
void split_each(cell::ppe& p, state& st) {
  for (std::uint32_t task = 1; task <= st.what.tasks + 1; ++task) {
    p.compute(st.w.time_of("sled.handle"));
    const bool is_over = task > st.what.tasks;
    for (unsigned spe = 0; spe < processes; ++spe) send(p, st, spe, is_over ? stop : task);
    for (unsigned spe = 0; spe < processes && !is_over; ++spe)
      for (auto found = p.load<std::uint32_t>(st.ends[spe].ea); found != task;)
        found = p.spin(st.ends[spe].ea, found);
  }
}

}  // namespace

double idle_us(world& w, const offloads& what) {
  cell::machine m(w.file("cell-ps3"));
  state st{w, what, m};
  for (auto& e : st.ends) e = m.memory<std::uint32_t>(32);
  if (what.how == waiting::one_of_six) m.ppe_program([&](cell::ppe& p) { split_each(p, st); });
  for (unsigned i = 0; i < processes; ++i) {
    m.spe_program(i, [&](cell::spe& s) { serve(s, st); });
    if (what.how == waiting::one_of_six) continue;
    m.ppe_program(
        [&, i](cell::ppe& p) {
          what.how == waiting::work_stealing ? serve_all(p, st, i) : own_one(p, st, i);
        },
        "process " + std::to_string(i), static_cast<int>(i / of_context));
  }
  w.run(m);
  return st.idle_seconds * 1e6 / (processes * (what.tasks - 1));
}

}  // namespace leveret_papers
