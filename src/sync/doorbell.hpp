// doorbell: which participants look for work, which sleep, and which to wake. The protocol and its
// proof are in sync/README.md.
//
// One word counts pollers (low half) and sleepers (high half). A submitter that finds a poller
// wakes none; a poller that finds work while it is the last one wakes another participant if more
// work waits.
#pragma once

#include "base/assert.hpp"
#include "sync/env.hpp"

namespace lev {

constexpr std::uint32_t no_one = 0xffffffffu;

template <class Env = real_env>
class doorbell {
 public:
  using flag = typename Env::template atomic<std::uint32_t>;

  // `flags` are one word per participant, zeroed, on lines of their own; they outlive the doorbell.
  void open(flag* const* flags, std::uint32_t count) noexcept {
    flags_ = flags;
    count_ = count;
  }

  // someone_needed() is asked after work was queued by a sequentially consistent read-modify-write
  // (queues do that): does a participant sleep while none is looking?
  bool someone_needed() const noexcept {
    // Pairs with stop_polling() and start_sleeping(). Sequentially consistent: with the queue's
    // own read-modify-write this is one side of a store-then-load handshake, which acquire and
    // release do not order.
    const std::uint32_t w = word_.load(memory_order_seq_cst);
    return has_sleepers(w) && pollers(w) == 0;
  }
  // A hint, for queues whose push is a plain store.
  bool someone_sleeps() const noexcept { return has_sleepers(word_.load(memory_order_relaxed)); }

  // A hint, too: a participant looks for work, or sleeps for want of it.
  bool someone_idle() const noexcept { return word_.load(memory_order_relaxed) != 0; }

  // Whether somebody looks for work, or was woken to. Any thread; a hint.
  bool someone_polls() const noexcept { return pollers(word_.load(memory_order_relaxed)) != 0; }

  void start_polling() noexcept {
    // Pairs with someone_needed(): from here on submitters rely on this poller. Sequentially
    // consistent, as there.
    word_.fetch_add(one_poller, memory_order_seq_cst);
  }
  // stop_polling() is called with work in hand. Returns whether the caller was the last poller
  // while a participant sleeps: it must then look for more work and, if there is some, wake_one().
  [[nodiscard]] bool stop_polling() noexcept {
    // Pairs with someone_needed(). Sequentially consistent: the look for more work that follows
    // must come after it.
    const std::uint32_t before = word_.fetch_sub(one_poller, memory_order_seq_cst);
    LEV_DCHECK(pollers(before) != 0);
    return pollers(before) == 1 && sleepers(before) != 0;
  }

  // start_sleeping() turns the caller, poller `who`, into a sleeper. It must look for work once
  // more before it parks.
  void start_sleeping(std::uint32_t who) noexcept {
    // Pairs with claim(): the flag must be up before the count is, or a waker would find no
    // sleeper.
    flags_[who]->store(asleep, memory_order_seq_cst);
    // Pairs with someone_needed(). Sequentially consistent: the last look for work must come after
    // it.
    [[maybe_unused]] const std::uint32_t before =
        word_.fetch_add(one_sleeper - one_poller, memory_order_seq_cst);
    LEV_DCHECK(pollers(before) != 0);
    Env::heavy_fence();
  }
  // stop_sleeping() makes `who` a poller again after a park, unless a waker did it already.
  void stop_sleeping(std::uint32_t who) noexcept {
    if (claim(who)) return;
    // A waker was first: it is between its claim and its correction of the count, for two
    // instructions. Pairs with claim(): the count is right when the flag is down.
    while (flags_[who]->load(memory_order_acquire) != awake) Env::pause();
  }

  // wake_one() makes some sleeper a poller and returns it for the caller to unpark; no_one if none
  // sleeps.
  std::uint32_t wake_one(std::uint32_t first) noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const std::uint32_t who = first + i < count_ ? first + i : first + i - count_;
      if (claim(who)) return who;
    }
    return no_one;
  }
  // claim() makes `who` a poller if it sleeps; true if this call did it.
  bool claim(std::uint32_t who) noexcept {
    // Pairs with start_sleeping(); a cheap first look.
    if (flags_[who]->load(memory_order_seq_cst) != asleep) return false;
    std::uint32_t expected = asleep;
    // Pairs with start_sleeping(): one claim per sleep.
    if (!flags_[who]->compare_exchange_strong(expected, claimed, memory_order_seq_cst))
      return false;
    // Pairs with someone_needed(): the woken participant counts as a poller from here on.
    word_.fetch_sub(one_sleeper - one_poller, memory_order_seq_cst);
    // Pairs with stop_sleeping(): the count is right.
    flags_[who]->store(awake, memory_order_release);
    return true;
  }

  bool sleeps(std::uint32_t who) const noexcept {
    // Pairs with start_sleeping(). Sequentially consistent: the mailbox's side of its
    // store-then-load handshake.
    return flags_[who]->load(memory_order_seq_cst) == asleep;
  }
  std::uint32_t sleeper_count() const noexcept {
    return sleepers(word_.load(memory_order_relaxed));
  }

 private:
  enum : std::uint32_t { awake = 0, asleep = 1, claimed = 2 };
  static constexpr std::uint32_t one_poller = 1;
  static constexpr std::uint32_t one_sleeper = 1u << 16;
  static constexpr std::uint32_t pollers(std::uint32_t w) noexcept { return w & 0xffff; }
  static constexpr std::uint32_t sleepers(std::uint32_t w) noexcept { return w >> 16; }
  // A comparison leaves the word as it is, for the look at the pollers.
  static constexpr bool has_sleepers(std::uint32_t w) noexcept { return w > 0xffff; }

  flag* const* flags_ = nullptr;
  std::uint32_t count_ = 0;
  // Written by participants that start or stop looking, read by submitters: publishes on whom they
  // can rely.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> word_{0};
};

}  // namespace lev
