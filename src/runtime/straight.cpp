// submit() for a plain task, in one straight line: the steps are those of submit.cpp. Whatever it
// cannot do is left to submit_any_way(), before anything is done, or after it was undone.
#include "runtime/admit.hpp"
#include "runtime/submit.hpp"
#include "task/plain.hpp"

namespace lev::detail {

namespace {

// What happens seldom is the last call of its function, so that the rest of a submit needs no stack
// and saves no registers.
[[gnu::noinline]] std::uint64_t wake_for(runtime_state& c, participant& self,
                                         std::uint64_t id) noexcept {
  wake_worker(c, self);
  return id;
}
[[gnu::noinline]] std::uint64_t queue_slowly(runtime_state& c, participant& self,
                                             std::uint64_t id) noexcept {
  push_ready(c, self, ticket_task(id));
  return wake_for(c, self, id);
}
[[gnu::noinline]] std::uint64_t confirm_for(runtime_state& c, participant& self,
                                            std::uint64_t id) noexcept {
  self.inbox.confirm();
  return wake_for(c, self, id);
}
[[gnu::noinline]] std::uint64_t filter_plainly(runtime_state& c, participant& self,
                                               std::uint64_t id) noexcept {
  enqueue(c, self, ticket_task(id));
  return id;
}
[[gnu::noinline]] std::uint64_t send_or_queue(runtime_state& c, participant& self, std::uint64_t id,
                                              const draft& d) noexcept {
  --self.letters_left;
  return send_to_poller(c, self, ticket_task(id), d) ? id : queue_slowly(c, self, id);
}

// The straight path of a plain task that gets one of the `kept` slots that the submitter has for
// itself, in which all arguments lie, if they are near. `by` is the task that submits it, or null:
// a host has no task that it would run first, and the first free participant gets its tasks.
template <bool are_near, bool is_post>
[[gnu::always_inline]] inline std::uint64_t submit_kept(runtime_state& c, const draft& d,
                                                        participant& self, const job* by,
                                                        std::uint32_t kept) {
  LEV_DCHECK(are_near == (d.argument_count <= near_arguments));
  const std::uint32_t task = c.task_slots.take_kept(self.free_slots, kept);
  self.counters.submitted.add(1);
  if (by == nullptr && is_closing_behind_fence(c)) [[unlikely]]
    return submit_late(c, d, is_post, self, task);
  constexpr std::uint8_t flags = is_post ? task_detached : 0;
  const std::uint64_t opened =
      are_near ? c.task_slots.write_near<flags>(task, d, d.arguments, parent_of(by))
               : c.task_slots.write(task, d, flags, d.arguments, parent_of(by));
  const std::uint64_t id = opened_ticket(task, opened);
  if (c.sched.has_filters()) [[unlikely]]
    return filter_plainly(c, self, id);
  if (by == nullptr) {
    if (!is_post && self.letters_left != 0) return send_or_queue(c, self, id, d);
    LEV_DCHECK_LOOK(c.task_slots.at(task).state.is_live());
    if (!self.ready.home->try_push(task)) [[unlikely]]
      return queue_slowly(c, self, id);
  } else if (by->task == no_slot || !push_own(c, self, task, procedure_at(d.procedure))) {
    return queue_slowly(c, self, id);
  }
  return c.doorbell.someone_needed() ? wake_for(c, self, id) : id;
}
// The same for a child of the task that runs here, with near arguments. Its push is a plain store,
// since sleepers have a heavy fence here: only a sleeper that is seen behind it makes the submitter
// confirm it.
template <bool names_memory, bool is_post>
[[gnu::noinline]] std::uint64_t submit_child(runtime_state& c, const draft& d, participant& self,
                                             std::uint32_t kept) {
  LEV_DCHECK(c.has_heavy_fence && runs_here(self));
  const job& by = *self.running;
  const std::uint32_t task = c.task_slots.take_kept(self.free_slots, kept);
  self.counters.submitted.add(1);
  constexpr std::uint8_t flags = is_post ? task_detached : 0;
  const std::uint64_t opened =
      c.task_slots.write_near<flags>(task, d, d.arguments, {by.task, generation_of(by)});
  const std::uint64_t id = opened_ticket(task, opened);
  if (c.sched.has_filters()) [[unlikely]]
    return filter_plainly(c, self, id);
  const std::uint32_t place = self.inbox.bottom();
  if (names_memory && c.depth > 1) {
    note_hint(c, self, task, procedure_at(d.procedure), place);
  } else if (place < self.hints_below) {
    self.hints[place & (hint_count - 1)].which = 0;
  }
  if (by.task == no_slot || !self.inbox.try_push(task, false)) [[unlikely]]
    return queue_slowly(c, self, id);
  return c.doorbell.someone_sleeps() ? confirm_for(c, self, id) : id;
}
// The same for a wide task, a child or not.
template <bool is_post>
[[gnu::noinline]] std::uint64_t submit_wide(runtime_state& c, const draft& d, participant& self,
                                            std::uint32_t kept) {
  const job* const by = self.running;
  const bool runs_at_once = is_post && self.posts_at_once != 0;
  if (by == nullptr && (runs_at_once || !owes_nothing(self)))
    return submit_any_way(c, d, nullptr, is_post);
  return submit_kept<false, is_post>(c, d, self, by, kept);
}
// The same for any task that is not wide. Each kind has a function of its own, in which less
// is left to ask. `plain_kinds` as for submit_call().
template <bool is_post>
[[gnu::always_inline]] inline std::uint64_t submit_passed(runtime_state& c, const draft& d,
                                                          participant& self,
                                                          std::uint64_t plain_kinds) {
  const std::uint32_t kept = self.free_slots.count();
  if (kept == 0) [[unlikely]]
    return submit_any_way(c, d, nullptr, is_post);
  if (self.running != nullptr) {
    return (plain_kinds & plain_kinds_compared) == 0
               ? submit_child<false, is_post>(c, d, self, kept)
               : submit_child<true, is_post>(c, d, self, kept);
  }
  if (!owes_nothing(self) || (is_post && self.posts_at_once != 0)) [[unlikely]]
    return submit_any_way(c, d, nullptr, is_post);
  return submit_kept<true, is_post>(c, d, self, nullptr, kept);
}
template <bool is_post>
[[gnu::noinline]] std::uint64_t submit_checked(runtime_state& c, const draft& d, participant& self,
                                               std::uint64_t plain_kinds) {
  const procedure_entry* const p = find_procedure(d.procedure);
  const std::uint32_t kept = self.free_slots.count();
  const bool is_plain =
      p != nullptr && kept != 0 &&
      (is_of_plain_kinds(*p, plain_kinds | plain_kinds_wide) || passes_plainly(d, *p));
  if (!is_plain) return submit_any_way(c, d, nullptr, is_post);
  return d.argument_count > near_arguments
             ? submit_wide<is_post>(c, d, self, kept)
             : submit_passed<is_post>(c, d, self, plain_kinds_unknown);
}
// It names no procedure, or there is no straight path.
template <bool is_post>
[[gnu::noinline]] std::uint64_t submit_not_straight(runtime_state& c, const draft& d,
                                                    participant& self, std::uint64_t plain_kinds) {
  if (d.procedure > procedure_count_max || c.straight_procedures != 0) [[unlikely]]
    return submit_any_way(c, d, nullptr, is_post);
  return submit_elsewhere(c, self, d, is_post, plain_kinds);
}
// An entry that nobody has filled has no plain_kinds.
template <bool is_post>
[[gnu::always_inline]] inline std::uint64_t submit_straight(runtime_state& c, const draft& d,
                                                            std::uint64_t plain_kinds) {
  if (!is_noted(c)) [[unlikely]]
    return submit_any_way(c, d, nullptr, is_post);
  participant& self = noted_here(c);
  if (d.procedure >= c.straight_procedures)
    return submit_not_straight<is_post>(c, d, self, plain_kinds);
  return is_of_plain_kinds(procedure_at(d.procedure), plain_kinds)
             ? submit_passed<is_post>(c, d, self, plain_kinds)
             : submit_checked<is_post>(c, d, self, plain_kinds);
}

}  // namespace

[[gnu::noinline]] std::uint64_t submit_call(runtime_state* c, const draft& d,
                                            std::uint64_t plain_kinds) {
  return submit_straight<false>(*c, d, plain_kinds);
}

[[gnu::noinline]] std::uint64_t post_call(runtime_state* c, const draft& d,
                                          std::uint64_t plain_kinds) {
  return submit_straight<true>(*c, d, plain_kinds);
}

std::uint64_t submit(runtime_state* c, const draft& d, const options* o, bool detached) {
  if (o != nullptr) return submit_any_way(*c, d, o, detached);
  return detached ? post_call(c, d, plain_kinds_unknown) : submit_call(c, d, plain_kinds_unknown);
}

}  // namespace lev::detail
