// The tasks of programs at random, and the steps that run tasks. See maker.hpp.
#include "exercise/maker.hpp"
#include "exercise/sound.hpp"

#include <algorithm>

namespace lev::exercise {

void maker::order(step& s, const std::vector<std::uint32_t>& owned, block_kind k) {
  for (const std::uint32_t other : owned) {
    if (chance(3)) s.list.push_back(other);
  }
  if (chance(8)) {
    const auto most = options::after_max / (static_cast<std::uint32_t>(s.list.size()) + 1);
    s.repeat = 1 + random_.below(std::clamp(most, 1u, 16u));
  }
  if (k == block_kind::host && host_count_ > 1 && chance(2))
    s.after_shown = random_.below(shared_max);
}

void maker::submit(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                   std::vector<std::uint32_t>& owned) {
  --budget_;
  step s{.what = verb::submit, .is_post = chance(6), .is_typed = chance(2)};
  const bool has_locks = of_.locks && is_local_machine() && chance(4);
  if (has_locks) s.locks = some_locks(locks);
  s.a = add_task(depth + 1, locks | s.locks, false);
  task_spec& t = p_.tasks[s.a];
  if (t.what == shape::bulk) {
    s.is_post = s.is_typed = false;
    s.locks = 0;
  } else {
    if (chance(2)) order(s, owned, k);
    s.priority = chance(3) ? static_cast<std::int32_t>(random_.below(5)) - 2 : 0;
    s.key = chance(4) ? random_.below(3) : 0;
    s.grain = chance(3) ? random_.below(5) : 0;
    s.attempts = chance(6) ? 1 + random_.below(4) : 0;
    s.in_c = s.locks == 0 && s.priority == 0 && s.key == 0 && s.grain == 0 && s.repeat == 1 &&
             s.attempts == 0 && chance(3);
    // C's post has no predecessors.
    if (s.is_post && (!s.list.empty() || s.after_shown != nobody)) s.in_c = false;
  }
  for (const std::uint32_t other : s.list) {
    const task_spec& o = p_.tasks[other];
    const bool fits = words_of(o.own) * 8 <= 2'048;  // a small local store, whole
    if (t.what == shape::plain && t.has_input && o.own.what != kind::value &&
        o.what != shape::bulk && fits && chance(2))
      t.reads = other;
  }
  if (of_.handed && t.body != nobody && t.what == shape::plain && s.locks == 0 && !owned.empty() &&
      chance(6)) {
    const std::uint32_t given = owned[random_.below(static_cast<std::uint32_t>(owned.size()))];
    std::erase(s.list, given);
    if (t.reads != given) {
      s.handed.push_back(given);
      std::erase(owned, given);
      auto& body = p_.blocks[t.body];
      body.insert(body.begin(), step{.what = verb::wait, .a = given, .timeout_ns = timeout()});
    }
  }
  choose_entrance(s);
  if (!s.is_post) owned.push_back(s.a);
  const std::uint32_t task = s.a;
  const bool is_shown = k == block_kind::host && host_count_ > 1 && !s.is_post && chance(2);
  add(to, std::move(s));
  if (is_shown) add(to, {.what = verb::share, .a = task, .b = random_.below(shared_max)});
}

std::uint32_t maker::some_locks(std::uint32_t above) {
  std::uint32_t all = 0;
  for (unsigned m = 0; m < mutexes_max; ++m) {
    if (above < 1u << m && chance(2)) all |= 1u << m;
  }
  return all;
}

void maker::choose_entrance(step& s) {
  const task_spec& t = p_.tasks[s.a];
  if (s.in_c || s.is_post || t.what == shape::bulk || chance(2)) return;
  s.by = has_options(s) || chance(2) ? entrance::try_submit : entrance::at_once;
}

std::uint32_t maker::add_task(std::uint32_t depth, std::uint32_t locks, bool is_leaf) {
  task_spec t;
  const std::uint32_t form = random_.below(p_.config.is_confined ? 4 : 12);
  t.turns = chance(3) ? random_.below(3'000) : 0;
  if (form == 0) {
    t.what = shape::bulk;
    t.pieces = 1 + random_.below(12);
    t.bad_pieces = static_cast<std::uint32_t>(random_.next());
    t.by_columns = chance(2);
    // From bits that no piece has, which are random as well.
    t.made_anywhere = !t.by_columns && (t.bad_pieces >> 31 & 1) != 0;
  } else if (form == 1) {
    t.what = shape::sliced;
    t.pieces = 1 + random_.below(pieces_max);
  }
  if (may_fail_ && chance(6)) t.end = one_of({ending::throws, ending::code});
  const bool is_sliced = t.what == shape::sliced;
  if (is_sliced) t.bad_element = random_.below(t.pieces);
  if (of_.crash && !is_local_machine() && chance(is_sliced ? 4 : 12)) {
    t.end = ending::crash;
    t.attempts = is_sliced ? every_attempt : 1 + random_.below(3);
    t.may_rerun = !chance(4);
    if (p_.config.is_confined)
      t.attempts = every_attempt;
    else if (t.what == shape::plain && chance(4))
      t.end = ending::scribble;
  }
  if (t.what == shape::bulk)
    give_rows(t);
  else
    give_memory(t);
  const bool has_body =
      is_local_machine() && !is_leaf && t.what == shape::plain && depth <= depth_max_ && !chance(3);
  if (has_body) t.body = add_block();
  p_.tasks.push_back(t);
  const auto id = static_cast<std::uint32_t>(p_.tasks.size() - 1);
  if (has_body) fill(t.body, block_kind::body, depth, locks);
  return id;
}

void maker::give_memory(task_spec& t) {
  t.has_input = chance(2);
  t.own.words = 1 + random_.below(12);
  if (chance(3)) {
    t.own.rows = 1 + random_.below(4);
    t.own.gap = random_.below(4);
  }
  if (t.own.rows == 1) t.own.gap = 0;
  t.own.what = one_of({kind::value, kind::out, kind::inout});
  t.own.is_shared = !is_local_machine() && chance(2);
  if (t.what == shape::sliced) {
    t.own.what = kind::inout;
    t.has_hooks = chance(3);
    if (t.own.rows > 1) t.own.rows = t.pieces;
    // All together more than a small local store holds. A hook need not cut what is too large.
    if (t.own.rows > 1 && !t.has_hooks && chance(2)) t.own.words = 64 + random_.below(64);
    if (t.own.rows == 1) t.own.words = t.pieces, t.own.gap = 0;
    return;
  }
  t.own.is_left = of_.unassigned && t.own.what == kind::out && chance(4);
  t.own.is_far = is_local_machine() && t.own.what == kind::inout && t.own.rows == 1 && chance(4);
  t.has_result = chance(3);
  t.leaves_result = of_.unassigned && chance(2);
}

void maker::give_rows(task_spec& t) {
  t.has_input = chance(2);  // one that is made anywhere is then made ahead
  t.shares_input = chance(2);
  t.is_backward = chance(4);
  t.own.rows = t.pieces;
  t.own.words = 1 + random_.below(6);
  t.own.gap = chance(2) ? 0 : 1 + random_.below(3);
  t.own.what = one_of({kind::value, kind::out, kind::inout});
  t.own.is_shared = !is_local_machine() && chance(2);
  t.own.is_left = of_.unassigned && t.own.what == kind::out && chance(4);
  t.has_result = chance(3);
  t.leaves_result = of_.unassigned && chance(2);
}

void maker::add_await(std::uint32_t to, std::uint32_t depth, std::uint32_t locks) {
  step s{.what = verb::await};
  const std::uint32_t count = 1 + random_.below(3);
  for (std::uint32_t i = 0; i < count && budget_ != 0; ++i, --budget_)
    s.list.push_back(add_task(depth + 1, locks, false));
  if (!s.list.empty()) add(to, s);
}

void maker::add_inner(std::uint32_t to, verb v, std::uint32_t depth, std::uint32_t locks) {
  step s{.what = v, .grain = random_.below(3)};
  const bool has_items = v == verb::loop || v == verb::strands;
  if (v == verb::strands) {
    s.a = one_of({strands_automatic, 1u, 2u, 5u, 64u});
    s.in_c = chance(3);
  }
  const std::uint32_t count = 1 + random_.below(has_items ? 12 : 3);
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_empty = has_items && !chance(4);
    s.list.push_back(is_empty ? nobody : add_block());
    if (!is_empty)
      fill(s.list.back(), has_items ? block_kind::piece : block_kind::thread, depth + 1, locks);
  }
  add(to, s);
}

// Tasks that meet: each sets its flag, then waits for those of the others, once or twice.
void maker::add_meeting(std::uint32_t to, block_kind k, std::vector<std::uint32_t>& owned) {
  const std::uint32_t count = 2 + random_.below(5);
  const std::uint32_t rounds = 1 + random_.below(2);
  if (flags_used_ + count * rounds > flags_max) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    task_spec t;
    t.body = add_block();
    for (std::uint32_t r = 0; r < rounds; ++r) {
      const std::uint32_t first = flags_used_ + r * count;
      if (chance(3)) add(t.body, {.what = verb::nap, .a = random_.below(30)});
      add(t.body, {.what = verb::set_flag, .a = first + i});
      for (std::uint32_t other = 0; other < count; ++other) {
        if (other != i) add(t.body, {.what = verb::await_flag, .a = first + other});
      }
    }
    p_.tasks.push_back(t);
    const auto id = static_cast<std::uint32_t>(p_.tasks.size() - 1);
    add(to, {.what = verb::submit, .a = id, .is_typed = true});
    if (k == block_kind::host && chance(4))
      owned.push_back(id);
    else
      add(to, {.what = verb::poll, .a = id});
  }
  flags_used_ += count * rounds;
}

// A task or a callback that keeps its worker until another task has run.
void maker::add_spinner(std::uint32_t to, std::vector<std::uint32_t>& owned) {
  // Tasks of other hosts may keep the other workers of a pool.
  if (flags_used_ == flags_max || p_.config.workers < 2 || machine_ == place::pool) return;
  const std::uint32_t flag = flags_used_++;
  task_spec one;
  task_spec two;
  const bool in_callback = is_local_machine() && chance(2);
  if (is_local_machine()) {
    one.body = add_block();
    two.body = add_block();
    if (!in_callback) add(one.body, {.what = verb::spin_flag, .a = flag});
    add(two.body, {.what = verb::set_flag, .a = flag});
  } else {
    one.spins_on = flag;
    two.sets_flag = flag;
  }
  p_.tasks.push_back(one);
  p_.tasks.push_back(two);
  const auto id = static_cast<std::uint32_t>(p_.tasks.size() - 2);
  add(to, {.what = verb::submit, .a = id, .is_typed = true});
  if (in_callback) {
    const std::uint32_t tail = add_block();
    add(tail, {.what = verb::spin_flag, .a = flag});
    add(to, {.what = verb::then, .a = id, .b = tail});
    // A host that helped could be kept by a task that waits for one suspended below the callback.
    add(to, {.what = verb::wait, .a = id, .policy = idle_policy()});
  }
  add(to, {.what = verb::submit, .a = id + 1, .is_typed = true});
  owned.push_back(id + 1);
  if (!in_callback) owned.push_back(id);
}

}  // namespace lev::exercise
