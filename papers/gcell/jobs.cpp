// The queue, the SPEs, the event handler and the client; see jobs.hpp.
#include "gcell/jobs.hpp"

#include "leveret/by_leveret.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace leveret_papers {

namespace {

// Idle times in log2 of cycles, for 1 to 16 SPEs: first, and at most (gcell's sources, facts).
constexpr std::array<int, 16> first_idle{12, 12, 12, 13, 13, 13, 13, 14,
                                         14, 14, 14, 15, 15, 15, 16, 16};
constexpr std::array<int, 16> most_idle{17, 17, 17, 18, 18, 18, 18, 19,
                                        19, 19, 19, 20, 20, 20, 21, 21};
constexpr unsigned in_flight = 64;
constexpr unsigned ends_of_line = 62;
// Of a job: 16 bytes of its own, status and procedure, eight direct arguments each way of 8 bytes
// with their kinds, eight arguments in memory of 32 bytes, to lines (gcell's sources, facts).
constexpr std::uint32_t descriptor_bytes = 640;
constexpr unsigned queue_tag = 0;
constexpr unsigned job_tag = 1;  // descriptors and ids: a get stands behind the put before it

struct state {
  world& w;
  gcell_jobs what;
  cell::machine& m;
  cell::array<std::uint32_t> lock;   // of the queue; its second word counts jobs that wait
  cell::array<std::uint32_t> lines;  // an array of ended jobs for each SPE
  cell::array<char> descriptors;     // one for each SPE stands for those of all jobs
  unsigned submitted = 0;
  unsigned told = 0;                // ends that the handler has seen
  std::vector<unsigned> letters{};  // SPEs whose letters the handler's next wait returns with
  std::array<unsigned, 16> unread{};
  cell::ppe_thread client = nullptr;
  bool is_over = false;
};

// What an SPE has in its local store.
struct own {
  cell::local<std::uint32_t> line;  // of the queue
  cell::local<std::uint32_t> ids;
  cell::local<char> descriptor;
};

void get_descriptor(cell::spe& s, state& g, const own& mine) {
  s.get(mine.descriptor, g.descriptors.at(s.index() * descriptor_bytes), job_tag,
        cell::order::fence);
  s.wait_all(1u << job_tag);
}

// Section 5.2: an SPE that has dequeued a job has a copy of its descriptor. That is got under the
// lock, as the next job's address is in it. Somebody else's lock is no better than an empty queue:
// false, and the SPE is idle (gcell's sources, facts, as the times between two tries).
bool take(cell::spe& s, state& g, const own& mine) {
  constexpr std::uint32_t most_again = 16384;
  std::uint32_t again = 32;
  for (;;) {
    s.getllar(mine.line.ls, g.lock.ea);
    if (mine.line[0] != 0 || mine.line[1] == 0) return false;
    mine.line[0] = 1;
    if (s.putllc(mine.line.ls, g.lock.ea)) break;
    again = std::min(2 * again, most_again);
    s.compute(cycles(again - again / 5 + s.random(2 * again / 5)));
  }
  get_descriptor(s, g, mine);
  s.compute(g.w.cost_of("gcell.lock_held"));
  --mine.line[1];
  mine.line[0] = 0;
  s.putlluc(mine.line.ls, g.lock.ea);
  return true;
}

void get_queue(cell::spe& s, state& g, const own& mine) {
  s.get(mine.line.ls, g.lock.ea, 16, queue_tag);
  s.wait_all(1u << queue_tag);
}

// The same in gcell's first sources (facts), which the measurements of December 2007 lie beside: it
// looks before it locks, waits for the lock, gets the queue and the job, and puts the queue back
// before it unlocks.
bool take_of_2007(cell::spe& s, state& g, const own& mine) {
  get_queue(s, g, mine);
  if (mine.line[1] == 0) return false;
  do {
    do s.getllar(mine.line.ls, g.lock.ea);
    while (mine.line[0] != 0);
    mine.line[0] = 1;
  } while (!s.putllc(mine.line.ls, g.lock.ea));
  get_queue(s, g, mine);
  const bool is_there = mine.line[1] > 0;
  if (is_there) {
    get_descriptor(s, g, mine);
    s.compute(g.w.cost_of("gcell.lock_held"));
    --mine.line[1];
    s.put(mine.line.ls, g.lock.ea, 16, queue_tag);
    s.wait_all(1u << queue_tag);
  }
  mine.line[0] = 0;
  s.putlluc(mine.line.ls, g.lock.ea);
  return is_there;
}

void rest(cell::spe& s, state& g, int& idle) {
  if (g.what.waits_for_event) return s.wait_lost_reservation();
  const std::int64_t base = std::int64_t{1} << idle;
  s.poll(cycles(base - base / 5 + s.random(static_cast<std::uint32_t>(2 * base / 5))));
  idle = std::min(idle + 1, most_idle[g.what.spes - 1]);
}

// Section 5.6: when a letter can be written without waiting, or must be, the array of ids goes to
// memory, and then the letter. The job's descriptor, with its status, is on its way back by then.
bool tell(cell::spe& s, state& g, unsigned count, bool may_wait, const own& mine) {
  if (!may_wait) {
    s.compute(cycles(static_cast<std::int64_t>(g.w.constant(g.m.file(), "spe.channel"))));
    if (g.unread[s.index()] > 0) return false;
  }
  if (g.what.is_batched) s.put(mine.ids, g.lines.at(32 * s.index()), job_tag);
  s.wait_all(1u << job_tag);
  ++g.unread[s.index()];
  s.write_interrupt_mailbox(count);
  g.letters.push_back(s.index());
  return true;
}

void serve(cell::spe& s, state& g) {
  const own mine{s.allocate<std::uint32_t>(32), s.allocate<std::uint32_t>(32),
                 s.allocate<char>(descriptor_bytes)};
  const auto delay = static_cast<std::int64_t>(g.what.delay_us * g.w.number("gcell.delay") * 1e-6 *
                                               g.w.constant(g.m.file(), "clock.rate"));
  int idle = first_idle[g.what.spes - 1];
  unsigned ended = 0;
  while (!g.is_over) {
    const bool is_there = g.what.is_batched ? take(s, g, mine) : take_of_2007(s, g, mine);
    if (is_there) {
      idle = first_idle[g.what.spes - 1];
      s.progress(g.m.clock().time_of(cycles(delay)));
      s.compute(cycles(delay));
      s.put(mine.descriptor, g.descriptors.at(s.index() * descriptor_bytes), job_tag);
      ++ended;
    }
    if (ended > 0) {
      // Who sleeps until an event tells first.
      const bool must =
          !g.what.is_batched || ended == ends_of_line || (g.what.waits_for_event && !is_there);
      if (tell(s, g, ended, must, mine)) ended = 0;
    }
    if (!is_there && !g.is_over) rest(s, g, idle);
  }
}

// A read of an SPE's letters takes all that are there, and so the one that the SPE, which waited
// for room, writes meanwhile: after each letter, the mailbox's status is looked at once more.
std::vector<unsigned> read_letters(cell::ppe& p, state& g, unsigned spe) {
  std::vector<unsigned> found;
  const auto is_there = [&] { return std::erase(g.letters, spe) > 0; };
  const cycles way(static_cast<std::int64_t>(g.w.constant(g.m.file(), "eib.way")));
  do {
    found.push_back(p.read_interrupt_mailbox(spe));
    --g.unread[spe];
    p.compute(way * 2);
  } while (is_there());
  return found;
}

// The handler sleeps until an SPE has sent a letter. Its wait returns with all SPEs that have, up
// to 16, and a read returns with up to 32 letters (gcell's sources, facts): what a wait costs is
// shared by all of them.
void handle_events(cell::ppe& p, state& g) {
  while (g.told < g.what.jobs) {
    (void)p.wait_interrupt();
    p.compute(g.w.time_of("gcell.wait"));
    for (const unsigned spe : std::exchange(g.letters, {}))
      for (const unsigned ended : read_letters(p, g, spe)) {
        p.compute(g.w.time_of("gcell.message"));
        p.compute(g.w.time_of("gcell.job") * ended);
        g.told += ended;
        p.wake(g.client);
      }
  }
}

void submit(cell::ppe& p, state& g, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    do {
      while (p.load_reserved(g.lock.ea) != 0) p.compute(cycles(200));
    } while (!p.store_conditional(g.lock.ea, 1));
    const auto waiting = p.load<std::uint32_t>(g.lock.at(1));
    p.compute(g.w.cost_of("gcell.lock_held"));
    p.store(g.lock.at(1), waiting + 1);
    p.store<std::uint32_t>(g.lock.ea, 0);
    ++g.submitted;
  }
}

void keep_in_flight(cell::ppe& p, state& g) {
  g.client = p.self();
  while (g.told < g.what.jobs) {
    const unsigned open = g.submitted - g.told;
    const unsigned more = std::min(in_flight - open, g.what.jobs - g.submitted);
    submit(p, g, more);
    p.compute(g.w.time_of("gcell.client"));
    if (g.submitted - g.told == open + more && g.told < g.what.jobs) p.sleep("the end of a job");
  }
  g.is_over = true;
  p.store<std::uint32_t>(g.lock.at(1), 0);
}

}  // namespace

double us_of_a_job(world& w, const gcell_jobs& what) {
  if (w.is_by_leveret()) return us_of_a_job_by_leveret(w, what);
  cell::machine m(w.file(what.machine), world::options());
  state g{w,
          what,
          m,
          m.memory<std::uint32_t>(32),
          m.memory<std::uint32_t>(32 * 16),
          m.memory<char>(std::size_t{16} * descriptor_bytes)};
  for (unsigned i = 0; i < what.spes; ++i) m.spe_program(i, [&](cell::spe& s) { serve(s, g); });
  m.ppe_program([&](cell::ppe& p) { keep_in_flight(p, g); }, "client", 1);
  m.ppe_program([&](cell::ppe& p) { handle_events(p, g); }, "events", 0);
  return lev::seconds_of(w.run(m).time) * 1e6 / what.jobs;
}

double efficiency(world& w, const gcell_jobs& what) {
  return what.delay_us / us_of_a_job(w, what) / what.spes;
}

}  // namespace leveret_papers
