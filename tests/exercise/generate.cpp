// Programs at random. One uses only some of the verbs, each at a rate of its own, so that rare ones
// meet often in some programs. What breaks a rule of sound.hpp is mended by a larger
// configuration, or thrown away.
#include "exercise/generate.hpp"

#include "exercise/maker.hpp"
#include "exercise/sound.hpp"
#include "support/environment.hpp"

#include <algorithm>

namespace lev::exercise {

maker::maker(std::uint64_t seed, place machine, const ingredients& of)
    : random_(seed), machine_(machine), of_(of) {
  p_.seed = seed;
  p_.config.machine = machine;
  for (unsigned v = 0; v < drawn_verbs; ++v) rates_[v] = chance(3) ? 0 : 1 + random_.below(6);
  // Ingredients that need no ticket leave half of the programs to those that do.
  const bool is_plain = chance(2);
  for (unsigned v = 0; v < drawn_verbs; ++v)
    if (!of.has_verb[v] || (is_plain && v >= static_cast<unsigned>(verb::visit))) rates_[v] = 0;
  budget_ = 1 + random_.below(chance(4) ? 28 : 10);
  depth_max_ = 1 + random_.below(4);
  may_fail_ = chance(2);
  may_cancel_ = chance(2);
  configure();
  // A sanitizer needs what confined workers may not do.
  if (of.crash && machine == place::processes && chance(5) && !test::is_sanitized()) confine();
}

// Bodies on confined workers have nothing to count in, or to meet by. What is too large for a small
// store goes another way there when tickets are short.
void maker::confine() {
  p_.config.is_confined = true;
  p_.config.chaos = 0;
  if (of_.few_tickets && !chance(4)) p_.config.tickets = 1 + random_.below(8);
  if (!chance(4)) p_.config.local_store_kib = 8;
  rates_[static_cast<unsigned>(verb::spin_flag)] = 0;
}

program maker::make() {
  p_.hosts.push_back(add_block());
  const bool has_hosts = of_.hosts && machine_ != place::sim && chance(3);
  const std::uint32_t others = has_hosts ? 1 + random_.below(3) : 0;
  host_count_ = 1 + others;
  if (has_hosts && of_.few_tickets && chance(2)) configure_crowd();
  fill_main(others);
  for (std::uint32_t h = 1; h <= others; ++h) {
    budget_ = std::max(budget_, 1 + random_.below(6));
    p_.hosts.push_back(add_block());
    fill(p_.hosts.back(), block_kind::host, 0, 0);
  }
  p_.close_cancels = of_.close_cancels && !uses_flags(p_) && chance(8);
  p_.close_ends = p_.close_cancels && !is_local_machine() && chance(2);
  p_.drops_runtime = !p_.close_cancels && chance(8);
  // Elements that are done twice are not told from others that are not done.
  for (const task_spec& t : p_.tasks) {
    if (t.what == shape::sliced) p_.config.chaos = 0;
  }
  p_.is_opened_in_c = chance(8) && !p_.config.is_confined;
  if (p_.is_opened_in_c) {  // which says less
    p_.config.nest_max = 256;
    p_.config.depth = 0;
    p_.config.dice_threshold = 16;
    p_.config.spin_ns = 50'000;
    p_.config.is_pinned = false;
    p_.config.chaos = 0;
  }
  return p_;
}

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
  c.wait = chance(2) ? wait_policy::help
                     : one_of({wait_policy::park, wait_policy::spin, wait_policy::yield,
                               wait_policy::directed});
  c.full = chance(2) ? when_full::help : one_of({when_full::wait, when_full::fail});
  c.seed = random_.next() % 1'000'000;
  c.max_attempts = 1 + random_.below(3);
  c.trace_events = chance(4) ? one_of({1u, 64u, 4096u}) : 0;
  c.is_pinned = machine_ == place::threads && chance(6);
  if (machine_ == place::sim && chance(3))
    c.sim_machine = one_of({"cell-ps3", "cell-qs20", "cell-qs21"});
  if (of_.crash && machine_ == place::processes && chance(8)) c.chaos = one_of({20u, 200u});
}

void maker::fill_main(std::uint32_t others) {
  const std::uint32_t main = p_.hosts[0];
  const bool has_phase = chance(6) && !is_crowded_;
  std::vector<std::uint32_t> owned;
  if (has_phase) add(main, {.what = verb::begin_phase});
  for (std::uint32_t h = 1; h <= others; ++h) {
    add(main, {.what = verb::start, .a = h});
    if (chance(2)) add_step(main, block_kind::host, 0, 0, owned);
    if (chance(4)) add(main, {.what = verb::join, .a = h});
  }
  const std::uint32_t steps = 1 + random_.below(10);
  if (rate(verb::ordered) != 0 && chance(4)) add_scope(main, block_kind::host, 0, 0, owned);
  for (std::uint32_t i = 0; i < steps || (owned.empty() && i < 20); ++i)
    add_step(main, block_kind::host, 0, 0, owned);
  if (has_phase) add(main, {.what = verb::end_phase});
  finish_host(main, owned);
  for (std::uint32_t h = 1; h <= others; ++h) add(main, {.what = verb::join, .a = h});
}

void maker::fill(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks) {
  std::vector<std::uint32_t> owned;
  const std::uint32_t steps = k == block_kind::host ? 1 + random_.below(8) : random_.below(6);
  for (std::uint32_t i = 0; i < steps; ++i) add_step(to, k, depth, locks, owned);
  if (k == block_kind::host) return finish_host(to, owned);
  finish(to, k, owned);
  const bool may_toss =
      k == block_kind::callback || k == block_kind::piece || k == block_kind::thread;
  if (may_toss && rate(verb::toss) != 0 && chance(4)) add(to, {.what = verb::toss});
}

// Waits for what is left, mostly; a block's end releases the rest.
void maker::finish(std::uint32_t to, block_kind k, std::vector<std::uint32_t>& owned) {
  if (k == block_kind::callback && chance(2)) return;
  if (owned.size() > 1 && chance(3)) {
    add(to, {.what = verb::wait_all, .list = owned, .policy = policy()});
    return;
  }
  while (!owned.empty()) {
    const auto i =
        static_cast<std::ptrdiff_t>(random_.below(static_cast<std::uint32_t>(owned.size())));
    if (!chance(6))
      add(to, {.what = verb::wait,
               .a = owned[static_cast<std::size_t>(i)],
               .policy = policy(),
               .in_c = chance(6)});
    owned.erase(owned.begin() + i);
  }
}

void maker::add_step(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                     std::vector<std::uint32_t>& owned) {
  const auto size = static_cast<std::uint32_t>(owned.size());
  auto v = static_cast<verb>(random_.below(drawn_verbs));
  if (rate(v) == 0) v = static_cast<verb>(random_.below(drawn_verbs));
  if (size == 0 || chance(3)) {
    if (budget_ != 0) submit(to, k, depth, locks, owned);
    return;
  }
  if (rate(v) < 1 + random_.below(6)) return;
  const std::uint32_t at = random_.below(size);
  step s{.what = v, .a = owned[at], .timeout_ns = timeout(), .policy = policy(), .in_c = chance(6)};
  if (add_of_ticket(to, k, s, owned)) {
    if (v == verb::release || v == verb::keep) std::erase(owned, s.a);
    return;
  }
  if (add_of_block(to, k, depth, locks, s, owned)) return;
  add_plain(to, k, s);
}

// Steps about a ticket of the block. False: it is another step.
bool maker::add_of_ticket(std::uint32_t to, block_kind k, step s,
                          const std::vector<std::uint32_t>& owned) {
  switch (s.what) {
    case verb::wait_any:
    case verb::wait_all:
      s.list = owned;
      add(to, s);
      return true;
    case verb::await_done:
      if (k == block_kind::host || (k == block_kind::body && is_local_machine())) add(to, s);
      return true;
    case verb::wait:
    case verb::poll:
    case verb::release:
      add(to, s);
      return true;
    case verb::cancel:
    case verb::end:
      if (may_cancel_) add(to, s);
      return true;
    case verb::keep:
      if (k != block_kind::host) return false;
      add(to, s);
      return true;
    case verb::share:
      s.b = random_.below(shared_max);
      add(to, s);
      return true;
    default:
      return false;
  }
}

// Steps with blocks or tasks of their own. False: it is another step.
bool maker::add_of_block(std::uint32_t to, block_kind k, std::uint32_t depth, std::uint32_t locks,
                         step s, std::vector<std::uint32_t>& owned) {
  const bool is_host = k == block_kind::host;
  const bool is_inside = k == block_kind::body || k == block_kind::thread;
  const bool may_run_blocks = is_local_machine() && k != block_kind::callback;
  switch (s.what) {
    case verb::then:
      for (const step& other : p_.blocks[to]) {
        if (other.what == verb::then && other.a == s.a) return true;
      }
      s.b = add_block();
      // That of a bulk is called by whichever worker has run its last task, with others in hand.
      if (of_.handed && owned.size() > 1 &&
          (p_.tasks[s.a].what == shape::bulk ? !chance(4) : chance(3)))
        hand_to_callback(s, owned);
      add(to, s);
      fill(s.b, block_kind::callback, depth + 1, locks);
      return true;
    case verb::await:
      add_await(to, depth, locks);
      return true;
    case verb::loop:
      if (may_run_blocks) add_inner(to, s.what, depth, locks);
      return true;
    case verb::strands:
      if (may_run_blocks || is_host) add_inner(to, s.what, depth, locks);
      return true;
    case verb::spawn:
      if (may_run_blocks && is_inside) add_inner(to, s.what, depth, locks);
      return true;
    case verb::ordered:
      add_scope(to, k, depth, locks, owned);
      return true;
    case verb::await_flag:
      if (is_local_machine() && (is_host || k == block_kind::body) && locks == 0)
        add_meeting(to, k, owned);
      return true;
    case verb::spin_flag:
      if (is_host && locks == 0) add_spinner(to, owned);
      return true;
    default:
      return false;
  }
}

// Its first step waits for another task of the block that sets it.
void maker::hand_to_callback(step& s, std::vector<std::uint32_t>& owned) {
  const std::uint32_t given = owned[random_.below(static_cast<std::uint32_t>(owned.size()))];
  if (given == s.a) return;
  s.handed.push_back(given);
  std::erase(owned, given);
  add(s.b, {.what = verb::wait, .a = given, .timeout_ns = timeout()});
}

void maker::add_plain(std::uint32_t to, block_kind k, step s) {
  const bool is_host = k == block_kind::host;
  switch (s.what) {
    case verb::cancel_shown:
    case verb::end_shown:
    case verb::poll_shown:
      s.b = random_.below(shared_max);
      if (machine_ != place::sim && (may_cancel_ || s.what == verb::poll_shown)) add(to, s);
      break;
    case verb::filters:
      s.a = chance(2) ? random_.below(32) : random_.below(256);
      if (is_host) add(to, s);
      break;
    case verb::complete:
      if (is_host && may_complete(to)) add(to, s);
      break;
    case verb::yield:
      if (k == block_kind::body || k == block_kind::thread) add(to, s);
      break;
    case verb::nap:
      if (is_host && may_keep_aside() && chance(2)) s.what = verb::aside;
      s.a = random_.below(60);
      add(to, s);
      break;
    case verb::visit:
      s.a = 1 + random_.below(3);
      s.b = is_host ? random_.below(2) : 0;
      if (is_host || (k == block_kind::body && machine_ == place::threads)) add(to, s);
      break;
    case verb::cross:
      s.a = 1 + random_.below(3);
      if (machine_ != place::pool && (is_host || (k == block_kind::body && is_local_machine())))
        add(to, s);
      break;
    case verb::look:
      add(to, s);
      break;
    case verb::misuse:
      s.a = random_.below(8);
      add(to, s);
      break;
    case verb::shut:
      s.a = may_cancel_ && chance(2);
      if (is_host && may_shut(to) && chance(3)) add(to, s);
      break;
    case verb::split:
      s.a = chance(4);
      // A child of a task's has the task's stack only.
      if (is_host ? chance(3) : is_local_machine() && chance(6)) add(to, s);
      break;
    default:
      break;
  }
}

program generate(std::uint64_t seed, place machine, const ingredients& made_of) {
  for (std::uint64_t turn = 0;; ++turn) {
    program p = maker(seed + (turn << 48), machine, made_of).make();
    p.seed = seed;
    if (p.tasks.size() > tasks_max || p.tasks.empty()) continue;
    tidy(p);
    spare_flags(p);
    if (uses_flags(p)) p.config.tickets = 1024, p.config.chaos = 0;
    for (unsigned i = 0; i < 6 && !is_sound(p); ++i) {
      if (p.config.tickets < 256) p.config.tickets *= 2;
      if (p.config.workers < 6 && uses_flags(p)) ++p.config.workers;
      if (p.config.contexts != 0) p.config.contexts = std::min(16u, p.config.contexts * 2);
    }
    if (is_sound(p)) return p;
  }
}

}  // namespace lev::exercise
