// The PPE of Jack Rabbit: the caller's thread and the scheduler's, with the dicer. See pool.hpp.
#include <algorithm>
#include <vector>

#include "jack_rabbit/queues.hpp"

namespace leveret_papers {

namespace {

constexpr std::size_t word_of_length = offsetof(rabbit_buffer, length);
constexpr std::size_t word_of_head = offsetof(rabbit_buffer, head);
constexpr std::size_t word_of_tail = offsetof(rabbit_buffer, tail);

void acquire(cell::ppe& p, const line& lock) {
  for (;;) {
    if (p.load_reserved(lock.ea) != 1)
      (void)p.spin(lock.ea, 0);
    else if (p.store_conditional(lock.ea, 0))
      return;
  }
}
// Figure 4.3: once.
bool try_acquire(cell::ppe& p, const line& lock) {
  do {
    if (p.load_reserved(lock.ea) != 1) return false;
  } while (!p.store_conditional(lock.ea, 0));
  return true;
}
void release(cell::ppe& p, const line& lock) {
  p.store<std::uint32_t>(lock.ea, 1);
}

// A buffer as the PPE sees it, through its caches; its lock is held.
struct view {
  cell::ppe& p;
  cell::ea_t at;

  std::uint32_t word(std::size_t offset) const { return p.load<std::uint32_t>(at + offset); }
  void set(std::size_t offset, std::uint32_t value) const { p.store(at + offset, value); }
  std::uint32_t length() const { return word(word_of_length); }
  void push_back(std::uint32_t task) const {
    const std::uint32_t tail = word(word_of_tail);
    set(std::size_t{4} * tail, task);
    set(word_of_tail, (tail + 1) % buffer_slots);
    set(word_of_length, length() + 1);
  }
  std::uint32_t pop_front() const {
    const std::uint32_t head = word(word_of_head);
    const std::uint32_t task = word(std::size_t{4} * head);
    set(word_of_head, (head + 1) % buffer_slots);
    set(word_of_length, length() - 1);
    return task;
  }
  // Its tasks, which are not more than it has room for, are these.
  void become(const std::vector<std::uint32_t>& tasks) const {
    const auto count = static_cast<std::uint32_t>(tasks.size());
    for (std::uint32_t i = 0; i < count; ++i) set(std::size_t{4} * i, tasks[i]);
    set(word_of_head, 0);
    set(word_of_tail, count);
    set(word_of_length, count);
  }
};

void add_jobs(cell::ppe& p, rabbit_run& r, std::uint32_t count) {
  std::uint32_t there = 0;
  do there = p.load_reserved(r.q.jobs.ea);
  while (!p.store_conditional(r.q.jobs.ea, there + count));
}

std::uint32_t number_of(rabbit_run& r, const rabbit_task& task) {
  r.tasks.push_back(task);
  return static_cast<std::uint32_t>(r.tasks.size() - 1);
}
cell::ea_t object_of(const rabbit_run& r, std::uint32_t number) {
  return r.q.objects.at(std::size_t{number % object_count} * object_bytes);
}
std::uint32_t make_task(cell::ppe& p, rabbit_run& r, const rabbit_task& task) {
  p.compute(
      r.w.cost_of(r.what.is_double_buffered ? "jack_rabbit.post_buffered" : "jack_rabbit.post"));
  const std::uint32_t number = number_of(r, task);
  p.store<std::uint32_t>(object_of(r, number), task.kind);
  return number;
}
// Section 5.2: the task before it hands on its set of bodies, an address and a size.
std::uint32_t relaunch(cell::ppe& p, rabbit_run& r, const rabbit_task& task) {
  const std::uint32_t number = number_of(r, task);
  const cell::ea_t object = object_of(r, number);
  p.store<std::uint64_t>(object, task.in[1].ea);
  p.store<std::uint64_t>(object + 8, task.in[1].bytes);
  return number;
}

// The caller has the prefilter's lock. Section 5.3: to take it at every post keeps the scheduler
// from moving what was posted, as the lock is not available. So the lock is free where the caller
// does something else: it waits for room, or has ended.
void post(cell::ppe& p, rabbit_run& r, std::uint32_t number) {
  const view prefilter{p, r.q.prefilter.ea};
  add_jobs(p, r, 1);
  while (prefilter.length() == buffer_slots) {
    release(p, r.q.prefilter_lock);
    (void)p.spin(prefilter.at + word_of_length, buffer_slots);
    acquire(p, r.q.prefilter_lock);
  }
  prefilter.push_back(number);
  p.progress();
}

// A change of a gate's two words, under its lock.
void set_gate(cell::ppe& p, const line& lock, const line& gate, std::uint32_t is,
              std::uint32_t entered) {
  acquire(p, lock);
  p.store<std::uint32_t>(gate.ea, is);
  p.store<std::uint32_t>(gate.at(1), entered);
  release(p, lock);
}

// BeginSubmit: the workers may leave their gate.
void begin_submit(cell::ppe& p, rabbit_run& r, std::uint32_t batch) {
  set_gate(p, r.q.completion_lock, r.q.completion, 0, 0);
  p.store<std::uint32_t>(r.q.jobs.at(1), 0);
  set_gate(p, r.q.gate_lock, r.q.gate, 2 * batch, 0);
}

// EndSubmit, then the barrier: the PPE enters its gate and waits. When all jobs have ended before,
// no worker closes the other gate.
void end_submit(cell::ppe& p, rabbit_run& r) {
  p.store<std::uint32_t>(r.q.jobs.at(1), 1);
  if (p.load<std::uint32_t>(r.q.jobs.ea) == 0) {
    acquire(p, r.q.gate_lock);
    const auto gate = p.load<std::uint32_t>(r.q.gate.ea);
    if (gate % 2 == 0) p.store<std::uint32_t>(r.q.gate.ea, gate + 1);
    release(p, r.q.gate_lock);
  }
  acquire(p, r.q.completion_lock);
  p.store<std::uint32_t>(r.q.completion.at(1), 1);
  release(p, r.q.completion_lock);
  (void)p.spin(r.q.completion.ea, 0);
}

void move_tasks(const view& from, const view& to) {
  const std::uint32_t posted = from.length();
  if (posted == over) return;
  std::uint32_t count = std::min(posted, buffer_slots - to.length());
  for (; count > 0; --count) to.push_back(from.pop_front());
}

// Pieces [first, first + count) of a task, as one of `ways` equal parts.
rabbit_task part_of(const rabbit_run& r, const rabbit_task& t, std::uint32_t k,
                    std::uint32_t ways) {
  rabbit_task part = t;
  part.first = t.first + t.count * k / ways;
  part.count = t.first + t.count * (k + 1) / ways - part.first;
  part.work = r.before[part.first + part.count] - r.before[part.first];
  return part;
}

// Figure 4.6, word by word: tasks and parts go to a new buffer, of the PPE's alone, which becomes
// the ROB. `need` wraps below 0 when one more is needed and two are made.
void dice(cell::ppe& p, rabbit_run& r, const view& rob) {
  const auto threshold = static_cast<std::uint32_t>(r.w.number("jack_rabbit.threshold"));
  const std::uint32_t size = rob.length();
  std::uint32_t asking = dicer_asks(size, threshold, r.what.spes);
  if (asking == 0) return;
  std::uint32_t need = threshold * r.what.spes - size;
  std::vector<std::uint32_t> fresh;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t number = rob.pop_front();
    const rabbit_task t = r.tasks[number];
    (void)p.load<std::uint32_t>(object_of(r, number));  // Diceable() is the object's
    if (t.count < 2 || need == 0) {
      fresh.push_back(number);
      continue;
    }
    asking = std::max(std::min(asking, need), 2u);
    const std::uint32_t ways = std::min(asking, t.count);
    for (std::uint32_t k = 0; k < ways; ++k)
      fresh.push_back(make_task(p, r, part_of(r, t, k, ways)));
    add_jobs(p, r, ways - 1);
    need -= ways;
    ++r.out.diced;
  }
  p.compute(r.w.cost_of("jack_rabbit.pointer") * static_cast<std::int64_t>(fresh.size()));
  rob.become(fresh);
}

// Until tasks were posted, or the ROB is low and has changed since the last pass left `seen` in it:
// a scheduler that passed on and on would keep the ROB's lock from the workers. True at the end.
bool wait_for_tasks(cell::ppe& p, rabbit_run& r, std::uint32_t seen) {
  const view prefilter{p, r.q.prefilter.ea};
  const view rob{p, r.q.rob.ea};
  for (;;) {
    const std::uint32_t posted = prefilter.length();
    if (posted == over) return true;
    if (posted > 0) return false;
    if (r.what.pieces.empty()) {
      (void)p.spin(prefilter.at + word_of_length, 0);
      continue;
    }
    const auto threshold = static_cast<std::uint32_t>(r.w.number("jack_rabbit.threshold"));
    const std::uint32_t left = rob.length();
    if (left != seen && dicer_asks(left, threshold, r.what.spes) > 0) return false;
    p.compute(r.w.cost_of("jack_rabbit.pass"));
  }
}

}  // namespace

std::uint32_t dicer_asks(std::uint32_t size, std::uint32_t threshold, std::uint32_t workers) {
  if (size == 0 || size >= threshold * workers) return 0;
  const std::uint32_t asking = (threshold * workers - size) / size;
  return asking <= 1 ? 0 : asking;
}

void post_all(cell::ppe& p, rabbit_run& r) {
  std::uint32_t number = 0;
  for (const rabbit_batch& b : r.batches) {
    const virtual_time begin = p.now();
    p.progress(r.m.clock().time_of(cycles(b.serial)));
    if (b.serial > 0) p.compute(cycles(b.serial));
    begin_submit(p, r, number++);
    acquire(p, r.q.prefilter_lock);
    for (const rabbit_task& t : b.tasks)
      post(p, r, b.is_relaunch ? relaunch(p, r, t) : make_task(p, r, t));
    release(p, r.q.prefilter_lock);
    end_submit(p, r);
    r.out.seconds.push_back(lev::seconds_of(p.now() - begin));
  }
  p.store(r.q.gate.ea, over);
  acquire(p, r.q.prefilter_lock);
  p.store(r.q.prefilter.ea + word_of_length, over);
  release(p, r.q.prefilter_lock);
}

void schedule(cell::ppe& p, rabbit_run& r) {
  const view prefilter{p, r.q.prefilter.ea};
  const view rob{p, r.q.rob.ea};
  std::uint32_t seen = 0;
  while (!wait_for_tasks(p, r, seen)) {
    p.compute(r.w.cost_of("jack_rabbit.pass"));
    if (!try_acquire(p, r.q.prefilter_lock)) {
      (void)p.spin(r.q.prefilter_lock.ea, 0);  // passes until then would find it taken, too
      continue;
    }
    acquire(p, r.q.rob_lock);
    move_tasks(prefilter, rob);
    if (r.what.has_dicer) dice(p, r, rob);
    seen = rob.length();
    release(p, r.q.rob_lock);
    release(p, r.q.prefilter_lock);
    if (seen == buffer_slots) (void)p.spin(rob.at + word_of_length, buffer_slots);
  }
}

}  // namespace leveret_papers
