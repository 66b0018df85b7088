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
// The flag is the first that is allocated behind the kernel, where both sides know it to be.
constexpr std::uint32_t flag_align = 0x8000;

struct state {
  world& w;
  offloads what;
  cell::machine& m;
  std::array<cell::array<std::uint32_t>, processes> ends{};  // tasks that have ended, by SPE
  std::array<std::uint32_t, processes> begun{};
  std::array<cell::ppe_thread, processes> parents{};
  cell::ls_t flag = 0;
  std::array<bool, processes> is_held{};  // somebody serves it
  unsigned open = processes;              // SPEs that have tasks left
  unsigned started = 0;                   // processes
  cell::array<std::uint32_t> kernel{};    // 1: a process polls in the kernel
  cell::array<std::uint32_t> arrived{};   // processes at their exchanges, of all tasks
  double idle_seconds = 0;                // of all SPEs, each from its first task to its last
};

void serve(cell::spe& s, state& st) {
  const unsigned me = s.index();
  const auto block = s.allocate<std::uint32_t>(32, flag_align);
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
  p.progress();
  p.compute(st.w.time_of("sled.handle"));
  const bool is_last = st.begun[spe] == st.what.tasks;
  ++st.begun[spe];
  if (is_last) --st.open;
  send(p, st, spe, is_last ? stop : st.begun[spe]);
}

// Section 3.1: the kernel chooses the next process inside a critical section. Where that is how
// processes wait, a system call of another finds the section taken.
bool has_section(const state& st) {
  return st.what.how == waiting::sled_in_kernel;
}
void enter_kernel(cell::ppe& p, state& st) {
  if (!has_section(st)) return;
  for (;;) {
    if (p.load_reserved(st.kernel.ea) != 0)
      (void)p.spin(st.kernel.ea, 1);
    else if (p.store_conditional(st.kernel.ea, 1))
      return;
  }
}
void leave_section(cell::ppe& p, state& st) {
  if (has_section(st)) p.store<std::uint32_t>(st.kernel.ea, 0);
}
void yield(cell::ppe& p, state& st) {
  enter_kernel(p, st);
  leave_section(p, st);
  p.yield();
}

// Figure 6 of the paper: passes over the entries of this context, each in the order of the list,
// the caller's own as any other. Whom to yield to: the first process that is ready, or none.
cell::ppe_thread next_to_run(cell::ppe& p, state& st, unsigned me) {
  const unsigned first = me / of_context * of_context;
  for (unsigned pass = 0; pass < st.what.passes; ++pass) {
    p.compute(st.w.time_of("sled.look"));
    for (unsigned each = first; each < first + of_context; ++each)
      if (is_ready(p, st, each)) return st.parents[each];
  }
  return nullptr;
}

void wait_by_sled(cell::ppe& p, state& st, unsigned me) {
  if (has_section(st)) p.yield_to(p.self());  // the way into the kernel
  while (!is_ready(p, st, me)) {
    enter_kernel(p, st);
    cell::ppe_thread next = next_to_run(p, st, me);
    leave_section(p, st);
    const bool is_own = next == p.self();  // the call finds nothing to switch to
    if (next == nullptr || (!p.yield_to(next) && !is_own)) p.yield();
  }
}

void wait_for_mine(cell::ppe& p, state& st, unsigned me) {
  switch (st.what.how) {
    case waiting::busy:
      for (auto found = p.load<std::uint32_t>(st.ends[me].ea); found != st.begun[me];)
        found = p.spin(st.ends[me].ea, found);
      return;
    case waiting::yield:
      while (!is_ready(p, st, me)) yield(p, st);
      return;
    case waiting::interrupt:
      (void)p.read_interrupt_mailbox(me);
      return;
    default:
      return wait_by_sled(p, st, me);
  }
}

// The processes of a program start together: none measures while others have not run yet.
void start_together(cell::ppe& p, state& st) {
  ++st.started;
  while (st.started < processes) p.yield();
}

// MPI_Allreduce, over a counter in memory: a process that is early yields until all are there.
void exchange(cell::ppe& p, state& st, unsigned me) {
  std::uint32_t before = 0;
  do before = p.load_reserved(st.arrived.ea);
  while (!p.store_conditional(st.arrived.ea, before + 1));
  while (p.load<std::uint32_t>(st.arrived.ea) < processes * st.begun[me]) yield(p, st);
}

void own_one(cell::ppe& p, state& st, unsigned me) {
  st.parents[me] = p.self();
  offload_again(p, st, me);
  start_together(p, st);
  while (st.begun[me] <= st.what.tasks) {
    wait_for_mine(p, st, me);
    if (st.what.reduces) exchange(p, st, me);
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
    p.progress();
    p.compute(st.w.time_of("sled.handle"));
    const bool is_over = task > st.what.tasks;
    for (unsigned spe = 0; spe < processes; ++spe) send(p, st, spe, is_over ? stop : task);
    for (unsigned spe = 0; spe < processes && !is_over; ++spe)
      for (auto found = p.load<std::uint32_t>(st.ends[spe].ea); found != task;)
        found = p.spin(st.ends[spe].ea, found);
  }
}

}  // namespace

namespace {

struct measured {
  double idle_seconds;
  double seconds;
};
measured run_offloads(world& w, const offloads& what) {
  cell::machine m(w.file("cell-ps3"), world::options());
  state st{w, what, m};
  const auto kernel = static_cast<std::uint32_t>(w.constant(m.file(), "spe.kernel")) << 10;
  st.flag = (kernel + flag_align - 1) / flag_align * flag_align;
  for (auto& e : st.ends) e = m.memory<std::uint32_t>(32);
  for (auto* words : {&st.kernel, &st.arrived}) *words = m.memory<std::uint32_t>(32);
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
  const double seconds = lev::seconds_of(w.run(m).time);
  return {st.idle_seconds, seconds};
}

}  // namespace

double idle_us(world& w, const offloads& what) {
  return run_offloads(w, what).idle_seconds * 1e6 / (processes * (what.tasks - 1));
}

double stage_us(world& w, const offloads& what) {
  return run_offloads(w, what).seconds * 1e6 / what.tasks;
}

}  // namespace leveret_papers
