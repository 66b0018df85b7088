// Both sides of a call, as the paper's section 3 describes them; see calls.hpp.
#include "tpc/calls.hpp"

#include <algorithm>
#include <vector>

#include "leveret/by_leveret.hpp"

namespace leveret_papers {

namespace {

constexpr unsigned words_of_line = 32;
constexpr cycles look{20};  // at a word of the local store
// The flags are the first that is allocated behind the kernel, where both sides know them to be.
constexpr std::uint32_t flags_align = 0x2000;

// What both sides know of one SPE.
struct side {
  cell::ls_t flags = 0;             // a line for each slot: the number of the task that is there
  cell::array<std::uint32_t> ends;  // the same in memory: the number of the last that ended
  cell::array<std::uint32_t> descriptors;
  cell::ea_t data = 0;
  std::vector<std::uint32_t> sent;  // the number of the last task of each slot
};

struct calls {
  world& w;
  tpc_calls what;
  cell::machine& m;
  std::vector<side> sides;
  virtual_time waited{};              // of all SPEs, for arguments
  std::vector<std::uint32_t> ends{};  // of the steps: the number of the first task behind each

  // The step of a task, by its number among all.
  const tpc_step& step_of(std::uint32_t index) const {
    const auto found = std::upper_bound(ends.begin(), ends.end(), index);
    return what.steps[static_cast<std::size_t>(found - ends.begin())];
  }
  bool is_first_of_step(std::uint32_t index) const {
    return std::binary_search(ends.begin(), ends.end(), index);
  }
  // The largest of the steps: what a slot must hold.
  std::uint32_t slot_bytes() const {
    std::uint32_t most = 128;
    for (const tpc_step& s : what.steps) most = std::max({most, s.bytes_in, s.bytes_out});
    return most;
  }
  std::uint32_t data_bytes() const {
    std::uint32_t most = slot_bytes();
    for (const tpc_step& s : what.steps) most = std::max(most, s.rows * s.stride);
    return most;
  }
  std::uint32_t most_rows() const {
    std::uint32_t most = 1;
    for (const tpc_step& s : what.steps) most = std::max(most, s.rows);
    return most;
  }
  std::uint32_t tasks_of(unsigned spe) const {
    return what.tasks / what.spes + (spe < what.tasks % what.spes ? 1 : 0);
  }
};

using line = cell::local<std::uint32_t>;

struct worker {
  cell::spe& s;
  calls& c;
  side& mine;
  line flags;
  line end;
  cell::local<char> data;
  cell::local<cell::list_element> lists;  // two of each slot: in, out

  std::uint32_t slot_of(std::uint32_t task) const { return (task - 1) % c.what.queue; }
  bool is_active(std::uint32_t task) const { return flags[slot_of(task) * words_of_line] == task; }
  line flag(std::uint32_t task) const {
    const std::uint32_t at = slot_of(task) * words_of_line;
    return {flags.at(at), flags.data + at, 1};
  }
  std::uint32_t data_at(std::uint32_t task) const {
    return data.ls + slot_of(task) * c.slot_bytes();
  }
  const tpc_step& step_of(std::uint32_t task) const {
    return c.step_of((task - 1) * c.what.spes + s.index());
  }

  // Section 5: what is not contiguous is always mapped to elements of DMA lists.
  void transfer_rows(std::uint32_t task, bool is_get, std::uint32_t bytes) {
    const tpc_step& step = step_of(task);
    const std::uint32_t most = c.most_rows();
    const std::uint32_t first = (2 * slot_of(task) + (is_get ? 0 : 1)) * most;
    const cell::local<cell::list_element> list{lists.at(first), lists.data + first, step.rows};
    for (std::uint32_t i = 0; i < step.rows; ++i) {
      const auto low = static_cast<std::uint32_t>(mine.data + std::uint64_t{i} * step.stride);
      list[i] = cell::list_element{bytes / step.rows, low};
    }
    if (is_get)
      s.get_list(data_at(task), mine.data, list, slot_of(task));
    else
      s.put_list(data_at(task), mine.data, list, slot_of(task));
  }

  void transfer(std::uint32_t task, bool is_get, std::uint32_t bytes) {
    if (step_of(task).rows > 1) return transfer_rows(task, is_get, bytes);
    for (std::uint32_t done = 0; done < bytes; done += cell::largest_transfer) {
      const auto part = std::min<std::uint32_t>(bytes - done, cell::largest_transfer);
      const unsigned tag = slot_of(task);
      if (is_get)
        s.get(data_at(task) + done, mine.data + done, part, tag);
      else
        s.put(data_at(task) + done, mine.data + done, part, tag);
    }
  }

  // Detection, buffers, the list of arguments; then their transfers begin.
  void fetch(std::uint32_t task) {
    const cycles issue(static_cast<std::int64_t>(c.w.constant(c.m.file(), "mfc.issue")));
    s.compute(c.w.cost_of("tpc.serve") - issue);  // which is the completion's
    const tpc_step& step = step_of(task);
    if (step.arguments > 0)
      s.compute(c.w.cost_of("tpc.list_first") +
                c.w.cost_of("tpc.list_more") * (step.arguments - 1));
    transfer(task, true, step.bytes_in);
  }

  // Its results begin their way back, and its completion behind them, in the same tag group: the
  // MFC keeps that order, the SPE need not wait.
  void execute(std::uint32_t task) {
    const tpc_step& step = step_of(task);
    s.progress(c.m.clock().time_of(cycles(step.work)));
    s.compute(cycles(step.work));
    transfer(task, false, step.bytes_out);
    const std::uint32_t at = slot_of(task) * words_of_line;
    end[at] = task;
    if (c.what.ends_by_dma)
      s.put(end.at(at), mine.ends.at(at), 128, slot_of(task), cell::order::fence);
    else
      s.putqlluc(end.at(at), mine.ends.at(at), slot_of(task));
  }

  // A look that finds nothing is time spent waiting.
  bool is_fetched(std::uint32_t task) {
    if (step_of(task).bytes_in == 0) return true;
    const virtual_time begin = s.now();
    if (s.tags_done(1u << slot_of(task)) != 0) return true;
    c.waited += s.now() - begin;
    return false;
  }

  // The paper's states: a task is active, fetched (until its arguments are there), executed (until
  // its results are), complete. As many as are active are fetched before one is executed.
  void run(std::uint32_t count) {
    std::uint32_t fetched = 0;
    std::uint32_t executed = 0;
    while (executed < count) {
      if (fetched < count && is_active(fetched + 1)) {
        fetch(++fetched);
      } else if (executed == fetched) {
        const line f = flag(fetched + 1);
        s.spin(f, f[0], look);
      } else if (is_fetched(executed + 1)) {
        execute(++executed);
      }
    }
    s.wait_all((1u << c.what.queue) - 1);
  }
};

// The PPE's side. What is stored over MMIO is a part of the cost of a call.
void initiate(cell::ppe& p, calls& c, unsigned spe, std::uint32_t task, unsigned arguments) {
  side& to = c.sides[spe];
  const unsigned slot = (task - 1) % c.what.queue;
  const cycles store(static_cast<std::int64_t>(c.w.constant(c.m.file(), "ppe.mmio_store")));
  const cycles all = c.w.cost_of(c.what.is_generic ? "tpc.call" : "tpc.initiate");
  const cell::ea_t flag = c.m.store_ea(spe, to.flags + slot * 128);
  const std::uint32_t words[4] = {task, 0, 0, 0};
  to.sent[slot] = task;
  if (c.what.starts_by_dma) {
    p.compute(all);
    to.descriptors[slot * words_of_line] = task;
    p.proxy_get(spe, to.flags + slot * 128, to.descriptors.at(slot * words_of_line), 128, 0);
    return;
  }
  // The generic call was measured whole, with the look at the slot.
  const cycles glance(static_cast<std::int64_t>(c.w.constant(c.m.file(), "ppe.cached_load")));
  p.compute(c.what.is_generic ? all - store * (1 + arguments) - glance : all - store);
  for (unsigned i = 0; i < arguments; ++i) p.mmio_store(flag + 16 * (1 + i % 7), words, 16);
  p.mmio_store(flag, words, 16);
}

void wait_for(cell::ppe& p, calls& c, unsigned spe, std::uint32_t task) {
  const unsigned slot = (task - 1) % c.what.queue;
  const cell::ea_t word = c.sides[spe].ends.at(slot * words_of_line);
  for (std::uint32_t found = p.load<std::uint32_t>(word); found < task;)
    found = p.spin(word, found);
}

// Of those before the one of that number.
void wait_for_all(cell::ppe& p, calls& c, std::uint32_t index) {
  for (unsigned spe = 0; spe < c.what.spes; ++spe) {
    const std::uint32_t task = index / c.what.spes + (spe < index % c.what.spes ? 1 : 0);
    if (task > 0) wait_for(p, c, spe, task);
  }
}

void submit_all(cell::ppe& p, calls& c) {
  for (std::uint32_t i = 0; i < c.what.tasks; ++i) {
    if (c.is_first_of_step(i)) wait_for_all(p, c, i);
    if (i == 0 || c.is_first_of_step(i)) p.compute(cycles(c.step_of(i).serial));
    const unsigned spe = i % c.what.spes;
    const std::uint32_t task = i / c.what.spes + 1;
    const bool is_known_free = c.what.waits_for_each || task <= c.what.queue;
    if (!is_known_free) wait_for(p, c, spe, task - c.what.queue);  // a stall of the queue
    initiate(p, c, spe, task, c.step_of(i).arguments);
    if (c.what.waits_for_each) wait_for(p, c, spe, task);
  }
  wait_for_all(p, c, c.what.tasks);
}

void prepare(calls& c, unsigned spe) {
  side& s = c.sides[spe];
  const std::size_t words = c.what.queue * words_of_line;
  s.ends = c.m.memory<std::uint32_t>(words);
  s.descriptors = c.m.memory<std::uint32_t>(words);
  s.data = c.m.memory<char>(c.data_bytes()).ea;
  s.sent.assign(c.what.queue, 0);
  const auto kernel = static_cast<std::uint32_t>(c.w.constant(c.m.file(), "spe.kernel")) << 10;
  s.flags = (kernel + flags_align - 1) / flags_align * flags_align;
}

}  // namespace

tpc_outcome run_tpc(world& w, const tpc_calls& what) {
  if (w.is_by_leveret()) return run_tpc_by_leveret(w, what);
  cell::machine m(w.file("cell-ps3"), world::options(false));
  calls c{w, what, m, std::vector<side>(what.spes)};
  if (what.steps.empty())
    c.what.steps = {{what.tasks, what.arguments, what.bytes_in, what.bytes_out, what.work}};
  c.what.tasks = 0;
  double bytes = 0;
  for (const tpc_step& step : c.what.steps) {
    c.ends.push_back(c.what.tasks += step.tasks);
    bytes += double(step.bytes_in + step.bytes_out) * step.tasks;
  }
  for (unsigned i = 0; i < what.spes; ++i) prepare(c, i);
  for (unsigned i = 0; i < what.spes; ++i)
    m.spe_program(i, [&, i](cell::spe& s) {
      const line flags = s.allocate<std::uint32_t>(what.queue * words_of_line, flags_align);
      worker me{s,
                c,
                c.sides[i],
                flags,
                s.allocate<std::uint32_t>(what.queue * words_of_line),
                s.allocate<char>(what.queue * c.slot_bytes()),
                s.allocate<cell::list_element>(2 * what.queue * c.most_rows())};
      me.run(c.tasks_of(i));
    });
  m.ppe_program([&](cell::ppe& p) { submit_all(p, c); });
  tpc_outcome out;
  const cell::report r = w.run(m);
  out.seconds = lev::seconds_of(r.time);
  out.cycles_each = static_cast<double>(m.clock().cycles_in(r.time).count) / c.what.tasks;
  out.bytes_per_second = bytes / out.seconds;
  virtual_time waits = c.waited;
  for (const cell::spe_counts& s : r.spes) waits += s.transfer_waits;
  out.waiting_share = lev::seconds_of(waits) / (out.seconds * what.spes);
  return out;
}

}  // namespace leveret_papers
