// The messages of an SPE program: atomic lines, mailboxes, signals.
#include <leveret/cell.hpp>

#include <algorithm>
#include <cstring>

#include "cell/parts.hpp"

namespace lev::cell {

namespace {

void check_line(const spe_parts& s, ls_t ls, ea_t ea, const char* name) {
  const auto who = [&] { return name_of(s) + ": " + name; };
  if (ls % line_bytes != 0 || ea % line_bytes != 0)
    throw error(error_kind::illegal_transfer, who() + " of local store " + hex(ls) +
                                                  " and address " + hex(ea) +
                                                  ": both must be multiples of 128");
  if (ea >= stores_begin)
    throw error(error_kind::bad_address, who() + " of a local store: lines are in main memory");
  s.home.check_range(ea, line_bytes, who);
  s.home.check_store(s.index, ls, line_bytes, who);
}

// The time for a line that the atomic unit holds, or for one that comes from elsewhere; then it
// holds it.
void fetch(spe_parts& s, ea_t ea, bool is_look = false) {
  machine_parts& m = s.home;
  const bool is_own = m.lines.holds(ea, m.spe_agent(s.index));
  const virtual_time d = m.time_of(is_own ? fact::atomic_own : fact::atomic_remote);
  is_look ? m.loop.poll(d) : m.loop.wait(d);
}

void keep(spe_parts& s, ea_t ea) {
  machine_parts& m = s.home;
  std::erase(s.atomic_lines, ea);
  s.atomic_lines.push_back(ea);
  if (s.atomic_lines.size() > m.numbers.number(fact::atomic_lines)) {
    m.lines.leave(s.atomic_lines.front(), m.spe_agent(s.index));
    s.atomic_lines.erase(s.atomic_lines.begin());
  }
}

void write_line(spe_parts& s, ls_t ls, ea_t ea) {
  machine_parts& m = s.home;
  std::memcpy(m.host_of(ea), m.store_of(s.index, ls), line_bytes);
  m.was_written(ea, line_bytes, static_cast<int>(s.index), true);
  keep(s, ea);
  m.loop.note(ea ^ s.index);
}

void check_signal(const spe_parts& s, unsigned to, unsigned which) {
  if (to >= s.home.spes.size() || which < 1 || which > 2)
    throw error(error_kind::bad_call, name_of(s) + ": signal " + std::to_string(which) +
                                          " of SPE " + std::to_string(to) +
                                          ": signals are 1 and 2, and there are " +
                                          std::to_string(s.home.spes.size()) + " SPEs");
}

// Puts a letter where it will be read; wakes its waiters.
void deliver(spe_parts& s, mailbox& box, std::uint32_t value) {
  machine_parts& m = s.home;
  box.letters.push_back(value);
  if (&box != &s.interrupt) return;
  m.interrupts.push_back(s.index);
  // All waiters look; the first one takes it.
  for (std::vector<ppe_parts*>* some : {&box.sleepers, &m.any_sleepers}) {
    for (ppe_parts* each : *some)
      m.after(m.numbers.micros(fact::ppe_interrupt),
              [each] { each->processor().wake(*each->thread); });
    if (!some->empty()) return some->clear();
  }
}

bool wait_for_room(spe_parts& s, mailbox& box, const char* why) {
  machine_parts& m = s.home;
  m.loop.wait(m.time_of(fact::channel));
  while (!box.has_room()) {
    box.writer = m.loop.current();
    if (!m.loop.block(why)) return false;
  }
  return true;
}

}  // namespace

void spe::getllar(ls_t ls, ea_t ea) {
  spe_parts& s = parts_;
  check_line(s, ls, ea, "getllar");
  fetch(s, ea, true);
  std::memcpy(s.home.store_of(s.index, ls), s.home.host_of(ea), line_bytes);
  s.home.lines.read(ea, s.home.spe_agent(s.index));
  keep(s, ea);
  s.reserved = ea;
}

bool spe::putllc(ls_t ls, ea_t ea) {
  spe_parts& s = parts_;
  check_line(s, ls, ea, "putllc");
  fetch(s, ea);
  const bool is_mine = s.reserved == ea;
  s.reserved = no_line;
  if (is_mine) write_line(s, ls, ea);
  return is_mine;
}

void spe::putlluc(ls_t ls, ea_t ea) {
  check_line(parts_, ls, ea, "putlluc");
  fetch(parts_, ea);
  write_line(parts_, ls, ea);
}

void spe::putqlluc(ls_t ls, ea_t ea, unsigned tag) {
  spe_parts& s = parts_;
  check_line(s, ls, ea, "putqlluc");
  check_tag(s, tag, "putqlluc");
  // Architecture: behind all before it in its tag group, as if it had a fence.
  command c{command::kind::put, order::fence, tag, ls, ea, line_bytes};
  c.is_atomic = true;
  issue(s, std::move(c));
}

void spe::wait_lost_reservation() {
  spe_parts& s = parts_;
  s.home.loop.wait(s.home.time_of(fact::channel));
  while (s.reserved != no_line) {
    s.reservation_waiter = s.home.loop.current();
    if (!s.home.loop.block("the loss of its reservation")) return;
  }
}

std::uint32_t spe::read_mailbox() {
  machine_parts& m = parts_.home;
  m.loop.wait(m.time_of(fact::channel));
  mailbox& box = parts_.in;
  while (box.letters.empty()) {
    box.reader = m.loop.current();
    if (!m.loop.block("a letter in its mailbox")) return 0;
  }
  const std::uint32_t value = box.letters.front();
  box.letters.pop_front();
  return value;
}

unsigned spe::mailbox_count() {
  parts_.home.loop.poll(parts_.home.time_of(fact::channel));
  return static_cast<unsigned>(parts_.in.letters.size());
}

void spe::write_mailbox(std::uint32_t value) {
  if (wait_for_room(parts_, parts_.out, "room in its outbound mailbox"))
    deliver(parts_, parts_.out, value);
}

void spe::write_interrupt_mailbox(std::uint32_t value) {
  if (wait_for_room(parts_, parts_.interrupt, "room in its interrupt mailbox"))
    deliver(parts_, parts_.interrupt, value);
}

bool spe::try_write_interrupt_mailbox(std::uint32_t value) {
  parts_.home.loop.poll(parts_.home.time_of(fact::channel));
  if (!parts_.interrupt.has_room()) return false;
  deliver(parts_, parts_.interrupt, value);
  return true;
}

std::uint32_t spe::read_signal(unsigned which) {
  machine_parts& m = parts_.home;
  check_signal(parts_, parts_.index, which);
  m.loop.wait(m.time_of(fact::channel));
  while (parts_.signals[which - 1] == 0) {
    parts_.signal_reader = m.loop.current();
    if (!m.loop.block("a signal")) return 0;
  }
  return std::exchange(parts_.signals[which - 1], 0);
}

void spe::send_signal(unsigned to_spe, unsigned which, std::uint32_t value, unsigned tag) {
  spe_parts& s = parts_;
  check_signal(s, to_spe, which);
  check_tag(s, tag, "send_signal");
  s.home.loop.wait(s.home.time_of(fact::issue));
  s.home.after(s.home.time_of(fact::store_latency),
               [&s, to_spe, which, value] { s.home.deliver_signal(to_spe, which, value); });
}

}  // namespace lev::cell
