// Programs at random. One uses only some of the verbs, each at a rate of its own, so that rare ones
// meet often in some programs. What breaks a rule of sound.hpp is mended by a larger
// configuration, or thrown away.
#include "exercise/generate.hpp"

#include "base/random.hpp"
#include "exercise/sound.hpp"

#include <algorithm>

namespace lev::exercise {

namespace {

enum class block_kind { host, body, callback, piece, thread };

class maker {
 public:
  maker(std::uint64_t seed, place machine, const ingredients& of)
      : random_(seed), machine_(machine), of_(of) {
    p_.seed = seed;
    p_.config.machine = machine;
    for (unsigned& r : rates_) r = chance(3) ? 0 : 1 + random_.below(6);
    for (unsigned v = 0; v < static_cast<unsigned>(verb::verb_count); ++v)
      if (!of.has_verb[v]) rates_[v] = 0;
    budget_ = 1 + random_.below(chance(4) ? 28 : 10);
    depth_max_ = 1 + random_.below(4);
    may_fail_ = chance(2);
    may_cancel_ = chance(2);
    configure();
  }

  program make() {
    p_.hosts.push_back(add_block());
    const bool has_hosts = of_.hosts && machine_ != place::sim && chance(3);
    const std::uint32_t others = has_hosts ? 1 + random_.below(3) : 0;
    host_count_ = 1 + others;
    fill_main(others);
    for (std::uint32_t h = 1; h <= others; ++h) {
      budget_ = std::max(budget_, 1 + random_.below(6));
      p_.hosts.push_back(add_block());
      fill(p_.hosts.back(), block_kind::host, 0, 0);
    }
    p_.close_cancels = of_.close_cancels && !uses_flags(p_) && chance(8);
    p_.drops_runtime = !p_.close_cancels && chance(8);
    return p_;
  }

 private:
  bool chance(std::uint32_t one_in) { return random_.below(one_in) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + random_.below(static_cast<std::uint32_t>(all.size())));
  }
  std::uint32_t add_block() {
    p_.blocks.emplace_back();
    return static_cast<std::uint32_t>(p_.blocks.size() - 1);
  }
  bool is_local_machine() const { return is_local(machine_); }
  unsigned rate(verb v) const { return rates_[static_cast<unsigned>(v)]; }

  void configure();
  void fill_main(std::uint32_t others);
  void fill(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks);
  void add_step(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks,
                std::vector<std::uint32_t>& owned);
  bool add_of_ticket(std::uint32_t block, block_kind k, step s,
                     const std::vector<std::uint32_t>& owned);
  bool add_of_block(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks,
                    step s, std::vector<std::uint32_t>& owned);
  void add_plain(std::uint32_t block, block_kind k, step s);
  void finish(std::uint32_t block, block_kind k, std::vector<std::uint32_t>& owned);
  void submit(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks,
              std::vector<std::uint32_t>& owned);
  void add_await(std::uint32_t block, std::uint32_t depth, std::uint32_t locks);
  void add_inner(std::uint32_t block, verb v, std::uint32_t depth, std::uint32_t locks);
  void add_meeting(std::uint32_t block, block_kind k, std::vector<std::uint32_t>& owned);
  void add_spinner(std::uint32_t block, std::vector<std::uint32_t>& owned);
  std::uint32_t add_task(std::uint32_t depth, std::uint32_t locks, bool is_leaf);
  void give_memory(task_spec& t);
  void order(step& s, const std::vector<std::uint32_t>& owned, block_kind k);
  void add(std::uint32_t block, step s) { p_.blocks[block].push_back(std::move(s)); }
  std::int64_t timeout() {
    return chance(2) ? forever : one_of<std::int64_t>({forever, 0, 1'000, 50'000, 500'000});
  }
  wait_policy policy() {
    return chance(2) ? wait_policy::of_runtime
                     : one_of({wait_policy::help, wait_policy::park, wait_policy::spin,
                               wait_policy::yield, wait_policy::directed});
  }

  random_source random_;
  place machine_;
  const ingredients& of_;
  program p_;
  unsigned rates_[static_cast<unsigned>(verb::verb_count)];
  std::uint32_t budget_;
  std::uint32_t depth_max_;
  std::uint32_t host_count_ = 1;
  std::uint32_t flags_used_ = 0;
  bool may_fail_;
  bool may_cancel_;
};

void maker::configure() {
  settings& c = p_.config;
  const bool is_remote = !is_local_machine();
  c.workers = static_cast<int>(is_remote   ? 1 + random_.below(3)
                               : chance(3) ? 1
                                           : 1 + random_.below(6));
  if (machine_ == place::pool) c.workers = 2;  // as all hosts of the pool have them
  c.tickets = !of_.few_tickets || chance(2) ? 256 : 2 + random_.below(chance(2) ? 14 : 63);
  c.nest_max = !of_.low_nest || chance(2) ? 256 : 1 + random_.below(8);
  c.contexts = !of_.few_contexts || chance(2) ? 0 : 1 + random_.below(chance(2) ? 4 : 16);
  c.depth = chance(2) ? 0 : 1 + random_.below(4);
  c.dice_threshold = one_of({16u, 0u, 4u});
  c.spin_ns = chance(2) ? 50'000 : one_of({0u, 1'000u});
  c.local_store_kib = one_of({256u, 8u, 16u});
  c.staging = one_of({staging::automatic, staging::in_place, staging::copy});
  if (is_remote && c.staging == staging::in_place) c.staging = staging::automatic;
  c.wait = chance(2) ? wait_policy::help
                     : one_of({wait_policy::park, wait_policy::spin, wait_policy::yield,
                               wait_policy::directed});
  c.full = chance(2) ? when_full::help : one_of({when_full::wait, when_full::fail});
  c.seed = random_.next() % 1'000'000;
  c.max_attempts = 1 + random_.below(3);
}

void maker::fill_main(std::uint32_t others) {
  const std::uint32_t main = p_.hosts[0];
  const bool has_phase = chance(6);
  std::vector<std::uint32_t> owned;
  if (has_phase) add(main, {.what = verb::begin_phase});
  for (std::uint32_t h = 1; h <= others; ++h) {
    add(main, {.what = verb::start, .a = h});
    if (chance(2)) add_step(main, block_kind::host, 0, 0, owned);
    if (chance(4)) add(main, {.what = verb::join, .a = h});
  }
  const std::uint32_t steps = 1 + random_.below(10);
  for (std::uint32_t i = 0; i < steps || (owned.empty() && i < 20); ++i)
    add_step(main, block_kind::host, 0, 0, owned);
  if (has_phase) add(main, {.what = verb::end_phase});
  finish(main, block_kind::host, owned);
  for (std::uint32_t h = 1; h <= others; ++h) add(main, {.what = verb::join, .a = h});
}

void maker::fill(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks) {
  std::vector<std::uint32_t> owned;
  const std::uint32_t steps = k == block_kind::host ? 1 + random_.below(8) : random_.below(6);
  for (std::uint32_t i = 0; i < steps; ++i) add_step(block, k, depth, locks, owned);
  finish(block, k, owned);
}

// Waits for what is left, mostly; a block's end releases the rest.
void maker::finish(std::uint32_t block, block_kind k, std::vector<std::uint32_t>& owned) {
  if (k == block_kind::callback) return;
  if (owned.size() > 1 && chance(3)) {
    add(block, {.what = verb::wait_all, .list = owned, .policy = policy()});
    return;
  }
  while (!owned.empty()) {
    const auto i =
        static_cast<std::ptrdiff_t>(random_.below(static_cast<std::uint32_t>(owned.size())));
    if (!chance(6))
      add(block, {.what = verb::wait,
                  .a = owned[static_cast<std::size_t>(i)],
                  .policy = policy(),
                  .in_c = chance(6)});
    owned.erase(owned.begin() + i);
  }
}

void maker::add_step(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks,
                     std::vector<std::uint32_t>& owned) {
  const auto size = static_cast<std::uint32_t>(owned.size());
  const auto v = static_cast<verb>(random_.below(static_cast<unsigned>(verb::verb_count)));
  if (size == 0 || chance(3)) {
    if (budget_ != 0) submit(block, k, depth, locks, owned);
    return;
  }
  if (rate(v) < 1 + random_.below(6)) return;
  const std::uint32_t at = random_.below(size);
  step s{.what = v, .a = owned[at], .timeout_ns = timeout(), .policy = policy(), .in_c = chance(6)};
  if (add_of_ticket(block, k, s, owned)) {
    if (v == verb::release || v == verb::keep) std::erase(owned, s.a);
    return;
  }
  if (add_of_block(block, k, depth, locks, s, owned)) return;
  add_plain(block, k, s);
}

// Steps about a ticket of the block. False: it is another step.
bool maker::add_of_ticket(std::uint32_t block, block_kind k, step s,
                          const std::vector<std::uint32_t>& owned) {
  const bool waits = k != block_kind::callback;
  switch (s.what) {
    case verb::wait:
      if (waits) add(block, s);
      return true;
    case verb::wait_any:
    case verb::wait_all:
      s.list = owned;
      if (waits) add(block, s);
      return true;
    case verb::poll:
    case verb::release:
      add(block, s);
      return true;
    case verb::cancel:
      if (may_cancel_) add(block, s);
      return true;
    case verb::keep:
      if (k != block_kind::host) return false;
      add(block, s);
      return true;
    case verb::share:
      s.b = random_.below(shared_max);
      add(block, s);
      return true;
    default:
      return false;
  }
}

// Steps with blocks or tasks of their own. False: it is another step.
bool maker::add_of_block(std::uint32_t block, block_kind k, std::uint32_t depth,
                         std::uint32_t locks, step s, std::vector<std::uint32_t>& owned) {
  const bool is_host = k == block_kind::host;
  const bool is_inside = k == block_kind::body || k == block_kind::thread;
  const bool may_run_blocks = is_local_machine() && k != block_kind::callback;
  switch (s.what) {
    case verb::then:
      for (const step& other : p_.blocks[block]) {
        if (other.what == verb::then && other.a == s.a) return true;
      }
      s.b = add_block();
      add(block, s);
      fill(s.b, block_kind::callback, depth + 1, locks);
      return true;
    case verb::await:
      add_await(block, depth, locks);
      return true;
    case verb::loop:
      if (may_run_blocks) add_inner(block, s.what, depth, locks);
      return true;
    case verb::spawn:
      if (may_run_blocks && is_inside) add_inner(block, s.what, depth, locks);
      return true;
    case verb::await_flag:
      if (is_local_machine() && (is_host || k == block_kind::body) && locks == 0)
        add_meeting(block, k, owned);
      return true;
    case verb::spin_flag:
      if (is_host && locks == 0) add_spinner(block, owned);
      return true;
    default:
      return false;
  }
}

void maker::add_plain(std::uint32_t block, block_kind k, step s) {
  const bool is_host = k == block_kind::host;
  switch (s.what) {
    case verb::cancel_shown:
    case verb::poll_shown:
      s.b = random_.below(shared_max);
      if (machine_ != place::sim && (may_cancel_ || s.what == verb::poll_shown)) add(block, s);
      break;
    case verb::filters:
      s.a = random_.below(32);
      if (is_host) add(block, s);
      break;
    case verb::complete:
      if (is_host && block == p_.hosts[0] && p_.blocks[block][0].what != verb::begin_phase)
        add(block, s);
      break;
    case verb::yield:
      if (k == block_kind::body || k == block_kind::thread) add(block, s);
      break;
    case verb::nap:
      s.a = random_.below(60);
      add(block, s);
      break;
    default:
      break;
  }
}

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

void maker::submit(std::uint32_t block, block_kind k, std::uint32_t depth, std::uint32_t locks,
                   std::vector<std::uint32_t>& owned) {
  --budget_;
  step s{.what = verb::submit, .is_post = chance(6), .is_typed = chance(2)};
  const bool has_locks = of_.locks && is_local_machine() && chance(4);
  if (has_locks) {
    for (unsigned m = 0; m < mutexes_max; ++m) {
      if (locks < 1u << m && chance(2)) s.locks |= 1u << m;
    }
  }
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
    s.in_c =
        s.locks == 0 && s.priority == 0 && s.key == 0 && s.grain == 0 && s.repeat == 1 && chance(3);
    // C's post has no predecessors.
    if (s.is_post && (!s.list.empty() || s.after_shown != nobody)) s.in_c = false;
  }
  for (const std::uint32_t other : s.list) {
    if (t.what == shape::plain && t.has_input && p_.tasks[other].own.what != kind::value &&
        chance(2))
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
  if (!s.is_post) owned.push_back(s.a);
  const std::uint32_t task = s.a;
  const bool is_shown = k == block_kind::host && host_count_ > 1 && !s.is_post && chance(2);
  add(block, std::move(s));
  if (is_shown) add(block, {.what = verb::share, .a = task, .b = random_.below(shared_max)});
}

std::uint32_t maker::add_task(std::uint32_t depth, std::uint32_t locks, bool is_leaf) {
  task_spec t;
  const std::uint32_t form = random_.below(12);
  t.turns = chance(3) ? random_.below(3'000) : 0;
  if (form == 0) {
    t.what = shape::bulk;
    t.pieces = 1 + random_.below(12);
    t.bad_pieces = static_cast<std::uint32_t>(random_.next());
  } else if (form == 1) {
    t.what = shape::sliced;
    t.pieces = 1 + random_.below(pieces_max);
  }
  if (may_fail_ && chance(6)) t.end = one_of({ending::throws, ending::code});
  if (t.what == shape::sliced) t.end = ending::ok;
  if (of_.crash && !is_local_machine() && t.what == shape::plain && chance(12)) {
    t.end = ending::crash;
    t.attempts = 1 + random_.below(3);
    t.may_rerun = !chance(4);
    if (chance(4)) t.end = ending::scribble;
  }
  if (t.what != shape::bulk) give_memory(t);
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
    if (t.own.rows > 1) t.own.rows = t.pieces;
    if (t.own.rows == 1) t.own.words = t.pieces, t.own.gap = 0;
    return;
  }
  t.own.is_left = of_.unassigned && t.own.what == kind::out && chance(4);
  t.own.is_far = is_local_machine() && t.own.what == kind::inout && t.own.rows == 1 && chance(4);
  t.has_result = chance(3);
  t.leaves_result = of_.unassigned && chance(2);
}

void maker::add_await(std::uint32_t block, std::uint32_t depth, std::uint32_t locks) {
  step s{.what = verb::await};
  const std::uint32_t count = 1 + random_.below(3);
  for (std::uint32_t i = 0; i < count && budget_ != 0; ++i, --budget_)
    s.list.push_back(add_task(depth + 1, locks, false));
  if (!s.list.empty()) add(block, s);
}

void maker::add_inner(std::uint32_t block, verb v, std::uint32_t depth, std::uint32_t locks) {
  step s{.what = v, .grain = random_.below(3)};
  const std::uint32_t count = 1 + random_.below(v == verb::loop ? 12 : 3);
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_empty = v == verb::loop && !chance(4);
    s.list.push_back(is_empty ? nobody : add_block());
    if (!is_empty)
      fill(s.list.back(), v == verb::loop ? block_kind::piece : block_kind::thread, depth + 1,
           locks);
  }
  add(block, s);
}

// Tasks that meet: each sets its flag, then waits for those of the others, once or twice.
void maker::add_meeting(std::uint32_t block, block_kind k, std::vector<std::uint32_t>& owned) {
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
    add(block, {.what = verb::submit, .a = id, .is_typed = true});
    if (k == block_kind::host && chance(4))
      owned.push_back(id);
    else
      add(block, {.what = verb::poll, .a = id});
  }
  flags_used_ += count * rounds;
}

// A task or a callback that keeps its worker until another task has run.
void maker::add_spinner(std::uint32_t block, std::vector<std::uint32_t>& owned) {
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
  add(block, {.what = verb::submit, .a = id, .is_typed = true});
  if (in_callback) {
    const std::uint32_t tail = add_block();
    add(tail, {.what = verb::spin_flag, .a = flag});
    add(block, {.what = verb::then, .a = id, .b = tail});
    add(block, {.what = verb::wait, .a = id, .policy = policy()});
  }
  add(block, {.what = verb::submit, .a = id + 1, .is_typed = true});
  owned.push_back(id + 1);
  if (!in_callback) owned.push_back(id);
}

}  // namespace

program generate(std::uint64_t seed, place machine, const ingredients& made_of) {
  for (std::uint64_t turn = 0;; ++turn) {
    program p = maker(seed + (turn << 48), machine, made_of).make();
    p.seed = seed;
    if (p.tasks.size() > tasks_max || p.tasks.empty()) continue;
    tidy(p);
    spare_flags(p);
    if (uses_flags(p)) p.config.tickets = 1024;
    for (unsigned i = 0; i < 6 && !is_sound(p); ++i) {
      if (p.config.tickets < 256) p.config.tickets *= 2;
      if (p.config.workers < 6 && uses_flags(p)) ++p.config.workers;
      if (p.config.contexts != 0) p.config.contexts = std::min(16u, p.config.contexts * 2);
    }
    if (is_sound(p)) return p;
  }
}

}  // namespace lev::exercise
