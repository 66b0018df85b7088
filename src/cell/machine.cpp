// A simulated Cell as a whole: its memory, its programs, a run; see <leveret/cell.hpp>.
#include <leveret/cell.hpp>

#include <algorithm>
#include <cstring>

#include "base/numbers.hpp"
#include "cell/parts.hpp"

namespace lev::cell {

namespace {

error_kind kind_of(virt::stuck::kind k) {
  if (k == virt::stuck::kind::deadlock) return error_kind::deadlock;
  return k == virt::stuck::kind::no_progress ? error_kind::no_progress : error_kind::time_over;
}

// The program ends when its threads have: they take their turns until then.
void run_spe(spe_parts& s) {
  s.turns = {s.home.loop.current()};
  s.threads = s.turns;
  spe me(s);
  s.program(me);
  while (s.turns.size() > 1) me.yield();
}

void run_ppe(ppe_parts& p) {
  p.actor = p.home.loop.current();
  p.thread = &p.processor().enter(p.pinned);
  ppe me(p);
  p.program(me);
  p.processor().leave(*p.thread);
}

std::uint64_t switches_of(const machine_parts& m) {
  std::uint64_t all = 0;
  for (const auto& p : m.processors) all += p->switches();
  return all;
}

// Local stores are as before the program, except for their bytes.
void forget(machine_parts& m) {
  for (const auto& s : m.spes) {
    s->program = nullptr;
    s->free_all();
    s->watchers.clear();
    s->counts = {};
  }
  m.watchers.clear();
  m.threads.clear();
  for (const auto& p : m.processors) p->forget_threads();
}

}  // namespace

machine::machine(const machine_file& file, const options& o)
    : parts_(std::make_unique<machine_parts>(file, o)) {}

machine::~machine() = default;

unsigned machine::spe_count() const {
  return static_cast<unsigned>(parts_->spes.size());
}
unsigned machine::chip_count() const {
  return static_cast<unsigned>(parts_->processors.size());
}
unsigned machine::chip_of(unsigned spe_index) const {
  if (spe_index >= spe_count())
    throw error(error_kind::bad_call, "chip of SPE " + std::to_string(spe_index) + ": there are " +
                                          std::to_string(spe_count()) + ", counted from 0");
  return parts_->spes[spe_index]->chip;
}
clock_rate machine::clock() const {
  return parts_->clock;
}
virtual_time machine::now() const {
  return parts_->loop.now();
}
const machine_file& machine::file() const {
  return parts_->numbers.file();
}
std::vector<std::string> machine::constants_read() const {
  return parts_->numbers.names_read();
}

ea_t machine::allocate(std::size_t count, std::size_t each, unsigned chip) {
  machine_parts& m = *parts_;
  std::uint64_t bytes = 0;
  if (!checked_multiply(count, each, &bytes)) bytes = ~std::uint64_t{0};
  if (chip >= m.used.size())
    throw error(error_kind::bad_call, "memory of chip " + std::to_string(chip) + ": there are " +
                                          std::to_string(m.used.size()) + " chips");
  const std::uint64_t free = m.chip_bytes - m.used[chip];
  if (bytes > free)
    throw error(error_kind::memory_full,
                "memory of " + std::to_string(bytes) + " bytes: chip " + std::to_string(chip) +
                    " has " + std::to_string(free) +
                    " left; machine.memory in the machine file says how much there is");
  const ea_t ea = memory_begin + chip * m.chip_bytes + m.used[chip];
  m.used[chip] += round_up(bytes, line_bytes);
  return ea;
}

void* machine::host(ea_t ea) const {
  parts_->check_range(ea, 1, [] { return std::string("host()"); });
  return parts_->host_of(ea);
}

ea_t machine::store_ea(unsigned spe_index, ls_t ls) const {
  if (spe_index >= spe_count() || ls > parts_->spes[spe_index]->store_end)
    throw error(error_kind::bad_call, "store_ea() of SPE " + std::to_string(spe_index) + ", " +
                                          hex(ls) + ": SPEs are counted from 0, there are " +
                                          std::to_string(spe_count()) + ", and a store has " +
                                          std::to_string(parts_->spes[0]->store_end) + " bytes");
  return stores_begin + spe_index * store_span + ls;
}

static void check_usable(const machine_parts& m) {
  if (m.has_failed && m.loop.current() == nullptr)
    throw error(error_kind::bad_call, "this machine was stopped by an error: make another one");
}

void machine::spe_program(unsigned index, std::function<void(spe&)> program, std::string name) {
  if (index >= spe_count())
    throw error(error_kind::bad_call, "program for SPE " + std::to_string(index) + ": there are " +
                                          std::to_string(spe_count()) + ", counted from 0");
  check_usable(*parts_);
  spe_parts& s = *parts_->spes[index];
  if (s.program) throw error(error_kind::bad_call, name_of(s) + " has a program already");
  if (!program)
    throw error(error_kind::bad_call, name_of(s) + ": its program is an empty function");
  s.name = std::move(name);
  parts_->loop.start(name_of(s), [&s] { run_spe(s); });
  s.program = std::move(program);  // only now: no SPE has a program that has no stack
}

void machine::ppe_program(std::function<void(ppe&)> program, std::string name, int context,
                          unsigned chip) {
  machine_parts& m = *parts_;
  const auto contexts = static_cast<int>(m.numbers.number(fact::ppe_contexts));
  if (chip >= chip_count() || context < anywhere || context >= contexts)
    throw error(error_kind::bad_call, "PPE program on context " + std::to_string(context) +
                                          " of chip " + std::to_string(chip) + ": there are " +
                                          std::to_string(contexts) + " contexts on each of " +
                                          std::to_string(chip_count()) + " chips");
  if (!program) throw error(error_kind::bad_call, "PPE program: it is an empty function");
  check_usable(m);
  if (name.empty()) name = "thread " + std::to_string(m.threads.size());
  m.threads.push_back(std::unique_ptr<ppe_parts>(
      new ppe_parts{m, chip, "PPE " + name, context, std::move(program)}));
  ppe_parts& p = *m.threads.back();
  m.loop.start(p.name, [&p] { run_ppe(p); });
}

report machine::run() {
  machine_parts& m = *parts_;
  if (m.loop.current() != nullptr)
    throw error(error_kind::bad_call, "run() by " + m.loop.current()->name +
                                          ": a program is a part of a run, and cannot begin one");
  check_usable(m);
  const virtual_time begin = m.loop.now();
  const std::uint64_t events_before = m.loop.events();
  const std::uint64_t switches_before = switches_of(m);
  m.has_failed = true;
  try {
    m.loop.run();
  } catch (const virt::stuck& s) {
    throw error(kind_of(s.why), s.what());
  }
  m.has_failed = false;
  report r;
  r.time = m.loop.end() - begin;
  r.events = m.loop.events() - events_before;
  r.hash = m.loop.hash();
  r.ppe_switches = switches_of(m) - switches_before;
  for (const auto& s : m.spes) r.spes.push_back(s->counts);
  forget(m);
  return r;
}

report run_twice(const std::function<report()>& run) {
  if (!run) throw error(error_kind::bad_call, "run_twice() of an empty function");
  const report first = run();
  const report second = run();
  if (first.hash == second.hash && first.time == second.time && first.events == second.events)
    return second;
  const auto told = [](const report& r) {
    return std::to_string(r.time.count() / 1'000'000) + " ns and " + std::to_string(r.events) +
           " events, hash " + hex(r.hash);
  };
  throw error(
      error_kind::unrepeatable,
      "the program is unrepeatable, which is not to say wrong: with equal seeds a run took " +
          told(first) + ", and another " + told(second) +
          "; look for addresses, clocks, threads or memory of the host that decide "
          "something");
}

}  // namespace lev::cell
