// The calls of an SPE program: its store, its time, its transfers, its threads.
#include <leveret/cell.hpp>

#include <algorithm>

#include "base/numbers.hpp"
#include "cell/parts.hpp"

namespace lev::cell {

namespace {

std::string what(const spe_parts& s, command::kind k) {
  return name_of(s) + ": " + name_of(k);
}

void transfer(spe_parts& s, command::kind k, ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag,
              order o) {
  check_tag(s, tag, name_of(k));
  const std::string wrong = why_illegal(ls, ea, bytes);
  if (!wrong.empty()) throw error(error_kind::illegal_transfer, what(s, k) + " of " + wrong);
  s.home.check_range(ea, bytes, [&] { return what(s, k); });
  s.home.check_store(s.index, ls, bytes, [&] { return what(s, k); });
  issue(s, {k, o, tag, ls, ea, bytes});
}

void transfer_list(spe_parts& s, command::kind k, ls_t ls, ea_t ea, const local<list_element>& list,
                   unsigned tag, order o) {
  check_tag(s, tag, name_of(k));
  const std::string wrong = why_illegal_list(list.ls, list.size);
  if (!wrong.empty()) throw error(error_kind::illegal_transfer, what(s, k) + ": " + wrong);
  s.home.check_store(s.index, list.ls, list.bytes(), [&] { return what(s, k); });
  ls_t at = ls;
  const auto* elements = static_cast<const list_element*>(s.home.store_of(s.index, list.ls));
  for (std::size_t i = 0; i < list.size; ++i) {
    const ea_t target = (ea & ~ea_t{0xffffffff}) | elements[i].low;
    s.home.check_list_element(s.index, k, i, at, target, elements[i].bytes);
    at = (at + elements[i].bytes + 15) & ~ls_t{15};
  }
  command c{k, o, tag, ls, ea, list.bytes()};
  c.list = list.ls;
  issue(s, std::move(c));
}

}  // namespace

void check_tag(const spe_parts& s, unsigned tag, const char* call) {
  const std::string wrong = why_bad_tag(tag);
  if (!wrong.empty()) throw error(error_kind::bad_tag, name_of(s) + ": " + call + ": " + wrong);
}

void issue(spe_parts& s, command c) {
  machine_parts& m = s.home;
  m.loop.wait(m.time_of(fact::issue));
  const virtual_time begin = m.loop.now();
  while (s.queue.is_full())
    if (!s.queue.wait_change("room in the queue of its MFC")) return;
  s.counts.transfer_waits += m.loop.now() - begin;
  s.queue.add(std::move(c));
}

unsigned spe::index() const {
  return parts_.index;
}
unsigned spe::chip() const {
  return parts_.chip;
}
virtual_time spe::now() const {
  return parts_.home.loop.now();
}
cycles spe::now_cycles() const {
  return parts_.home.clock.cycles_in(now());
}
std::uint32_t spe::random(std::uint32_t bound) {
  return parts_.home.loop.current()->random.below(bound);
}
void* spe::at(ls_t ls) const {
  return parts_.store + ls;
}

std::size_t spe::store_left() const {
  return parts_.free_to - parts_.free_from;
}

ls_t spe::allocate_bytes(std::size_t count, std::size_t each, std::size_t align) {
  if (align == 0 || (align & (align - 1)) != 0)
    throw error(error_kind::bad_call, name_of(parts_) + ": an alignment of " +
                                          std::to_string(align) + ": it must be a power of two");
  std::uint64_t bytes = 0;
  if (!checked_multiply(count, each, &bytes)) bytes = ~std::uint64_t{0};
  const std::size_t begin = (parts_.free_from + align - 1) / align * align;
  if (begin > parts_.free_to || bytes > parts_.free_to - begin)
    throw error(error_kind::store_overflow,
                name_of(parts_) + ": no room for " + std::to_string(bytes) +
                    " bytes in the local store: " + std::to_string(store_left()) + " of " +
                    std::to_string(parts_.store_end) +
                    " are left beside the kernel, the stacks and what was allocated");
  parts_.free_from = static_cast<ls_t>(begin + bytes);
  return static_cast<ls_t>(begin);
}

void spe::compute(cycles n) {
  const virtual_time d = checked_time(parts_.home, n, name_of(parts_), "compute");
  parts_.home.loop.wait(d);
  parts_.counts.computed += d;
}

void spe::poll(cycles n) {
  parts_.home.loop.poll(checked_time(parts_.home, n, name_of(parts_), "poll"));
}

void spe::progress(virtual_time ahead) {
  parts_.home.loop.progress(checked_time(ahead, name_of(parts_), "progress"));
}
void spe::doing(const char* what) {
  parts_.home.loop.doing(what);
}

void spe::get(ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag, order o) {
  transfer(parts_, command::kind::get, ls, ea, bytes, tag, o);
}
void spe::put(ls_t ls, ea_t ea, std::uint32_t bytes, unsigned tag, order o) {
  transfer(parts_, command::kind::put, ls, ea, bytes, tag, o);
}
void spe::get_list(ls_t ls, ea_t ea, const local<list_element>& list, unsigned tag, order o) {
  transfer_list(parts_, command::kind::get_list, ls, ea, list, tag, o);
}
void spe::put_list(ls_t ls, ea_t ea, const local<list_element>& list, unsigned tag, order o) {
  transfer_list(parts_, command::kind::put_list, ls, ea, list, tag, o);
}

std::uint32_t spe::wait_all(std::uint32_t mask) {
  machine_parts& m = parts_.home;
  m.loop.wait(m.time_of(fact::poll));
  const virtual_time begin = m.loop.now();
  while (parts_.queue.done(mask) != mask)
    if (!parts_.queue.wait_change("tag groups of its MFC")) break;
  parts_.counts.transfer_waits += m.loop.now() - begin;
  return mask;
}

std::uint32_t spe::wait_any(std::uint32_t mask) {
  machine_parts& m = parts_.home;
  m.loop.wait(m.time_of(fact::poll));
  const virtual_time begin = m.loop.now();
  while (mask != 0 && parts_.queue.done(mask) == 0)
    if (!parts_.queue.wait_change("one of several tag groups of its MFC")) break;
  parts_.counts.transfer_waits += m.loop.now() - begin;
  return parts_.queue.done(mask);
}

std::uint32_t spe::tags_done(std::uint32_t mask) {
  parts_.home.loop.poll(parts_.home.time_of(fact::poll));
  return parts_.queue.done(mask);
}

std::uint32_t spe::spin(const local<std::uint32_t>& word, std::uint32_t value, cycles lap) {
  machine_parts& m = parts_.home;
  const auto who = [&] { return name_of(parts_) + ": spin"; };
  m.check_store(parts_.index, word.ls, sizeof(std::uint32_t), who);
  if (word.ls % sizeof(std::uint32_t) != 0 || lap < cycles(1))
    throw error(error_kind::bad_call, who() + " on local store " + hex(word.ls) + ", a lap of " +
                                          std::to_string(lap.count) +
                                          " cycles: words lie at multiples of 4, and a lap takes "
                                          "a cycle or more");
  const auto& looked_at = *static_cast<const std::uint32_t*>(m.store_of(parts_.index, word.ls));
  const std::int64_t each = checked_time(m, lap, name_of(parts_), "spin").count();
  const virtual_time begin = m.loop.now();
  watcher w{word.ls, sizeof(std::uint32_t), m.loop.current()};
  do {
    while (looked_at == value) {
      const watching here(parts_.watchers, w);
      if (!m.loop.block("a change of a word in its local store")) return looked_at;
    }
    // The first poll after the change sees what is there then, which may be the old value again.
    const std::int64_t since = (m.loop.now() - begin).count();
    m.loop.wait(virtual_time((since / each + 1) * each - since));
  } while (looked_at == value && !m.loop.refuse_if_over());
  return looked_at;
}

unsigned spe::spawn(std::function<void()> body) {
  machine_parts& m = parts_.home;
  spe_parts& s = parts_;
  if (!body) throw error(error_kind::bad_call, name_of(s) + ": spawn() of an empty function");
  const ls_t stack = m.bytes_of(fact::stack_kib);
  if (store_left() < stack)
    throw error(error_kind::store_overflow,
                name_of(s) + ": no room for the stack of another thread (" + std::to_string(stack) +
                    " bytes) in the local store: " + std::to_string(store_left()) + " are left");
  const auto number = static_cast<unsigned>(s.threads.size());
  virt::actor& a = m.loop.start(name_of(s) + " thread " + std::to_string(number),
                                [&m, &s, body = std::move(body)] {
                                  virt::actor* me = m.loop.current();
                                  if (!m.loop.block("its turn")) return;
                                  body();
                                  const auto mine = std::find(s.turns.begin(), s.turns.end(), me);
                                  const auto next = s.turns.erase(mine);
                                  m.loop.wake(next == s.turns.end() ? *s.turns.front() : **next);
                                });
  s.free_to -= stack;
  s.turns.push_back(&a);
  s.threads.push_back(&a);
  // It runs to the point where it waits for its turn, while the clock stands.
  while (!m.loop.is_blocked(a) && !m.loop.refuse_if_over()) m.loop.wait(virtual_time(0));
  return number;
}

void spe::yield() {
  machine_parts& m = parts_.home;
  m.loop.poll(m.time_of(fact::thread_switch));
  virt::actor* me = m.loop.current();
  const auto mine = std::find(parts_.turns.begin(), parts_.turns.end(), me);
  if (mine == parts_.turns.end() || parts_.turns.size() == 1) return;
  const auto next = mine + 1 == parts_.turns.end() ? parts_.turns.begin() : mine + 1;
  m.loop.hand_to(**next, "its turn");
}

void spe::join(unsigned thread) {
  if (thread >= parts_.threads.size())
    throw error(error_kind::bad_call, name_of(parts_) + ": there is no thread " +
                                          std::to_string(thread) + "; spawn() tells the number");
  virt::actor* whom = parts_.threads[thread];
  if (whom == parts_.home.loop.current())
    throw error(error_kind::bad_call,
                name_of(parts_) + ": thread " + std::to_string(thread) + " cannot join itself");
  const auto& turns = parts_.turns;
  while (std::find(turns.begin(), turns.end(), whom) != turns.end() &&
         !parts_.home.loop.refuse_if_over())
    yield();
}

}  // namespace lev::cell
