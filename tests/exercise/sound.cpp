// The rules for programs that must end, and what is left of one without some steps: see sound.hpp.
#include "exercise/sound.hpp"

#include <algorithm>
#include <functional>

namespace lev::exercise {

namespace {

bool is_cancel(const step& s) {
  return s.what == verb::cancel || s.what == verb::cancel_shown || s.what == verb::end ||
         s.what == verb::end_shown || s.what == verb::cancel_ordered;
}

bool hands_in(const step& s) {
  return s.what == verb::submit || s.what == verb::ordered;
}

bool holds_blocks(verb v) {
  return v == verb::loop || v == verb::spawn || v == verb::strands;
}

// Calls what(step) for each step of the block and of the blocks that it runs itself.
void each_step(const program& p, std::uint32_t block,
               const std::function<void(const step&)>& what) {
  if (block == nobody) return;
  for (const step& s : p.blocks[block]) {
    what(s);
    if (holds_blocks(s.what)) {
      for (const std::uint32_t inner : s.list) each_step(p, inner, what);
    }
    if (s.what == verb::then) each_step(p, s.b, what);
  }
}

bool locks_rise(const program& p, std::uint32_t block, std::uint32_t held) {
  bool good = true;
  each_step(p, block, [&](const step& s) {
    if (!hands_in(s)) return;
    // All below the highest one held, and itself, are forbidden.
    const std::uint32_t forbidden = held == 0 ? 0 : (2u << (31 - __builtin_clz(held))) - 1;
    if ((s.locks & forbidden) != 0) good = false;
    const std::uint32_t body = p.tasks[s.a].body;
    if (body != nobody && !locks_rise(p, body, held | s.locks)) good = false;
  });
  return good;
}

// Tickets that a block may hold at a time. What was handed on or kept may stay for long.
std::uint32_t held_most(const program& p, const block& steps) {
  std::uint32_t held = 0, most = 0;
  for (const step& s : steps) {
    if (s.what == verb::submit && !s.is_post) ++held;
    if (s.what == verb::await) ++held;
    most = std::max(most, held);
    const bool ends =
        (s.what == verb::wait && s.timeout_ns == no_timeout) || s.what == verb::release;
    if (ends && held > 0) --held;
  }
  static_cast<void>(p);
  return most + 1;
}

bool looks_for(const program& p, std::uint32_t block, std::uint32_t* flag) {
  bool looks = false;
  each_step(p, block, [&](const step& s) {
    if (s.what != verb::spin_flag) return;
    looks = true;
    *flag = s.a;
  });
  return looks;
}

bool sets(const program& p, std::uint32_t task, std::uint32_t flag) {
  bool does = p.tasks[task].sets_flag == flag;
  each_step(p, p.tasks[task].body,
            [&](const step& s) { does |= s.what == verb::set_flag && s.a == flag; });
  return does;
}

// Whether a host may be in somebody else's task during the step.
bool may_help(const program& p, const step& s) {
  if (!is_wait(s) && s.what != verb::complete) return false;
  const bool has_policy = s.policy != wait_policy::of_runtime;
  return (has_policy ? s.policy : p.config.wait) == wait_policy::help;
}

// From the callback that keeps its worker to the submit that ends it the host runs nothing: the
// task it would take may wait for one that is suspended on that worker.
bool ends_its_spinners(const program& p, const block& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::uint32_t flag = 0;
    if (steps[i].what != verb::then || !looks_for(p, steps[i].b, &flag)) continue;
    for (std::size_t j = i + 1; j < steps.size(); ++j) {
      if (steps[j].what == verb::submit && sets(p, steps[j].a, flag)) break;
      if (may_help(p, steps[j])) return false;
    }
  }
  return true;
}

bool shuts(const program& p) {
  for (const block& b : p.blocks) {
    for (const step& s : b) {
      if (s.what == verb::shut) return true;
    }
  }
  return false;
}

bool flags_are_sound(const program& p) {
  if (!uses_flags(p)) return true;
  const auto workers = static_cast<std::uint32_t>(p.config.workers);
  const std::uint32_t contexts = p.config.contexts == 0 ? 16 : p.config.contexts;
  if (p.close_cancels || shuts(p) || p.config.tickets < 2 * slots_in_all(p)) return false;
  if (spinners(p) >= workers) return false;
  for (const block& b : p.blocks) {
    if (!ends_its_spinners(p, b)) return false;
    for (const step& s : b) {
      if (is_cancel(s)) return false;
    }
  }
  return is_local(p.config.machine) ? waiters(p) + crossings(p) < (workers - spinners(p)) * contexts
                                    : true;
}

}  // namespace

bool is_wait(const step& s) {
  switch (s.what) {
    case verb::wait:
    case verb::wait_any:
    case verb::wait_all:
    case verb::loop:
    case verb::await_done:
    case verb::await_flag:
    case verb::spin_flag:
    case verb::spawn:
    case verb::visit:
    case verb::cross:
    case verb::strands:
    case verb::ordered:
    case verb::wait_ordered:
      return true;
    case verb::misuse:
      return s.a >= 4 && s.a <= 6;
    default:
      return false;
  }
}

std::uint32_t crossings(const program& p) {
  std::uint32_t all = 0;
  for (const block& b : p.blocks) {
    for (const step& s : b) all += s.what == verb::cross ? 2 * s.a + 1 : 0;
  }
  return all;
}

std::uint32_t slots_in_all(const program& p) {
  std::uint32_t all = 4;
  for (const task_spec& t : p.tasks) all += t.what == shape::plain ? 1 : t.pieces + 1;
  for (const block& b : p.blocks) {
    for (const step& s : b)
      all += s.what == verb::loop     ? static_cast<std::uint32_t>(s.list.size()) + 1
             : s.what == verb::misuse ? 4
             : s.what == verb::cross  ? s.a
                                      : 0;
  }
  return all;
}

// Whether a block, not what it starts, may be set aside.
static bool waits(const block& steps) {
  return std::any_of(steps.begin(), steps.end(), is_wait);
}

// Callbacks wait on whatever stack they are called on.
std::uint32_t waiters(const program& p) {
  std::uint32_t all = 0;
  for (const block& b : p.blocks) {
    for (const step& s : b) all += s.what == verb::then && waits(p.blocks[s.b]);
  }
  for (const task_spec& t : p.tasks) {
    if (t.body == nobody) continue;
    std::uint32_t own = 0;
    each_step(p, t.body, [&](const step& s) {
      if (is_wait(s)) own = std::max(own, 1u);
      if (s.what == verb::cross) own += s.a;
      if (holds_blocks(s.what)) own += static_cast<std::uint32_t>(s.list.size());
    });
    all += own;
  }
  return all;
}

std::uint32_t spinners(const program& p) {
  std::uint32_t all = 0;
  for (const block& b : p.blocks) {
    for (const step& s : b) all += s.what == verb::spin_flag;
  }
  for (const task_spec& t : p.tasks) all += t.spins_on != nobody ? t.pieces : 0;
  return all;
}

bool uses_flags(const program& p) {
  for (const block& b : p.blocks) {
    for (const step& s : b) {
      if (s.what == verb::await_flag || s.what == verb::spin_flag || s.what == verb::await_done)
        return true;
    }
  }
  for (const task_spec& t : p.tasks) {
    if (t.spins_on != nobody) return true;
  }
  return false;
}

// A phase that is opened is closed, by the same block.
static bool phases_end(const program& p) {
  for (const block& b : p.blocks) {
    int open = 0;
    for (const step& s : b) {
      if (s.what == verb::complete && open != 0) return false;
      open += s.what == verb::begin_phase ? 1 : s.what == verb::end_phase ? -1 : 0;
      if (open < 0) return false;
    }
    if (open != 0) return false;
  }
  return true;
}

// A task that reads another task's memory comes after it.
static bool reads_are_ordered(const program& p) {
  for (const block& b : p.blocks) {
    for (const step& s : b) {
      if (s.what == verb::await) {
        for (const std::uint32_t t : s.list) {
          if (p.tasks[t].reads != nobody) return false;
        }
      }
      const bool has_order = !s.list.empty() || s.after_shown != nobody || s.locks != 0;
      if (s.what == verb::ordered && s.in_c && has_order) return false;
      if (s.what != verb::submit) continue;
      if (s.in_c && s.is_post && !s.list.empty()) return false;
      if (s.list.size() * s.repeat >= options::after_max) return false;
      const std::uint32_t from = p.tasks[s.a].reads;
      if (from == nobody) continue;
      if (std::find(s.list.begin(), s.list.end(), from) == s.list.end()) return false;
      if (p.tasks[from].own.what == kind::value || p.tasks[from].what == shape::bulk) return false;
    }
  }
  return true;
}

// Whom others look for is never cancelled, nor refused.
void spare_flags(program& p) {
  if (!uses_flags(p)) return;
  for (block& b : p.blocks) {
    std::erase_if(b, [](const step& s) { return is_cancel(s) || s.what == verb::shut; });
  }
}

bool is_sound(const program& p) {
  if (!reads_are_ordered(p) || !phases_end(p)) return false;
  for (const std::uint32_t h : p.hosts) {
    if (!locks_rise(p, h, 0)) return false;
  }
  if (!flags_are_sound(p)) return false;
  std::uint32_t visits = 0;
  for (const block& b : p.blocks) {
    for (const step& s : b)
      visits += s.what == verb::cross ? s.a : s.what == verb::visit && s.b == 1;
  }
  if (p.hosts.size() > 1 || visits != 0) {
    std::uint32_t held = visits;
    for (const block& b : p.blocks) {
      for (const step& s : b) held += static_cast<std::uint32_t>(s.handed.size());
    }
    for (const std::uint32_t h : p.hosts) held += held_most(p, p.blocks[h]);
    if (held >= p.config.tickets) return false;
  }
  return true;
}

namespace {

// The tasks, blocks and hosts that are reached from the first host.
struct reach {
  explicit reach(const program& p)
      : tasks(p.tasks.size()), blocks(p.blocks.size()), hosts(p.hosts.size()) {
    hosts[0] = true;
    mark(p, p.hosts[0]);
  }
  void mark(const program& p, std::uint32_t block) {
    if (block == nobody || blocks[block]) return;
    blocks[block] = true;
    for (const step& s : p.blocks[block]) {
      if (hands_in(s)) mark_task(p, s.a);
      if (s.what == verb::then) mark(p, s.b);
      if (s.what == verb::start && !hosts[s.a]) {
        hosts[s.a] = true;
        mark(p, p.hosts[s.a]);
      }
      if (holds_blocks(s.what)) {
        for (const std::uint32_t inner : s.list) mark(p, inner);
      }
      if (s.what == verb::await) {
        for (const std::uint32_t t : s.list) mark_task(p, t);
      }
    }
  }
  void mark_task(const program& p, std::uint32_t t) {
    tasks[t] = true;
    mark(p, p.tasks[t].body);
  }
  std::vector<bool> tasks, blocks, hosts;
};

std::vector<std::uint32_t> numbers(const std::vector<bool>& kept) {
  std::vector<std::uint32_t> all(kept.size(), nobody);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) all[i] = next++;
  }
  return all;
}

void rename(std::vector<std::uint32_t>& list, const std::vector<std::uint32_t>& to,
            bool keeps_holes) {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t i : list) {
    const std::uint32_t n = i == nobody ? nobody : to[i];
    if (n != nobody || keeps_holes) out.push_back(n);
  }
  list = std::move(out);
}

struct names {
  std::vector<std::uint32_t> tasks, blocks, hosts;
  std::vector<bool> set, shown;

  // False: the step has lost what it is about.
  bool rename_step(step& s) const {
    switch (s.what) {
      case verb::submit:
      case verb::ordered:
        rename(s.list, tasks, false);
        rename(s.handed, tasks, false);
        s.a = tasks[s.a];
        return s.a != nobody;
      case verb::cancel_ordered:
      case verb::wait:
      case verb::await_done:
      case verb::poll:
      case verb::cancel:
      case verb::end:
      case verb::release:
      case verb::keep:
      case verb::share:
        s.a = tasks[s.a];
        return s.a != nobody;
      case verb::then:
        rename(s.handed, tasks, false);
        s.a = tasks[s.a];
        s.b = blocks[s.b];
        return s.a != nobody && s.b != nobody;
      case verb::wait_any:
      case verb::wait_all:
      case verb::await:
        rename(s.list, tasks, false);
        return !s.list.empty();
      case verb::loop:
      case verb::strands:
        rename(s.list, blocks, true);
        return !s.list.empty();
      case verb::spawn:
        rename(s.list, blocks, false);
        return !s.list.empty();
      case verb::await_flag:
      case verb::spin_flag:
        return set[s.a];
      case verb::start:
      case verb::join:
        s.a = hosts[s.a];
        return s.a != nobody;
      default:
        return true;
    }
  }
};

}  // namespace

void tidy(program& p) {
  const reach r(p);
  names n{numbers(r.tasks), numbers(r.blocks), numbers(r.hosts), std::vector<bool>(flags_max), {}};
  for (std::size_t b = 0; b < p.blocks.size(); ++b) {
    if (!r.blocks[b]) continue;
    for (const step& s : p.blocks[b]) {
      if (s.what == verb::set_flag) n.set[s.a] = true;
    }
  }
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    if (r.tasks[t] && p.tasks[t].sets_flag != nobody) n.set[p.tasks[t].sets_flag] = true;
  }
  program out = p;
  out.tasks.clear();
  out.blocks.clear();
  out.hosts.clear();
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    if (!r.tasks[t]) continue;
    task_spec spec = p.tasks[t];
    if (spec.body != nobody) spec.body = n.blocks[spec.body];
    if (spec.reads != nobody) spec.reads = n.tasks[spec.reads];
    if (spec.spins_on != nobody && !n.set[spec.spins_on]) spec.spins_on = nobody;
    out.tasks.push_back(spec);
  }
  for (std::size_t b = 0; b < p.blocks.size(); ++b) {
    if (!r.blocks[b]) continue;
    block steps;
    for (step s : p.blocks[b]) {
      if (n.rename_step(s)) steps.push_back(std::move(s));
    }
    out.blocks.push_back(std::move(steps));
  }
  for (std::size_t h = 0; h < p.hosts.size(); ++h) {
    if (r.hosts[h]) out.hosts.push_back(n.blocks[p.hosts[h]]);
  }
  p = std::move(out);
}

}  // namespace lev::exercise
