// task_state: the one word that says who owns a task slot, and by which its outcome reaches the
// waiter.
//
//   [generation:32 | waiter:16 | outcome:8 | flags:5 | phase:3]
//
//   free     in a list of free slots                owner: the list
//   live     being built, waiting, or running       owner: submitter, then queues, then one worker
//   done     the outcome and the outputs are there  owner: the holder of the ticket
//   taken    the ticket is being collected          owner: the collector (none after success)
//
// While a task is live, its outcome field is ok, or cancelled once that was requested. The field's
// highest bit says that the task must end even if it runs.
//
// Waiters, releases, callbacks, cancellations and dependants announce themselves by flags while the
// slot is live. The completer moves live -> done by a compare-exchange on a value it has seen and
// served (live -> free, if there is no ticket, or if the completer holds the ticket); a flag set
// meanwhile makes it fail and look again, so every announcement is either served by the completer
// or sees `done` itself. Model test: tests/model/task_state_model.cpp.
//
// Paper: TPC section 3.3: completion is one store to a line the submitter polls.
#pragma once

#include <leveret/status.hpp>

#include "base/assert.hpp"
#include "sync/env.hpp"

#include <cstdint>

namespace lev {

// The bits of the word, in one place.
struct state_bits {
  enum : std::uint64_t {
    free = 0,
    live = 1,
    done = 2,
    taken = 3,
    phase_mask = 7,
    waited = 1 << 3,       // `waiter` sleeps, or is about to, until done
    crowd = 1 << 4,        // more than one waiter: wake all
    released = 1 << 5,     // no ticket any more: the completer frees the slot
    called_back = 1 << 6,  // a callback is in place
    depended_on = 1 << 7,  // there is a list of dependants
    flag_mask = 0xf8,
    cancel_asked = std::uint64_t{4}
                   << 8,  // while live, the outcome field holds the request: status::cancelled
    end_asked = cancel_asked | std::uint64_t{0x80} << 8,
  };
  static constexpr std::uint32_t generation(std::uint64_t w) noexcept {
    return static_cast<std::uint32_t>(w >> 32);
  }
  static constexpr std::uint64_t phase(std::uint64_t w) noexcept { return w & phase_mask; }
  // Whether the task is live and its ticket is held. The number of a task that was posted, or whose
  // ticket was released, can only be a guess, or left over.
  static constexpr bool is_pending(std::uint64_t w) noexcept {
    return (w & (phase_mask | released)) == live;
  }
  static constexpr status outcome(std::uint64_t w) noexcept {
    return static_cast<status>((w >> 8) & 0xff);
  }
  static constexpr std::uint32_t waiter(std::uint64_t w) noexcept { return (w >> 16) & 0xffff; }
  static constexpr std::uint64_t make(std::uint32_t generation, std::uint64_t phase,
                                      status outcome = status::ok) noexcept {
    return std::uint64_t{generation} << 32 |
           std::uint64_t{static_cast<std::uint8_t>(outcome)} << 8 | phase;
  }
};

template <class Env = real_env>
class task_state {
 public:
  using bits = state_bits;

  // For the submitter: the slot is its own, taken from a free list. `flags` is 0 or released.
  // Returns the word of the free slot: its generation, and nothing below it.
  std::uint64_t open(std::uint64_t flags = 0) noexcept {
    const std::uint64_t w = word_.load(memory_order_relaxed);
    // A free slot's word is its generation alone.
    LEV_DCHECK(w == bits::make(bits::generation(w), bits::free));
    LEV_DCHECK((flags & ~std::uint64_t{bits::released}) == 0);
    word_.store(w | bits::live | flags, memory_order_relaxed);
    return w;
  }
  std::uint32_t generation() const noexcept {
    return bits::generation(word_.load(memory_order_relaxed));
  }
  // is_free() and is_live() are for assertions.
  bool is_free() const noexcept {
    return bits::phase(word_.load(memory_order_relaxed)) == bits::free;
  }
  bool is_live() const noexcept {
    return bits::phase(word_.load(memory_order_relaxed)) == bits::live;
  }
  std::uint64_t word() const noexcept {
    // Pairs with try_finish(): announcements' data (callback, dependants) are visible to the
    // completer.
    return word_.load(memory_order_acquire);
  }

  // peek(): pending, the outcome, or stale_ticket.
  status peek(std::uint32_t generation) const noexcept {
    // Pairs with try_finish(): the outputs are visible to a thread that sees the outcome.
    const std::uint64_t w = word_.load(memory_order_acquire);
    if (bits::generation(w) != generation) return status::stale_ticket;
    if (bits::is_pending(w)) return status::pending;
    return bits::phase(w) == bits::done ? bits::outcome(w) : status::stale_ticket;
  }

  // is_pending() is peek() == pending in one comparison. is_still() is for a caller that looks
  // often, and keeps what pending_word() returns.
  bool is_pending(std::uint32_t generation) const noexcept {
    return is_still(pending_word(generation));
  }
  static constexpr std::uint64_t pending_word(std::uint32_t generation) noexcept {
    return bits::make(generation, bits::live);
  }
  bool is_still(std::uint64_t pending) const noexcept {
    constexpr std::uint64_t looked_at =
        ~std::uint64_t{0} << 32 | std::uint64_t{bits::phase_mask} | std::uint64_t{bits::released};
    // Pairs with try_finish(), as in peek().
    return (word_.load(memory_order_acquire) & looked_at) == pending;
  }

  // announce() sets `flag` if the task is still live; false if it is done, or its ticket used up. A
  // caller that learns that it is done sees the outputs.
  bool announce(std::uint32_t generation, std::uint64_t flag) noexcept {
    // Pairs with try_finish(): a callback that comes too late runs here and reads the outputs.
    std::uint64_t w = word_.load(memory_order_acquire);
    do {
      if (bits::generation(w) != generation || !bits::is_pending(w)) return false;
      // Pairs with word() of the completer: publishes what the flag announces.
    } while (
        !word_.compare_exchange_strong(w, w | flag, memory_order_acq_rel, memory_order_acquire));
    return true;
  }
  // announce_waiter() makes the completer wake `who`; false if the task is done or stale: do not
  // sleep.
  bool announce_waiter(std::uint32_t generation, std::uint32_t who) noexcept {
    std::uint64_t w = word_.load(memory_order_relaxed);
    std::uint64_t next;
    do {
      if (bits::generation(w) != generation || !bits::is_pending(w)) return false;
      const bool other = (w & bits::waited) != 0 && bits::waiter(w) != who;
      next = other ? w | bits::crowd
                   : (w & ~(std::uint64_t{0xffff} << 16)) | bits::waited | std::uint64_t{who} << 16;
      // Pairs with try_finish(): either the completer sees the waiter, or this fails and sees it
      // done.
    } while (!word_.compare_exchange_strong(w, next, memory_order_acq_rel, memory_order_acquire));
    return true;
  }

  // The completer calls try_finish(): live -> done, or -> free when the ticket has no holder.
  // `seen` is the word as it was when its flags were served; on failure it is the word as it is
  // now.
  bool try_finish(std::uint64_t& seen, status outcome) noexcept {
    LEV_DCHECK(bits::phase(seen) == bits::live && outcome != status::pending);
    const std::uint32_t generation = bits::generation(seen);
    const std::uint64_t next = (seen & bits::released) != 0
                                   ? bits::make(generation + 1, bits::free)
                                   : bits::make(generation, bits::done, outcome);
    // Pairs with peek(), collect() and word(): publishes the outcome and the outputs.
    return word_.compare_exchange_strong(seen, next, memory_order_acq_rel, memory_order_acquire);
  }

  // try_finish_alone() is try_finish() with success of a task in whose word nobody has announced
  // anything, nor asked for its end. False: somebody has, or does so now.
  bool try_finish_alone(std::uint64_t& seen) noexcept {
    return static_cast<std::uint32_t>(seen) == bits::live && try_finish_plainly(seen);
  }
  // try_finish_plainly() is the same for a caller that knows that nobody had when it looked.
  bool try_finish_plainly(std::uint64_t& seen) noexcept {
    LEV_DCHECK(static_cast<std::uint32_t>(seen) == bits::live);
    // Pairs with peek(), collect() and word(): publishes the outcome, which is 0, and the outputs.
    // And with announce(): on failure what it published is visible.
    return word_.compare_exchange_strong(seen, seen + (bits::done - bits::live),
                                         memory_order_acq_rel, memory_order_acquire);
  }

  // try_finish_collected() is try_finish() with success and collect() in one step, for a completer
  // that holds the ticket: live -> free. False: the word has flags, or a request to cancel; `seen`
  // is the word as it is now. `pending` is that of a live task without them.
  bool try_finish_collected(std::uint64_t& seen, std::uint32_t generation) noexcept {
    seen = pending_word(generation);
    return try_finish_pending(seen);
  }
  bool try_finish_pending(std::uint64_t& pending) noexcept {
    constexpr std::uint64_t step = bits::make(1, bits::free) - bits::make(0, bits::live);
    LEV_DCHECK(pending == pending_word(bits::generation(pending)));
    // Pairs with announce(): on failure what it published is visible. Publishes nothing itself.
    return word_.compare_exchange_strong(pending, pending + step, memory_order_acquire,
                                         memory_order_acquire);
  }

  // The completer calls retract() before it serves what `flag` announces: a later announcement then
  // changes the word, and try_finish() notices. False: the word has changed, look again.
  bool retract(std::uint64_t& seen, std::uint64_t flag) noexcept {
    LEV_DCHECK(bits::phase(seen) == bits::live && (seen & flag) != 0);
    // Pairs with announce(): what it published is visible to the completer.
    if (!word_.compare_exchange_strong(seen, seen & ~flag, memory_order_acq_rel,
                                       memory_order_acquire))
      return false;
    seen &= ~flag;
    return true;
  }

  // collect() takes the outcome of a done task for this caller alone: stale_ticket if another took
  // it. Follow with retire().
  status collect(std::uint32_t generation) noexcept {
    // Pairs with try_finish().
    std::uint64_t w = word_.load(memory_order_acquire);
    if (bits::generation(w) != generation) return status::stale_ticket;
    if (bits::phase(w) != bits::done)
      return bits::is_pending(w) ? status::pending : status::stale_ticket;
    const std::uint64_t next = bits::make(generation, bits::taken);
    // Pairs with try_finish(), and with another collector: one of them wins.
    if (!word_.compare_exchange_strong(w, next, memory_order_acquire, memory_order_relaxed))
      return status::stale_ticket;
    return bits::outcome(w);
  }
  // try_collect_success() is collect() and retire() in one step for a task that has succeeded, of
  // which nothing else is to be read; false: this is no such task, or another collector was first.
  bool try_collect_success(std::uint32_t generation) noexcept {
    std::uint64_t w = bits::make(generation, bits::done);
    if (word_.load(memory_order_relaxed) != w) return false;
    constexpr std::uint64_t step = bits::make(1, bits::free) - bits::make(0, bits::done);
    // Pairs with try_finish(), and with another collector, as in collect().
    return word_.compare_exchange_strong(w, w + step, memory_order_acquire, memory_order_relaxed);
  }
  // retire() makes the slot free for the next generation; its caller puts it into a free list.
  void retire() noexcept {
    const std::uint64_t w = word_.load(memory_order_relaxed);
    LEV_DCHECK(bits::phase(w) == bits::taken || bits::phase(w) == bits::live);
    word_.store(bits::make(bits::generation(w) + 1, bits::free), memory_order_relaxed);
  }

  // release() gives up the ticket. freed: the task was done with the outcome stored in `result`,
  // and the caller must put the slot into a free list.
  enum class release_result { left_to_completer, freed, stale };
  release_result release(std::uint32_t generation, status* result = nullptr) noexcept {
    for (;;) {
      if (announce(generation, bits::released)) return release_result::left_to_completer;
      const status s = collect(generation);
      if (s == status::stale_ticket) return release_result::stale;
      if (s == status::pending) continue;
      if (result != nullptr) *result = s;
      return release_result::freed;
    }
  }

 private:
  // Written by the submitter, the completer, the collector and announcers; read by all of them:
  // publishes the outputs.
  typename Env::template atomic<std::uint64_t> word_{0};
};

}  // namespace lev
