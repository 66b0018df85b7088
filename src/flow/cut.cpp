// Cutting a task into pieces: how many, into which slots, and what each of them is. Slices go
// straight from slot to slot; a hook makes descriptors.
//
// Paper: Jack Rabbit section 4.4 (Work::Dice), 7.2 (slices).
#include "flow/scheduler.hpp"

#include "base/numbers.hpp"
#include "sync/hook_call.hpp"
#include "task/arguments.hpp"
#include "task/procedure_table.hpp"
#include "task/slice.hpp"
#include "task/validate.hpp"

namespace lev {

namespace {

// The size of a task, by its ranges and memory.
std::uint64_t measure(const descriptor& d) noexcept {
  std::uint64_t sum = 0;
  for (const argument& a : arguments_of(d)) {
    if (a.what == kind::range) sum += slice_items(a);
    if (is_memory(a.what)) sum += payload_bytes(a);
  }
  return sum;
}

// A hook's piece is checked like any task, and must be smaller than the task it was made from, or
// dicing would never end.
bool is_proper_piece(const descriptor& whole, const descriptor& piece) noexcept {
  draft_facts facts;
  refusal why;
  if (piece.procedure != whole.procedure || !validate(detail::draft_of(piece), &facts, &why))
    return false;
  const std::uint64_t size = measure(whole);
  return size == 0 || measure(piece) < size;
}

// A hook that throws counts as one that cannot split.
std::uint32_t ask_hook(dice_hook hook, const descriptor& whole, descriptor* cuts,
                       std::uint32_t pieces) noexcept try {
  return hook(whole, cuts, pieces);
} catch (...) {
  return 0;
}

}  // namespace

std::uint32_t cut_pieces(const descriptor& whole, descriptor* cuts, std::uint32_t pieces) noexcept {
  const dice_hook hook = procedure_at(whole.procedure).info.dice;
  if (hook == nullptr) {
    if (task_items(whole) < pieces) return 0;
    slice(whole, cuts, pieces);
    return pieces;
  }
  for (std::uint32_t i = 0; i < pieces; ++i) cuts[i] = whole;
  const std::uint32_t made = ask_hook(hook, whole, cuts, pieces);
  if (made > pieces) return 0;
  for (std::uint32_t i = 0; i < made; ++i) {
    if (!is_proper_piece(whole, cuts[i])) return 0;
  }
  return made;
}

// The number of pieces into which a task can be split, by its items and grain. A task that is too
// big must be split, whatever its grain. If the grain would make more pieces of a whole than any
// taker gains from, pieces are larger: a range may have 2^63 items, and items may take no time.
std::uint32_t scheduler::pieces_possible(std::uint32_t task, bool too_big) noexcept {
  const slot& s = slots_->at(task);
  if (procedure_at(s.procedure).info.dice != nullptr) return pieces_per_dice_max;
  const std::uint64_t fine =
      slots_->items_of(whole_of(s, task)) / (std::uint64_t{limits_.takers} * pieces_per_taker_max);
  const std::uint64_t grain = too_big ? 1 : larger(larger<std::uint64_t>(s.grain, 1), fine);
  return static_cast<std::uint32_t>(
      smaller<std::uint64_t>(slots_->items_of(task) / grain, pieces_per_dice_max));
}

scheduler::split_result scheduler::cut(std::uint32_t task, std::uint32_t share, index_cache& cache,
                                       pass_report& report, cut_result& p) noexcept {
  slot& s = slots_->at(task);
  LEV_DCHECK((s.flags & (task_diceable | task_too_big)) != 0 && (s.flags & task_is_join) == 0);
  LEV_DCHECK_LOOK(s.state.is_live());
  const bool deep = s.dice_depth >= dice_depth_max;
  const std::uint32_t wanted =
      deep ? 0
           : smaller(smaller(share, pieces_possible(task, (s.flags & task_too_big) != 0)),
                     pieces_per_dice_max);
  if (wanted < 2) {
    s.flags &= static_cast<std::uint8_t>(~task_diceable);
    return split_result::indivisible;
  }
  // A piece's own slot serves its last part; a task with a ticket stays behind as the join of its
  // pieces.
  const bool is_piece = (s.flags & task_is_piece) != 0;
  std::uint32_t have = is_piece ? 1 : 0;
  p.slots[0] = task;
  while (have < wanted && (p.slots[have] = slots_->try_take(cache)) != no_slot) ++have;
  if (have < 2) {
    if (have > 0 && !is_piece) report.has_freed |= slots_->give(cache, p.slots[0]);
    return split_result::no_slots;
  }
  if (procedure_at(s.procedure).info.dice != nullptr)
    return cut_by_hook(task, have, cache, report, p);
  p.made = have;
  count_pieces(task, p.made, report);
  write_pieces(task, p, nullptr);
  return split_result::done;
}

// A hook may make fewer pieces than there is room for, or none.
scheduler::split_result scheduler::cut_by_hook(std::uint32_t task, std::uint32_t have,
                                               index_cache& cache, pass_report& report,
                                               cut_result& p) noexcept {
  slot& s = slots_->at(task);
  const bool is_piece = (s.flags & task_is_piece) != 0;
  descriptor whole;
  read_descriptor(*slots_, task, whole);
  descriptor cuts[pieces_per_dice_max];
  {
    const hook_call here(this);
    p.made = cut_pieces(whole, cuts, have);
  }
  LEV_DCHECK(p.made <= have && have <= pieces_per_dice_max);
  const std::uint32_t kept = p.made < 2 ? (is_piece ? 1u : 0u) : p.made;
  while (have > kept) report.has_freed |= slots_->give(cache, p.slots[--have]);
  if (p.made < 2) {
    s.flags &= static_cast<std::uint8_t>(~task_diceable);
    return split_result::indivisible;
  }
  count_pieces(task, p.made, report);
  write_pieces(task, p, cuts);
  return split_result::done;
}

// The join counts `made` pieces. They are added while at least one is outstanding, or before any is
// queued.
void scheduler::count_pieces(std::uint32_t task, std::uint32_t made, pass_report& report) noexcept {
  LEV_DCHECK(made >= 2);
  slot& s = slots_->at(task);
  const bool is_piece = (s.flags & task_is_piece) != 0;
  report.submitted.add(is_piece ? made - 1 : made);
  report.diced += made;
  if (is_piece) {
    const std::uint32_t before =
        slots_->extra(s.parent).pieces.fetch_add(made - 1, memory_order_relaxed);
    LEV_DCHECK(before != 0);  // this piece, at least
    return;
  }
  slot_extra& join = slots_->extra(task);
  join.pieces.store(made, memory_order_relaxed);
  join.failures.store(0, memory_order_relaxed);
  join.first_failure.store(0, memory_order_relaxed);
  join.exception = nullptr;  // a report of the deaths of a task that is split after all
  s.flags = static_cast<std::uint8_t>((s.flags | task_is_join) & ~task_diceable);
}

// The pieces that a hook has made; null: nearly equal ones, in order, straight from slot to slot.
// The first may take the slot of the whole, so it is written last.
void scheduler::write_pieces(std::uint32_t task, const cut_result& p,
                             const descriptor* cuts) noexcept {
  const slot& s = slots_->at(task);
  const origin from{task, whole_of(s, task), static_cast<std::uint8_t>(s.dice_depth + 1), s.flags};
  const std::uint64_t items = cuts == nullptr ? slots_->items_of(task) : 0;
  for (std::uint32_t i = p.made; i-- > 0;) {
    const std::uint32_t piece = p.slots[i];
    open_piece(piece, from);
    if (cuts != nullptr) {
      write_task(*slots_, piece, cuts[i]);
    } else {
      write_slice(piece, task, slice_begin(items, p.made, i), slice_begin(items, p.made, i + 1));
    }
    mark_piece(piece, from);
  }
}

void scheduler::write_slice(std::uint32_t piece, std::uint32_t whole, std::uint64_t begin,
                            std::uint64_t end) noexcept {
  const slot& from = slots_->at(whole);
  static_cast<detail::task_head&>(slots_->at(piece)) = from;
  for (unsigned i = 0; i < from.argument_count; ++i) {
    argument a = slots_->argument_at(whole, i);
    if ((a.flags & argument_sliced) != 0) lev::cut(a, begin, end);
    slots_->argument_at(piece, i) = a;
  }
}

// open_piece() makes a slot one of a piece that is being written, mark_piece() says what it is once
// its arguments are there.
void scheduler::open_piece(std::uint32_t piece, const origin& from) noexcept {
  LEV_DCHECK(from.depth <= dice_depth_max && from.parent != no_slot);
  if (piece != from.task) {
    slots_->at(piece).state.open(state_bits::released);
  } else {
    slots_->extra(piece).attempts = 0;  // they belonged to the whole, as a report of its deaths
    slots_->extra(piece).exception = nullptr;
  }
}

void scheduler::mark_piece(std::uint32_t piece, const origin& from) noexcept {
  slot& s = slots_->at(piece);
  LEV_DCHECK(s.argument_count <= argument_count_max);
  s.parent = from.parent;
  s.dice_depth = from.depth;
  LEV_DCHECK(s.mailbox.load(memory_order_relaxed) == 0);
  std::size_t bytes = 0;
  for (unsigned i = 0; i < s.argument_count; ++i) {
    const argument& a = slots_->argument_at(piece, i);
    if (needs_copy(a, limits_.copies)) bytes = staged_end(a, bytes);
  }
  const bool too_big = bytes > limits_.local_store_bytes;
  const bool diceable = too_big || pieces_possible(piece, false) >= 2;
  s.flags = static_cast<std::uint8_t>(
      task_detached | task_is_piece | (from.flags & task_timed) | (diceable ? task_diceable : 0) |
      (bytes != 0 ? task_staged : 0) | (too_big ? task_too_big : 0));
}

}  // namespace lev
