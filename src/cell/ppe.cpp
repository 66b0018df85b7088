// The calls of a PPE program: words through caches, stores past them, mailboxes, threads.
#include <leveret/cell.hpp>

#include <algorithm>
#include <cstring>

#include "cell/parts.hpp"

namespace lev::cell {

namespace {

void spend(ppe_parts& p, virtual_time d) {
  p.processor().run(*p.thread, d);
}

virtual_time there_and_back(const machine_parts& m) {
  return m.time_of(fact::way) * 2;
}

void check_word(const ppe_parts& p, ea_t ea, std::size_t bytes, const char* what) {
  p.home.check_range(ea, bytes, [&] { return p.name + ": " + what; });
  if (ea % bytes != 0)
    throw error(error_kind::bad_address, p.name + ": " + what + " of " + std::to_string(bytes) +
                                             " bytes at " + hex(ea) +
                                             ": a word lies at a multiple of its size");
}

// Local stores are in no cache: nobody would tell of a change there, or take a reservation away.
void check_cached_word(const ppe_parts& p, ea_t ea, const char* what) {
  check_word(p, ea, sizeof(std::uint32_t), what);
  if (ea >= stores_begin)
    throw error(error_kind::bad_address, p.name + ": " + what + " at " + hex(ea) +
                                             ", in a local store: the word must be in main memory");
}

// The time of a load, which counts as a poll; then the line is in the PPE's caches. Reservations
// are kept by the second-level cache: a load that makes one goes there.
void fetch(ppe_parts& p, ea_t ea, bool is_reserving = false) {
  machine_parts& m = p.home;
  const auto look = [&p](virtual_time d) { p.processor().poll(*p.thread, d); };
  if (ea >= stores_begin) return look(there_and_back(m));
  const bool is_cached = m.lines.holds(ea, m.ppe_agent(p.chip));
  if (is_cached && !is_reserving && m.near[p.chip].holds(ea))
    look(m.time_of(fact::ppe_near_load));
  else
    look(m.time_of(is_cached ? fact::ppe_cached_load : fact::ppe_missed_load));
  m.lines.read(ea, m.ppe_agent(p.chip));
  m.near[p.chip].take(ea);
}

// After a store of the PPE: only its caches have the line.
void stored(ppe_parts& p, ea_t ea, std::uint32_t bytes) {
  machine_parts& m = p.home;
  m.lose_reservations(ea, bytes, -1, &p);
  m.lines.wrote(ea, m.ppe_agent(p.chip));
  m.drop_near(ea, bytes, p.chip);
  m.look(m.watchers, ea, bytes);
  m.loop.note(ea);
}

void check_thread(const ppe_parts& p, ppe_thread which) {
  if (which == nullptr)
    throw error(error_kind::bad_call, p.name + ": a thread that is null; self() tells one");
  if (&which->home != &p.home)
    throw error(error_kind::bad_call, p.name + ": a thread of another machine");
}

void check_place(const ppe_parts& p, const void* place, const char* what) {
  if (place == nullptr)
    throw error(error_kind::bad_call, p.name + ": " + what + ": a pointer that is null");
}

spe_parts& spe_of(ppe_parts& p, unsigned index) {
  if (index >= p.home.spes.size())
    throw error(error_kind::bad_call, p.name + ": SPE " + std::to_string(index) + ": there are " +
                                          std::to_string(p.home.spes.size()) + ", counted from 0");
  return *p.home.spes[index];
}

// The letter is this thread's from now on; the thread has it when it has come over the EIB.
std::uint32_t take_letter(ppe_parts& p, mailbox& box) {
  LEV_DCHECK(box.has_letter());
  ++box.claimed;
  spend(p, there_and_back(p.home));
  --box.claimed;
  const std::uint32_t value = box.letters.front();
  box.letters.pop_front();
  if (box.writer != nullptr) p.home.loop.wake(*std::exchange(box.writer, nullptr));
  return value;
}

// Sleeps as one of those that interrupts wake, and nothing else does. False when the run is over.
bool sleep_for_interrupt(ppe_parts& p, std::vector<ppe_parts*>& sleepers, const char* why) {
  sleepers.push_back(&p);
  p.awaits_interrupt = true;
  p.processor().sleep(*p.thread, why);
  p.awaits_interrupt = false;
  return !p.home.loop.refuse_if_over();
}

void start_proxy(ppe_parts& p, command::kind k, unsigned index, ls_t ls, ea_t ea,
                 std::uint32_t bytes, unsigned tag) {
  machine_parts& m = p.home;
  spe_parts& s = spe_of(p, index);
  const auto who = [&] { return p.name + ": transfer for SPE " + std::to_string(index); };
  const std::string bad_tag = why_bad_tag(tag);
  if (!bad_tag.empty()) throw error(error_kind::bad_tag, who() + ": " + bad_tag);
  const std::string wrong = why_illegal(ls, ea, bytes);
  if (!wrong.empty()) throw error(error_kind::illegal_transfer, who() + " of " + wrong);
  m.check_range(ea, bytes, who);
  m.check_store(index, ls, bytes, who);
  constexpr int stores = 5;
  spend(p, m.time_of(fact::ppe_mmio_store) * stores);
  while (s.proxy.is_full()) {
    p.processor().poll(*p.thread, there_and_back(m));
    if (m.loop.refuse_if_over()) return;
  }
  s.proxy.expect();
  m.after(m.time_of(fact::way), [&s, k, tag, ls, ea, bytes] {
    s.proxy.add_expected({k, order::none, tag, ls, ea, bytes});
  });
}

}  // namespace

virtual_time ppe::now() const {
  return parts_.home.loop.now();
}
cycles ppe::now_cycles() const {
  return parts_.home.clock.cycles_in(now());
}
std::uint32_t ppe::random(std::uint32_t bound) {
  return parts_.actor->random.below(bound);
}
int ppe::context() const {
  return parts_.thread->context();
}

void ppe::compute(cycles n) {
  spend(parts_, checked_time(parts_.home, n, parts_.name, "compute"));
}
void ppe::compute(virtual_time d) {
  spend(parts_, checked_time(d, parts_.name, "compute"));
}

void ppe::progress(virtual_time ahead) {
  parts_.home.loop.progress(checked_time(ahead, parts_.name, "progress"));
}
void ppe::doing(const char* what) {
  parts_.home.loop.doing(what);
}

void ppe::load_bytes(ea_t ea, void* to, std::size_t bytes) {
  check_word(parts_, ea, bytes, "load");
  fetch(parts_, ea);
  std::memcpy(to, parts_.home.host_of(ea), bytes);
}

void ppe::store_bytes(ea_t ea, const void* from, std::size_t bytes) {
  check_word(parts_, ea, bytes, "store");
  if (ea >= stores_begin) return mmio_store(ea, from, static_cast<std::uint32_t>(bytes));
  machine_parts& m = parts_.home;
  const bool is_near = m.lines.holds(ea, m.ppe_agent(parts_.chip)) || !m.lines.is_cached(ea);
  spend(parts_, m.time_of(is_near ? fact::ppe_store : fact::ppe_missed_load));
  std::memcpy(m.host_of(ea), from, bytes);
  stored(parts_, ea, static_cast<std::uint32_t>(bytes));
}

std::uint32_t ppe::load_reserved(ea_t ea) {
  std::uint32_t value = 0;
  check_cached_word(parts_, ea, "load_reserved");
  fetch(parts_, ea, true);
  std::memcpy(&value, parts_.home.host_of(ea), sizeof(value));
  parts_.reserved = line_of(ea);
  return value;
}

bool ppe::store_conditional(ea_t ea, std::uint32_t value) {
  check_cached_word(parts_, ea, "store_conditional");
  machine_parts& m = parts_.home;
  spend(parts_, m.time_of(fact::ppe_store));
  const bool is_mine = std::exchange(parts_.reserved, no_line) == line_of(ea);
  if (!is_mine) return false;
  std::memcpy(m.host_of(ea), &value, sizeof(value));
  stored(parts_, ea, sizeof(value));
  return true;
}

std::uint32_t ppe::spin(ea_t ea, std::uint32_t value) {
  machine_parts& m = parts_.home;
  check_cached_word(parts_, ea, "spin");
  auto found = load<std::uint32_t>(ea);
  while (found == value) {
    watcher w{ea, sizeof(value), nullptr, &parts_};
    {
      const watching here(m.watchers, w);
      parts_.processor().spin(*parts_.thread, "a change of a word in memory");
    }
    if (m.loop.refuse_if_over()) return found;
    found = load<std::uint32_t>(ea);
  }
  return found;
}

void ppe::mmio_store(ea_t store_ea, const void* from, std::uint32_t count) {
  machine_parts& m = parts_.home;
  m.check_range(store_ea, count, [&] { return parts_.name + ": MMIO store"; });
  if (store_ea < stores_begin || count > 16)
    throw error(error_kind::bad_address, parts_.name + ": MMIO store of " + std::to_string(count) +
                                             " bytes at " + hex(store_ea) +
                                             ": up to 16 bytes, into a local store");
  check_place(parts_, from, "MMIO store");
  spend(parts_, m.time_of(fact::ppe_mmio_store));
  std::array<std::byte, 16> kept{};
  std::memcpy(kept.data(), from, count);
  m.after(m.time_of(fact::way), [&m, store_ea, kept, count] {
    std::memcpy(m.host_of(store_ea), kept.data(), count);
    m.was_written(store_ea, count, -1, false);
  });
}

bool ppe::try_write_mailbox(unsigned spe_index, std::uint32_t value) {
  machine_parts& m = parts_.home;
  spe_parts& s = spe_of(parts_, spe_index);
  parts_.processor().poll(*parts_.thread, there_and_back(m));
  if (!s.in.has_room()) return false;
  ++s.in.coming;
  spend(parts_, m.time_of(fact::ppe_mmio_store));
  m.after(m.time_of(fact::way), [&m, &s, value] {
    --s.in.coming;
    s.in.letters.push_back(value);
    if (s.in.reader != nullptr) m.loop.wake(*std::exchange(s.in.reader, nullptr));
  });
  return true;
}

void ppe::write_mailbox(unsigned spe_index, std::uint32_t value) {
  while (!try_write_mailbox(spe_index, value))
    if (parts_.home.loop.refuse_if_over()) return;
}

bool ppe::try_read_mailbox(unsigned spe_index, std::uint32_t* value) {
  machine_parts& m = parts_.home;
  spe_parts& s = spe_of(parts_, spe_index);
  check_place(parts_, value, "try_read_mailbox()");
  parts_.processor().poll(*parts_.thread, there_and_back(m));
  if (!s.out.has_letter()) return false;
  *value = take_letter(parts_, s.out);
  return true;
}

std::uint32_t ppe::read_mailbox(unsigned spe_index) {
  std::uint32_t value = 0;
  while (!try_read_mailbox(spe_index, &value))
    if (parts_.home.loop.refuse_if_over()) break;
  return value;
}

std::uint32_t ppe::read_interrupt_mailbox(unsigned spe_index) {
  spe_parts& s = spe_of(parts_, spe_index);
  while (!s.interrupt.has_letter())
    if (!sleep_for_interrupt(parts_, s.interrupt.sleepers, "an interrupt of an SPE's mailbox"))
      return 0;
  const std::uint32_t value = take_letter(parts_, s.interrupt);
  auto& told = parts_.home.interrupts;
  told.erase(std::find(told.begin(), told.end(), spe_index));
  return value;
}

unsigned ppe::wait_interrupt() {
  machine_parts& m = parts_.home;
  while (m.interrupts.empty())
    if (!sleep_for_interrupt(parts_, m.any_sleepers, "an interrupt of any SPE's mailbox")) return 0;
  return m.interrupts.front();
}

void ppe::write_signal(unsigned spe_index, unsigned which, std::uint32_t value) {
  machine_parts& m = parts_.home;
  if (which < 1 || which > 2)
    throw error(error_kind::bad_call,
                parts_.name + ": signal " + std::to_string(which) + ": an SPE has signals 1 and 2");
  (void)spe_of(parts_, spe_index);
  spend(parts_, m.time_of(fact::ppe_mmio_store));
  m.after(m.time_of(fact::way),
          [&m, spe_index, which, value] { m.deliver_signal(spe_index, which, value); });
}

void ppe::proxy_get(unsigned spe_index, ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag) {
  start_proxy(parts_, command::kind::get, spe_index, ls, ea, bytes, tag);
}
void ppe::proxy_put(unsigned spe_index, ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag) {
  start_proxy(parts_, command::kind::put, spe_index, ls, ea, bytes, tag);
}

void ppe::wait_proxy(unsigned spe_index, std::uint32_t mask) {
  machine_parts& m = parts_.home;
  spe_parts& s = spe_of(parts_, spe_index);
  do {
    parts_.processor().poll(*parts_.thread, there_and_back(m));
  } while (s.proxy.done(mask) != mask && !m.loop.refuse_if_over());
}

bool ppe::yield() {
  return parts_.processor().yield(*parts_.thread);
}

bool ppe::yield_to(ppe_thread to) {
  check_thread(parts_, to);
  if (to->thread == nullptr || to->chip != parts_.chip) return yield();
  return parts_.processor().yield_to(*parts_.thread, *to->thread);
}

void ppe::sleep(const char* why) {
  if (parts_.home.loop.refuse_if_over()) return;
  if (!std::exchange(parts_.was_called, false)) parts_.processor().sleep(*parts_.thread, why);
}

void ppe::wake(ppe_thread whom) {
  check_thread(parts_, whom);
  if (whom->awaits_interrupt || !whom->thread->is_asleep())
    whom->was_called = true;
  else
    whom->processor().wake(*whom->thread);
}

}  // namespace lev::cell
