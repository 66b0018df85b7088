// Hosts of programs at random that are many and have few tickets: some wait for everything, others
// hand in more than there are tickets for and go back to their own program. See maker.hpp.
#include "exercise/maker.hpp"

namespace lev::exercise {

// A waiter goes to sleep soon: the participant that ends the last task must tell it.
void maker::configure_crowd() {
  is_crowded_ = true;
  budget_ = 1 + random_.below(6);
  closer_ = random_.below(host_count_);
  p_.config.tickets = 1 + random_.below(chance(2) ? 4 : 16);
  p_.config.spin_ns = one_of({0u, 1'000u, 50'000u});
}

// Of a crowd each holds its tickets or not, waits for everything or hands in much, and calls in no
// more.
void maker::finish_host(std::uint32_t to, std::vector<std::uint32_t>& owned) {
  if (!is_crowded_ || !chance(4)) finish(to, block_kind::host, owned);
  if (!is_crowded_) return;
  const bool is_rushed = chance(2);
  if (is_rushed) add_rush(to);
  if (!is_rushed || chance(6)) add(to, {.what = verb::complete, .in_c = chance(6)});
  if (may_shut(to) && rate(verb::shut) != 0 && chance(3))
    add(to, {.what = verb::shut, .a = may_cancel_ && chance(4)});
  if (may_keep_aside() && !chance(3)) add(to, {.what = verb::aside});
}

// Often more than there are tickets, and nothing of it is held. The last task outlasts the others,
// and may be one that the host runs itself.
void maker::add_rush(std::uint32_t to) {
  const std::uint32_t count = 1 + random_.below(24);
  for (std::uint32_t i = 0; i < count && p_.tasks.size() + 8 < tasks_max; ++i) add_to_rush(to);
  const std::uint32_t last = add_brief_task(0, 4'000);
  add(to, {.what = verb::submit, .a = last, .is_post = !chance(4), .is_typed = true});
}

void maker::add_to_rush(std::uint32_t to) {
  if (is_local_machine() && chance(12))
    return add(to, {.what = verb::loop, .list = std::vector(1 + random_.below(8), nobody)});
  const bool is_bulk = chance(8);
  const std::uint32_t task = add_brief_task(is_bulk ? 1 + random_.below(12) : 0, 60);
  step s{.what = verb::submit, .a = task, .is_post = !is_bulk && !chance(4), .is_typed = chance(2)};
  const bool is_held = !s.is_post;
  if (is_held && !is_bulk && chance(2)) {
    s.by = entrance::within;
    s.is_typed = false;
    s.timeout_ns = one_of<std::int64_t>({0, 1'000, 50'000, 500'000});
  }
  add(to, std::move(s));
  if (is_held) add(to, {.what = verb::release, .a = task});
}

// With pieces: a bulk of so many.
std::uint32_t maker::add_brief_task(std::uint32_t pieces, std::uint32_t nap_most) {
  task_spec t;
  t.turns = random_.below(is_local_machine() ? 3'000 : 20 * nap_most);
  if (pieces != 0) {
    t.what = shape::bulk;
    t.own.rows = t.pieces = pieces;
    t.made_anywhere = chance(2);
  } else if (is_local_machine()) {
    t.body = add_block();
    add(t.body, {.what = verb::nap, .a = random_.below(nap_most)});
  }
  p_.tasks.push_back(t);
  return static_cast<std::uint32_t>(p_.tasks.size() - 1);
}

}  // namespace lev::exercise
