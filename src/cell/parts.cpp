// Addresses, and the consequences of changed bytes; see parts.hpp.
#include "cell/parts.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace lev::cell {

namespace {

bool overlap(ea_t a, std::uint64_t a_bytes, ea_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

std::uint64_t memory_bytes(const facts& numbers) {
  return static_cast<std::uint64_t>(numbers.whole(fact::memory_mib)) << 20;
}

virt::loop_options loop_options_of(const options& o) {
  constexpr std::size_t stack_min = 16 << 10;
  if (o.stack_bytes < stack_min)
    throw error(error_kind::bad_call, "options::stack_bytes is " + std::to_string(o.stack_bytes) +
                                          ": a program needs 16 KiB and more");
  if (o.progress_max <= virtual_time(0))
    throw error(error_kind::bad_call, "options::progress_max must be above 0: a step takes time");
  return {o.seed, o.stack_bytes, o.polls_max, o.time_max, o.progress_max};
}

}  // namespace

std::string name_of(const spe_parts& s) {
  return "SPE " + std::to_string(s.index) + (s.name.empty() ? "" : " (" + s.name + ")");
}

spe_parts::spe_parts(machine_parts& m, unsigned i)
    : home(m),
      index(i),
      chip(i / (m.numbers.number(fact::spes) / m.numbers.number(fact::chips))),
      queue(m, i, m.numbers.number(fact::queue_entries)),
      proxy(m, i, m.numbers.number(fact::proxy_entries)) {
  in.entries = 4;
  store_end = m.bytes_of(fact::store_kib);
  bytes.reset(static_cast<std::byte*>(std::calloc(store_end + line_bytes, 1)));
  if (!bytes) throw std::bad_alloc();
  void* begin = bytes.get();
  std::size_t room = store_end + line_bytes;
  store = static_cast<std::byte*>(std::align(line_bytes, store_end, begin, room));
  free_all();
}

void spe_parts::free_all() {
  free_from = home.bytes_of(fact::kernel_kib);
  free_to = store_end - home.bytes_of(fact::stack_kib);
}

virtual_time checked_time(virtual_time d, const std::string& who, const char* call) {
  if (d >= virtual_time(0) && d <= std::chrono::hours(1)) return d;
  throw error(error_kind::bad_call, who + ": " + call + ": a time of " +
                                        std::to_string(d.count() / 1'000'000) +
                                        " ns: it must be from 0 to an hour");
}

virtual_time checked_time(const machine_parts& m, cycles n, const std::string& who,
                          const char* call) {
  const std::int64_t most = m.clock.cycles_in(std::chrono::hours(1)).count;
  if (n.count >= 0 && n.count <= most) return m.clock.time_of(n);
  throw error(error_kind::bad_call, who + ": " + call + ": a time of " + std::to_string(n.count) +
                                        " cycles: it must be from 0 to an hour");
}

virt::processor& ppe_parts::processor() const {
  return *home.processors[chip];
}

void arrival::on_event(std::uint64_t number) {
  const auto found = std::find_if(pending.begin(), pending.end(),
                                  [&](const auto& p) { return p.first == number; });
  LEV_ASSERT(found != pending.end());
  const std::function<void()> what = std::move(found->second);
  pending.erase(found);
  what();
}

machine_parts::machine_parts(const machine_file& file, const options& o)
    : numbers(file),
      opts(o),
      clock(numbers.get(fact::clock_rate)),
      loop(loop_options_of(o)),
      wires(numbers, numbers.number(fact::spes), numbers.number(fact::chips)) {
  const unsigned chips = numbers.number(fact::chips);
  const std::uint64_t all = memory_bytes(numbers);
  void* mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory = static_cast<std::byte*>(mapped);
  (void)madvise(mapped, all, MADV_HUGEPAGE);  // transfers touch it page by page
  chip_bytes = all / chips / line_bytes * line_bytes;
  used.assign(chips, 0);
  near.assign(chips, near_cache(bytes_of(fact::ppe_near_cache)));
  virt::processor_settings p;
  p.contexts = numbers.number(fact::ppe_contexts);
  p.quantum = numbers.micros(fact::ppe_quantum);
  p.switch_time = numbers.micros(fact::ppe_switch);
  p.yield_to_time = virtual_time(static_cast<std::int64_t>(
      static_cast<double>(p.switch_time.count()) * numbers.get(fact::ppe_yield_to)));
  p.empty_yield_time = numbers.micros(fact::ppe_empty_yield);
  for (unsigned c = 0; c < chips; ++c)
    processors.push_back(std::make_unique<virt::processor>(loop, p));
  for (unsigned i = 0; i < numbers.number(fact::spes); ++i)
    spes.push_back(std::make_unique<spe_parts>(*this, i));
}

machine_parts::~machine_parts() {
  munmap(memory, memory_bytes(numbers));
}

bus_target machine_parts::target_of(ea_t ea) const {
  if (ea >= stores_begin) return {true, static_cast<unsigned>((ea - stores_begin) / store_span)};
  return {false, static_cast<unsigned>((ea - memory_begin) / chip_bytes)};
}

void* machine_parts::host_of(ea_t ea) const {
  if (ea >= stores_begin) {
    const bus_target t = target_of(ea);
    return spes[t.index]->store + (ea - stores_begin) % store_span;
  }
  return memory + (ea - memory_begin);
}

bool machine_parts::has_range(ea_t ea, std::uint64_t bytes) const {
  const ea_t end = memory_begin + chip_bytes * used.size();
  if (ea >= memory_begin && ea < end && bytes <= end - ea) return true;
  if (ea < stores_begin) return false;
  const std::uint64_t index = (ea - stores_begin) / store_span;
  const std::uint64_t inside = (ea - stores_begin) % store_span;
  return index < spes.size() && inside + bytes <= spes[index]->store_end;
}

void machine_parts::refuse_range(ea_t ea, std::uint64_t bytes, const std::string& who) const {
  const ea_t end = memory_begin + chip_bytes * used.size();
  throw error(error_kind::bad_address, who + ": there is nothing at address " + hex(ea) + " for " +
                                           std::to_string(bytes) + " bytes; main memory is " +
                                           hex(memory_begin) + " to " + hex(end) +
                                           ", and store_ea() tells where local stores are");
}

bool machine_parts::has_in_store(unsigned spe_index, ls_t ls, std::uint64_t bytes) const {
  const spe_parts& s = *spes[spe_index];
  return ls >= bytes_of(fact::kernel_kib) && ls <= s.free_to && bytes <= s.free_to - ls;
}

void machine_parts::refuse_store(unsigned spe_index, ls_t ls, std::uint64_t bytes,
                                 const std::string& who) const {
  const spe_parts& s = *spes[spe_index];
  throw error(error_kind::bad_address,
              who + ": local store " + hex(ls) + " for " + std::to_string(bytes) +
                  " bytes is not the program's: that is " + hex(bytes_of(fact::kernel_kib)) +
                  " to " + hex(s.free_to) + ", between the kernel and the stacks; use allocate()");
}

void machine_parts::check_list_element(unsigned spe_index, command::kind k, std::size_t number,
                                       ls_t ls, ea_t ea, std::uint32_t bytes) const {
  const auto who = [&] {
    return name_of(*spes[spe_index]) + ": element " + std::to_string(number) + " of a " +
           name_of(k);
  };
  const std::string wrong = why_illegal(ls, ea, bytes);
  if (!wrong.empty()) throw error(error_kind::illegal_transfer, who() + " of " + wrong);
  check_range(ea, bytes, who);
  check_store(spe_index, ls, bytes, who);
}

void machine_parts::was_written(ea_t ea, std::uint32_t count, int by, bool through_caches) {
  if (ea >= stores_begin) {
    const bus_target t = target_of(ea);
    return store_was_written(t.index, static_cast<ls_t>((ea - stores_begin) % store_span), count);
  }
  lose_reservations(ea, count, by);
  drop_near(ea, count, static_cast<unsigned>(near.size()));
  if (!through_caches) {
    lines.drop(ea, count);
  } else if (by >= 0) {
    const auto index = static_cast<unsigned>(by);
    lines.wrote_through(ea, spe_agent(index), ppe_agent(spes[index]->chip));
  }
  look(watchers, ea, count);
}

void machine_parts::store_was_written(unsigned spe_index, ls_t ls, std::uint32_t count) {
  look(spes[spe_index]->watchers, ls, count);
}

void machine_parts::lose_reservations(ea_t ea, std::uint32_t count, int by,
                                      const ppe_parts* thread) {
  for (const auto& s : spes) {
    if (s->reserved == no_line || static_cast<int>(s->index) == by) continue;
    if (!overlap(s->reserved, line_bytes, ea, count)) continue;
    s->reserved = no_line;
    if (s->reservation_waiter != nullptr) loop.wake(*std::exchange(s->reservation_waiter, nullptr));
  }
  for (const auto& t : threads)
    if (t.get() != thread && t->reserved != no_line && overlap(t->reserved, line_bytes, ea, count))
      t->reserved = no_line;
}

void machine_parts::drop_near(ea_t ea, std::uint32_t count, unsigned but) {
  for (unsigned chip = 0; chip < near.size(); ++chip)
    if (chip != but) near[chip].drop(ea, count);
}

void machine_parts::look(std::vector<watcher*>& all, ea_t ea, std::uint32_t count) {
  for (watcher* w : all) {
    if (!overlap(w->ea, w->bytes, ea, count)) continue;
    if (w->actor != nullptr) loop.wake(*w->actor);
    if (w->thread != nullptr) w->thread->processor().poke(*w->thread->thread);
  }
}

void machine_parts::after(virtual_time d, std::function<void()> what) {
  later.pending.emplace_back(++later.numbers, std::move(what));
  loop.post(loop.now() + d, later, later.numbers);
}

void machine_parts::deliver_signal(unsigned spe_index, unsigned which, std::uint32_t value) {
  spe_parts& s = *spes[spe_index];
  s.signals[which - 1] |= value;
  if (s.signal_reader != nullptr) loop.wake(*std::exchange(s.signal_reader, nullptr));
}

}  // namespace lev::cell
