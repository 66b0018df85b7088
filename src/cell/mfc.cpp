// How commands of an MFC begin and end; see mfc.hpp.
#include "cell/mfc.hpp"

#include <algorithm>
#include <cstring>

#include "cell/parts.hpp"

namespace lev::cell {

namespace {
constexpr int poison = 0xd5;
}

void mfc::add(command c) {
  LEV_DCHECK(!is_full());
  c.number = ++numbers_;
  commands_.push_back(std::move(c));
  begin_what_may();
}

std::uint32_t mfc::done(std::uint32_t mask) const {
  std::uint32_t open = 0;
  for (const command& c : commands_) open |= 1u << c.tag;
  return mask & ~open;
}

bool mfc::wait_change(const char* why) {
  if (home_.loop.refuse_if_over()) return false;
  LEV_DCHECK(waiter_ == nullptr);
  waiter_ = home_.loop.current();
  return home_.loop.block(
      why, [](const void* me) { return static_cast<const mfc*>(me)->under_way(); }, this);
}

std::string mfc::under_way() const {
  std::string text = ", with " + std::to_string(commands_.size()) + " in the queue";
  for (const command& c : commands_)
    text += std::string(c.is_get() ? ", get" : ", put") + " tag " + std::to_string(c.tag);
  return text;
}

bool mfc::may_begin(std::size_t index) const {
  const command& c = commands_[index];
  for (std::size_t i = 0; i < index; ++i) {
    const command& before = commands_[i];
    if (before.tag == c.tag && (c.ordered != order::none || before.ordered == order::barrier))
      return false;
  }
  return true;
}

void mfc::begin_what_may() {
  for (std::size_t i = 0; i < commands_.size(); ++i)
    if (!commands_[i].has_started && may_begin(i)) begin(commands_[i]);
}

// The data of a get is unknown until it has ended; but what it reads stays what it is, also where
// that is in the same store.
void mfc::hide_target(const command& c, ls_t ls, ea_t ea, std::uint32_t bytes) {
  machine_parts& m = home_;
  if (!m.opts.poison || !c.is_get()) return;
  const ea_t to = stores_begin + spe_index_ * store_span + ls;
  if (to < ea + bytes && ea < to + bytes) return;
  std::memset(m.store_of(spe_index_, ls), poison, bytes);
}

void mfc::begin(command& c) {
  machine_parts& m = home_;
  c.has_started = true;
  if (running_++ == 0) m.wires.begin();
  if (c.is_atomic) {  // a line that goes to the caches, not to memory
    m.loop.post(m.loop.now() + m.time_of(fact::way), *this, c.number);
    return;
  }
  if (!c.is_list()) {
    const bus_target there = m.target_of(c.ea);
    hide_target(c, c.ls, c.ea, c.bytes);
    m.loop.post(m.wires.transfer(spe_index_, c.is_get(), c.ls, c.ea, c.bytes, there, m.loop.now()),
                *this, c.number);
    return;
  }
  c.elements.resize(c.bytes / sizeof(list_element));
  std::memcpy(c.elements.data(), m.store_of(spe_index_, c.list), c.bytes);
  virtual_time at = m.loop.now();
  virtual_time end = at;
  ls_t ls = c.ls;
  std::size_t number = 0;
  for (const list_element& e : c.elements) {
    const ea_t ea = (c.ea & ~ea_t{0xffffffff}) | e.low;
    m.check_list_element(spe_index_, c.is, number++, ls, ea, e.bytes);
    at += m.clock.time_of(m.numbers.cycles(fact::list_element));
    hide_target(c, ls, ea, e.bytes);
    end = std::max(end,
                   m.wires.transfer(spe_index_, c.is_get(), ls, ea, e.bytes, m.target_of(ea), at));
    ls = (ls + e.bytes + 15) & ~ls_t{15};
  }
  m.loop.post(end, *this, c.number);
}

void mfc::on_event(std::uint64_t number) {
  const auto found = std::find_if(commands_.begin(), commands_.end(),
                                  [&](const command& c) { return c.number == number; });
  LEV_ASSERT(found != commands_.end());
  const command c = std::move(*found);
  commands_.erase(found);
  if (--running_ == 0) home_.wires.end();
  home_.loop.note((std::uint64_t{spe_index_} << 48) ^ (std::uint64_t{c.tag} << 40) ^ c.ea ^
                  c.bytes);
  move(c);
  begin_what_may();
  if (waiter_ != nullptr) home_.loop.wake(*std::exchange(waiter_, nullptr));
}

void mfc::move(const command& c) {
  if (!c.is_list()) return move_one(c, c.ls, c.ea, c.bytes);
  ls_t ls = c.ls;
  for (const list_element& e : c.elements) {
    move_one(c, ls, (c.ea & ~ea_t{0xffffffff}) | e.low, e.bytes);
    ls = (ls + e.bytes + 15) & ~ls_t{15};
  }
}

void mfc::move_one(const command& c, ls_t ls, ea_t ea, std::uint32_t bytes) {
  machine_parts& m = home_;
  spe_parts& s = *m.spes[spe_index_];
  ++s.counts.transfers;
  s.counts.bytes += bytes;
  void* in_store = m.store_of(spe_index_, ls);
  void* outside = m.host_of(ea);  // of the same store, maybe, and of some of the same bytes
  if (c.is_get()) {
    std::memmove(in_store, outside, bytes);
    m.store_was_written(spe_index_, ls, bytes);
  } else {
    std::memmove(outside, in_store, bytes);
    m.was_written(ea, bytes, static_cast<int>(spe_index_), c.is_atomic);
  }
}

}  // namespace lev::cell
