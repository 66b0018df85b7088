// A worker of Jack Rabbit: Figures 4.3 to 4.5, double buffering, the workers' gate. See pool.hpp.
#include <algorithm>
#include <deque>

#include "jack_rabbit/queues.hpp"

namespace leveret_papers {

namespace {

constexpr unsigned own_tag = 31;  // of the kernel's own transfers, each waited for at once

// Room for a task and its data; two of them with double buffering. Each buffer has a tag of its own
// (section 4.8: 16 buffers at most, for the number of tags of independent transfers).
struct place {
  cell::local<char> object;
  cell::local<char> arguments;
  std::array<cell::local<char>, 2> data;
  std::array<unsigned, 2> tag{};

  std::uint32_t tags() const { return 1u << tag[0] | 1u << tag[1]; }
};

struct worker {
  cell::spe& s;
  rabbit_run& r;
  std::uint32_t inbox_most = 0;
  cell::local<std::uint32_t> words{};  // of a line: a lock, the counter
  cell::local<std::uint32_t> gate{};   // a gate's words
  cell::local<rabbit_buffer> ready{};
  cell::local<rabbit_buffer> rob{};
  cell::local<char> program{};
  std::vector<place> places{};
  std::deque<std::uint32_t> inbox{};
  std::uint32_t fetched = 0;  // tasks of the inbox, from its front, whose data is on its way
  std::uint32_t turn = 0;     // the place of the inbox's front
  std::uint32_t program_there = ~0u;

  void dma_get(cell::ls_t to, cell::ea_t from, std::uint32_t bytes) {
    s.get(to, from, bytes, own_tag);
    s.wait_all(1u << own_tag);
  }
  void dma_put(cell::ls_t from, cell::ea_t to, std::uint32_t bytes) {
    s.put(from, to, bytes, own_tag);
    s.wait_all(1u << own_tag);
  }

  // A lap is never quite as long as the one before: laps of equal length would keep step with each
  // other, and one worker would find a lock taken for ever. The paper names no back-off.
  void look_again(cell::ls_t to, cell::ea_t at, std::uint32_t bytes) {
    const auto most = static_cast<std::uint32_t>(r.w.number("jack_rabbit.lap"));
    s.compute(cycles(s.random(most)));
    dma_get(to, at, bytes);
  }

  void acquire(cell::ea_t lock) {
    for (;;) {
      s.getllar(words.ls, lock);
      if (words[0] == 1) {
        words[0] = 0;
        if (s.putllc(words.ls, lock)) return;
      } else {
        while (words[0] == 0) look_again(words.ls, lock, 8);
      }
    }
  }
  void release(cell::ea_t lock) {
    words[0] = 1;
    s.putlluc(words.ls, lock);
  }

  // A subset of the ROB: what the inboxes of all hold. The rest stays where it can be diced.
  bool fill_ready() {
    const std::uint32_t count = std::min(rob[0].length, inbox_most * r.what.spes);
    s.compute(r.w.cost_of("jack_rabbit.pointer") * count);
    for (std::uint32_t i = 0; i < count; ++i) ready[0].push_back(rob[0].pop_front());
    return count > 0;
  }

  void fill_inbox() {
    std::uint32_t count = inbox_most - static_cast<std::uint32_t>(inbox.size());
    if (ready[0].length < count) count = std::max(ready[0].length / r.what.spes, 1u);
    s.compute(r.w.cost_of("jack_rabbit.pointer") * count);
    for (std::uint32_t i = 0; i < count; ++i) inbox.push_back(ready[0].pop_front());
  }

  bool checkout() {
    s.doing("the fetch lock");
    acquire(r.q.fetch_lock.ea);
    s.doing("the ready buffer");
    dma_get(ready.ls, r.q.ready.ea, sizeof(rabbit_buffer));
    if (ready[0].length == 0) {
      s.doing("the lock of the ROB");
      acquire(r.q.rob_lock.ea);
      s.doing("the ROB");
      dma_get(rob.ls, r.q.rob.ea, sizeof(rabbit_buffer));
      const bool is_filled = fill_ready();
      if (is_filled) dma_put(rob.ls, r.q.rob.ea, sizeof(rabbit_buffer));
      release(r.q.rob_lock.ea);
      if (!is_filled) {
        release(r.q.fetch_lock.ea);
        return false;
      }
    }
    fill_inbox();
    dma_put(ready.ls, r.q.ready.ea, sizeof(rabbit_buffer));
    release(r.q.fetch_lock.ea);
    return true;
  }

  const rabbit_task& task_at(std::size_t index) const { return r.tasks[inbox[index]]; }
  place& place_of(std::size_t index) { return places[(turn + index) % places.size()]; }

  // Figure 4.5.
  void get_object(std::size_t index) {
    const std::uint32_t object = inbox[index] % object_count;
    dma_get(place_of(index).object.ls, r.q.objects.at(object * object_bytes), object_bytes);
    const std::uint32_t kind = task_at(index).kind;
    if (kind == program_there) return;
    program_there = kind;
    dma_get(program.ls, r.q.program.ea, program.bytes());
  }

  // Begins the transfers of a task's buffers, each behind what still leaves that buffer.
  void begin_fetch(std::size_t index) {
    get_object(index);
    const place& p = place_of(index);
    const rabbit_task& t = task_at(index);
    for (std::size_t i = 0; i < t.in.size(); ++i)
      if (t.in[i].bytes > 0)
        s.get(p.data[i].ls, t.in[i].ea, t.in[i].bytes, p.tag[i], cell::order::fence);
  }

  void execute(place& p, const rabbit_task& t) {
    s.progress(r.m.clock().time_of(cycles(t.work)));
    s.compute(
        r.w.cost_of(r.what.is_double_buffered ? "jack_rabbit.task_buffered" : "jack_rabbit.task"));
    if (r.what.body) r.what.body(t, p.data[0].data, p.data[1].data);
    s.compute(cycles(t.work));
    ++r.out.executed;
  }
  // A diced task writes piece by piece.
  void put_results(place& p, const rabbit_task& t) {
    const std::size_t from = t.in[1].bytes > 0 ? 1 : 0;
    for (std::uint32_t i = 0; t.out.bytes > 0 && i < t.count; ++i)
      s.put(p.data[from].ls, t.out.ea, t.out.bytes, p.tag[from]);
  }

  void run_plain() {
    get_object(0);
    place& p = place_of(0);
    const rabbit_task& t = task_at(0);
    dma_get(p.arguments.ls, r.q.arguments.ea, argument_bytes);
    for (std::size_t i = 0; i < t.in.size(); ++i)
      if (t.in[i].bytes > 0) dma_get(p.data[i].ls, t.in[i].ea, t.in[i].bytes);
    execute(p, t);
    put_results(p, t);
    s.wait_all(p.tags());
  }

  void run_double_buffered() {
    const auto two = std::min<std::size_t>(inbox.size(), 2);
    for (; fetched < two; ++fetched) begin_fetch(fetched);
    place& p = place_of(0);
    const rabbit_task& t = task_at(0);
    dma_get(p.arguments.ls, r.q.arguments.ea, argument_bytes);
    s.wait_all(p.tags());
    execute(p, t);
    put_results(p, t);
    --fetched;
    ++turn;
  }

  // Section 4.4: a gate is built on top of the spin lock. Its words are got and put under it.
  void change_gate(const line& lock, const line& which, const std::function<void()>& change) {
    acquire(lock.ea);
    dma_get(gate.ls, which.ea, 16);
    change();
    dma_put(gate.ls, which.ea, 16);
    release(lock.ea);
  }
  void close_gate() {
    change_gate(r.q.gate_lock, r.q.gate, [&] { gate[0] |= 1; });
  }
  // How many workers have entered, with this one.
  std::uint32_t enter_gate() {
    std::uint32_t entered = 0;
    change_gate(r.q.gate_lock, r.q.gate, [&] { entered = ++gate[1]; });
    return entered;
  }
  void open_completion() {
    change_gate(r.q.completion_lock, r.q.completion, [&] { gate[0] = 1; });
  }

  void count_down() {
    bool is_last = false;
    do {
      s.getllar(words.ls, r.q.jobs.ea);
      --words[0];
      is_last = words[0] == 0 && words[1] == 1;
    } while (!s.putllc(words.ls, r.q.jobs.ea));
    if (is_last) close_gate();
  }

  // False at the end of all batches.
  bool pass_gate() {
    s.doing("the gate");
    dma_get(gate.ls, r.q.gate.ea, 16);
    const std::uint32_t seen = gate[0];
    if (seen == over) return false;
    if (seen % 2 == 0) return true;
    for (const place& p : places) s.wait_all(p.tags());  // what double buffering has not waited for
    if (enter_gate() == r.what.spes) open_completion();
    do look_again(gate.ls, r.q.gate.ea, 16);
    while (gate[0] == seen);
    return gate[0] != over;
  }

  void run() {
    const std::size_t wanted = r.what.is_double_buffered ? 2 : 1;
    for (;;) {
      if (inbox.size() < wanted && !checkout() && inbox.empty()) {
        if (!pass_gate()) return;
        continue;
      }
      s.doing("a task");
      r.what.is_double_buffered ? run_double_buffered() : run_plain();
      inbox.pop_front();
      count_down();
    }
  }
};

}  // namespace

void work(cell::spe& s, rabbit_run& r) {
  worker me{s, r};
  me.inbox_most = static_cast<std::uint32_t>(r.w.number("jack_rabbit.inbox"));
  me.words = s.allocate<std::uint32_t>(32);
  me.gate = s.allocate<std::uint32_t>(32);
  me.ready = s.allocate<rabbit_buffer>(1);
  me.rob = s.allocate<rabbit_buffer>(1);
  me.program = s.allocate<char>(r.q.program.size);
  for (unsigned i = 0; i < (r.what.is_double_buffered ? 2u : 1u); ++i)
    me.places.push_back({s.allocate<char>(object_bytes),
                         s.allocate<char>(argument_bytes),
                         {s.allocate<char>(16384), s.allocate<char>(16384)},
                         {2 * i, 2 * i + 1}});
  me.run();
}

}  // namespace leveret_papers
