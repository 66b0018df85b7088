// Scopes of ordered tasks in programs at random. See maker.hpp.
#include "exercise/maker.hpp"
#include "exercise/scopes.hpp"

namespace lev::exercise {

constexpr field_block whole_field{0, field_rows, 0, field_row_bytes};

// A block of a few bytes, often of whole rows.
field_block maker::some_block() {
  const auto part = [&](unsigned of, std::uint8_t& first, std::uint8_t& count) {
    count = static_cast<std::uint8_t>(1 + random_.below(chance(3) ? of : of / 2));
    first = static_cast<std::uint8_t>(random_.below(of - count + 1));
  };
  field_block b;
  part(field_rows, b.row, b.rows);
  part(field_row_bytes, b.byte, b.bytes);
  if (chance(3)) b.byte = 0, b.bytes = field_row_bytes;
  if (chance(3)) b.rows = 1;
  return b;
}

std::uint32_t maker::add_field_task(std::uint32_t field, bool only_reads) {
  task_spec t;
  t.field = field;
  t.turns = chance(3) ? random_.below(3'000) : 0;
  t.own.what = only_reads ? kind::value : one_of({kind::value, kind::out, kind::inout});
  t.field_own = some_block();
  t.field_input = only_reads ? whole_field : some_block();
  t.field_result_row = static_cast<std::uint8_t>(random_.below(field_rows));
  t.has_input = only_reads || t.own.what == kind::value || chance(2);
  // A task's outputs lie apart from all else that it names, or it is refused.
  const std::uint64_t own = t.own.what == kind::value ? 0 : bits_of(t.field_own);
  if ((own & bits_of(t.field_input)) != 0) t.has_input = false;
  const std::uint64_t used = own | (t.has_input ? bits_of(t.field_input) : 0);
  t.has_result = !only_reads && chance(4) && (used & bits_of(row_block(t.field_result_row))) == 0;
  if (may_fail_ && chance(10)) t.end = one_of({ending::throws, ending::code});
  if (of_.crash && !is_local_machine() && chance(16)) {
    t.end = ending::crash;
    t.attempts = p_.config.is_confined ? every_attempt : 1 + random_.below(3);
  }
  if (is_local_machine() && chance(4)) t.body = add_naps(1);
  p_.tasks.push_back(t);
  return static_cast<std::uint32_t>(p_.tasks.size() - 1);
}

std::uint32_t maker::add_naps(std::uint32_t count) {
  const std::uint32_t to = add_block();
  for (std::uint32_t i = 0; i < count; ++i) add(to, {.what = verb::nap, .a = random_.below(60)});
  return to;
}

// One that all those on the field come after, so that many of them wait.
std::uint32_t maker::add_slow_task(std::uint32_t field) {
  task_spec t;
  t.field = field;
  t.own.what = kind::inout;
  t.field_own = whole_field;
  t.turns = 100'000;
  if (is_local_machine()) t.body = add_naps(4);
  p_.tasks.push_back(t);
  return static_cast<std::uint32_t>(p_.tasks.size() - 1);
}

step maker::ordered_step(std::uint32_t scope, block_kind k, std::uint32_t locks,
                         const std::vector<std::uint32_t>& owned) {
  step s{.what = verb::ordered, .b = scope};
  if (chance(6)) order(s, owned, k);
  if (of_.locks && is_local_machine() && chance(8)) s.locks = some_locks(locks);
  s.in_c = s.list.empty() && s.after_shown == nobody && s.locks == 0 && chance(3);
  s.priority = chance(4) ? static_cast<std::int32_t>(random_.below(5)) - 2 : 0;
  s.attempts = chance(8) ? 1 + random_.below(4) : 0;
  return s;
}

// Tasks on one field, some others, and now and then more that read than a task can name.
void maker::add_scope(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                      std::vector<std::uint32_t>& owned) {
  if (scopes_used_ == scopes_max) return;
  const std::uint32_t scope = scopes_used_++;
  const std::uint32_t readers = chance(6) ? options::after_max + 2 : 0;
  const std::uint32_t count = readers + 2 + random_.below(12);
  if (readers != 0) add(to, {.what = verb::ordered, .a = add_slow_task(scope), .b = scope});
  for (std::uint32_t i = 0; i < count && p_.tasks.size() < tasks_max; ++i) {
    step s = ordered_step(scope, k, locks, owned);
    const bool is_other = i >= readers && chance(6);
    s.a =
        is_other ? add_task(depth + 1, locks | s.locks, false) : add_field_task(scope, i < readers);
    if (p_.tasks[s.a].what == shape::bulk) continue;  // which has no one task to submit
    const std::uint32_t task = s.a;
    add(to, std::move(s));
    if (may_cancel_ && chance(8)) add(to, {.what = verb::cancel_ordered, .a = task});
    if (k == block_kind::host && host_count_ > 1 && chance(6))
      add(to, {.what = verb::share, .a = task, .b = random_.below(shared_max)});
    if (readers == 0 && chance(10))
      add(to, {.what = verb::wait_ordered, .b = scope, .timeout_ns = timeout(), .in_c = chance(2)});
    if (chance(8)) add_step(to, k, depth, locks, owned);
  }
  if (chance(2)) add(to, {.what = verb::wait_ordered, .b = scope, .in_c = chance(2)});
}

}  // namespace lev::exercise
