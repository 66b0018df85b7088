// The common part of single and bulk submits; see admit.hpp.
#include "runtime/admit.hpp"

#include "task/arguments.hpp"
#include "task/slice.hpp"
#include "worker/batch.hpp"
#include "worker/serve.hpp"

namespace lev::detail {

namespace {

bool is_dice_gain(const runtime_state& c, const draft& d) noexcept {
  if (procedure_at(d.procedure).diceable) return true;
  for (unsigned i = 0; i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if ((a.flags & argument_sliced) == 0) continue;
    const std::uint64_t items = slice_items(a);
    return items >= 2 && items / 2 >= d.grain && c.takers > 1;
  }
  return false;
}

bool refuse_size(const runtime_state& c, std::size_t bytes, const char* what, const char* advice,
                 refusal* why) noexcept {
  return refuse(why, status::too_big, -1,
                "%s %zu bytes of local store, %zu are available; %s or raise "
                "config.local_store_bytes",
                what, bytes, c.settings.local_store_bytes, advice);
}

}  // namespace

std::size_t least_bytes(const runtime_state& c, const draft& d) noexcept {
  if (procedure_at(d.procedure).diceable) return 0;
  argument one[argument_count_max];
  for (unsigned i = 0; i < d.argument_count; ++i) {
    one[i] = d.arguments[i];
    if ((one[i].flags & argument_sliced) != 0 && slice_items(one[i]) > 1) cut(one[i], 0, 1);
  }
  return staged_bytes({one, d.argument_count}, c.copies);
}

void choose_grain(runtime_state& c, draft& d, std::uint8_t* flags) noexcept {
  *flags |= task_timed;
  if (d.grain != 0) return;
  for (unsigned i = 0; i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if ((a.flags & argument_sliced) == 0) continue;
    const std::uint32_t place = item_costs::place_of(d.procedure, d.arguments, d.argument_count);
    const std::uint64_t grain = c.costs.grain(place, slice_items(a), c.takers);
    d.grain = static_cast<std::uint32_t>(smaller<std::uint64_t>(grain, 0xffffffffu));
    return;
  }
}

bool check_size(const runtime_state& c, const draft& d, const draft_facts& facts,
                std::uint8_t* flags, refusal* why) noexcept {
  const std::size_t bytes = staged_bytes(arguments_of(d), c.copies);
  if (bytes != 0) *flags |= task_staged;
  if (facts.may_dice && is_dice_gain(c, d)) *flags |= task_diceable;
  if (bytes <= c.settings.local_store_bytes) return true;
  if (!facts.may_dice) return refuse_size(c, bytes, "the task needs", "slice its arguments", why);
  const std::size_t least = least_bytes(c, d);
  if (least > c.settings.local_store_bytes)
    return refuse_size(c, least, "the smallest piece of the task needs", "slice smaller items",
                       why);
  *flags |= task_diceable | task_too_big;
  return true;
}

bool refuse_nobody(const runtime_state& c, refusal* why) noexcept {
  if (c.why_absent != nullptr) return refuse(why, status::closed, -1, "%s", c.why_absent);
  if (c.closing.load(memory_order_relaxed) != 0) return refuse_closed(why);
  return refuse(
      why, status::would_block, -1,
      c.caps.many_hosts
          ? "more than config.host_threads threads call in; raise it, or end some threads"
          : "this machine has one host thread, the one that opened the runtime, and it must "
            "not be in one of its tasks already");
}

bool refuse_closed(refusal* why) noexcept {
  return refuse(why, status::closed, -1, "the runtime is closing; submit before close()");
}

bool refuse_hook(refusal* why) noexcept {
  return refuse(why, status::would_deadlock, -1,
                "a filter or a hook cannot submit: its runtime stands still until it returns; "
                "submit in a body or a callback");
}

// Looks before it takes anything: giving back would wake others, which would do the same.
std::uint32_t try_take_room(runtime_state& c, participant& self, edge_list& edges,
                            bool is_spare) noexcept {
  const auto take = [&]() noexcept {
    return is_spare ? c.task_slots.try_take_spare() : c.task_slots.try_take(self.free_slots);
  };
  LEV_DCHECK(edges.count <= options::after_max);
  if (edges.count == 0) return take();
  const bool has_own = !is_spare && self.free_slots.count() != 0;
  if ((!has_own && c.task_slots.looks_exhausted(is_spare)) ||
      !c.edges.has(self.free_edges, edges.count))
    return no_slot;
  const std::uint32_t got = c.edges.reserve(self.free_edges, edges.nodes, edges.count);
  std::uint32_t task = no_slot;
  if (got == edges.count) task = take();
  if (task == no_slot) give_edges(c, self, edges, 0, got);
  return task;
}

// None was found, but a slot that is given back at this moment counts.
static std::uint32_t take_last(runtime_state& c, participant& self, edge_list& edges) noexcept {
  while (!c.task_slots.looks_exhausted() && c.edges.has(self.free_edges, edges.count)) {
    const std::uint32_t task = try_take_room(c, self, edges, false);
    if (task != no_slot) return task;
    c.machine->relax();
  }
  return no_slot;
}

static bool waits_in_vain(runtime_state& c, const participant& self) noexcept {
  return is_shut_out(c, self) ||
         (self.running == nullptr && is_held_by_caller(c, self) && !c.scopes.ask());
}

namespace {

// While it lasts, the bulks of a host's program wait for a slot. Their batches are sent. In a task,
// of this runtime or another, other contexts of the thread may go on with bulks of their own.
class bulks_wait {
 public:
  bulks_wait(runtime_state& c, const participant& self, bool is_inside) noexcept
      : census_(c.bulks), count_(is_inside ? 0 : self.open_joins) {
    census_.begin_wait(count_);
  }
  ~bulks_wait() { census_.end_wait(count_); }
  bulks_wait(bulks_wait&&) = delete;

 private:
  bulk_census& census_;
  const std::uint32_t count_;
};

}  // namespace

std::uint32_t await_slot(runtime_state& c, participant& self, edge_list& edges,
                         std::uint64_t until_ns) noexcept {
  batch::send_all(self);
  const bool is_inside = self.running != nullptr || is_guest(c, self);
  const bulks_wait waits(c, self, is_inside);
  if (c.settings.full == when_full::fail) {
    c.scopes.ask();
    return take_last(c, self, edges);
  }
  std::uint32_t task = no_slot;
  while (is_inside) {
    if ((task = try_take_room(c, self, edges, true)) != no_slot) return task;
    if (waits_in_vain(c, self)) return no_slot;
    if (!wait_space_inside(c, self, edges.count)) return no_slot;
    if ((task = try_take_room(c, self, edges, false)) != no_slot) return task;
  }
  LEV_DCHECK(self.running == nullptr);
  const bool may_help = c.settings.full == when_full::help;
  do {
    if (!may_help || !help(c, self)) {
      if (waits_in_vain(c, self)) break;
      wait_space(c, self, may_help, edges.count, until_ns);
    }
    task = try_take_room(c, self, edges, false);
  } while (task == no_slot && (until_ns == no_deadline || c.machine->now_ns() < until_ns));
  if (task == no_slot) tell_of_help(c, self);  // else its caller's task is there, and its end told
  return task;
}

bool count_out(runtime_state& c, participant& self, std::uint32_t task, refusal* why) noexcept {
  give_slot(c, self, task);
  self.counters.completed.add(1);
  self.counters.refused.add(1);
  leave(c, self);  // close() may wait for that count
  return refuse_closed(why);
}

bool refuse_full(runtime_state& c, const participant& self, const edge_list& edges,
                 refusal* why) noexcept {
  // Pairs with close_within(); sequentially consistent as in is_shut_out().
  if (self.running == nullptr && c.closing.load(memory_order_seq_cst) != 0)
    return refuse_closed(why);
  if (edges.count != 0 && !c.edges.has(self.free_edges, edges.count)) {
    return refuse(
        why, status::would_block, -1,
        "the edges between tasks, by after() or in order of memory, are in use, two for each of "
        "the %u tickets; wait for some tasks, or raise config.tickets",
        c.settings.tickets);
  }
  return refuse(why, status::would_block, -1,
                "all %u tickets are in use, by tasks that wait or were not collected; wait for "
                "some, %sor raise config.tickets",
                c.settings.tickets,
                self.running != nullptr && c.has_contexts && c.settings.full != when_full::fail
                    ? "post() what nobody waits for, "
                    : "");
}

}  // namespace lev::detail
