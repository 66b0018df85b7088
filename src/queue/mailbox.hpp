// mailbox: the direct path. A submitter writes a task straight into the line that an idle worker
// polls; the last store publishes it. With the completion, that is two cache-line transfers per
// task, the least possible.
//
// One task at a time. A submitter holds the mailbox by a lease from the submit until it has
// collected the outcome, so the worker never writes to the mailbox's lines and the submitter knows
// without looking that the mailbox is free again.
//
//   lease word (submitters' line): [announced:16 | holder:16], holder 0 = nobody. The
//   compare-exchange that takes the lease also announces the letter, before it is written: a worker
//   about to sleep that sees an announcement it has not received stays up.
//
// Paper: TPC section 3.2 (descriptor written by remote stores, the last one sets the active flag)
// and 3.3 (completion by one store). Model test: tests/model/mailbox_model.cpp.
#pragma once

#include "sync/env.hpp"

#include <cstdint>

namespace lev {

// A Letter of up to 56 bytes shares one line with its number; up to 120 bytes take a second line,
// which travels at the same time.
template <class Letter, class Env = real_env>
class mailbox {
 public:
  // try_lease() takes the mailbox for `holder` (1..65535) and announces a letter: deliver() or
  // retract() must follow at once.
  bool try_lease(std::uint32_t holder) noexcept {
    std::uint32_t word = lease_.load(memory_order_relaxed);
    if ((word & 0xffff) != 0) return false;
    // Pairs with release_lease() of the last holder, and with letter_announced(). Sequentially
    // consistent: the holder's look at the worker's sleep flag comes after the announcement
    // (store-then-load handshake).
    return lease_.compare_exchange_strong(word, next_announcement(word) | holder,
                                          memory_order_seq_cst);
  }
  // The holder calls deliver(), once per lease.
  void deliver(const Letter& letter) noexcept {
    letter_ = letter;
    // Pairs with try_receive(): publishes the letter and the slot it names.
    received_.store(lease_.load(memory_order_relaxed) >> 16, memory_order_release);
  }
  // retract() gives the lease back without a letter: the worker turned out to be busy.
  void retract() noexcept {
    // Pairs with letter_announced() and try_lease(): the announcement is taken back.
    lease_.store((lease_.load(memory_order_relaxed) & 0xffff0000u) - 0x10000u,
                 memory_order_release);
  }
  // The holder calls release_lease() after the task it sent is complete.
  void release_lease() noexcept {
    // Pairs with try_lease() of the next holder.
    lease_.store(lease_.load(memory_order_relaxed) & 0xffff0000u, memory_order_release);
  }

  // The worker calls try_receive() for the letter, or null. `seen` is its own count of letters, 0
  // at first. The letter stays unchanged as long as its holder has the lease.
  const Letter* try_receive(std::uint32_t* seen) const noexcept {
    // Pairs with deliver().
    const std::uint32_t now = received_.load(memory_order_acquire);
    if (now == *seen) return nullptr;
    *seen = now;
    return &letter_;
  }
  // has_letter() is the worker's poll. It asks for the second line with the first, so that reading
  // a longer letter does not wait for one transfer after the other. Always inlined, or GCC 12 would
  // drop the request.
  [[gnu::always_inline]] bool has_letter(std::uint32_t seen) const noexcept {
    __builtin_prefetch(reinterpret_cast<const char*>(&received_) + line_bytes);
    return received_.load(memory_order_relaxed) != seen;
  }
  // letter_announced() is the worker's last look before it sleeps, or turns to other work.
  bool letter_announced(std::uint32_t seen) const noexcept {
    // Pairs with try_lease(). Sequentially consistent: comes after the worker's sleep flag.
    return lease_.load(memory_order_seq_cst) >> 16 != seen;
  }

 private:
  static std::uint32_t next_announcement(std::uint32_t word) noexcept {
    return (word & 0xffff0000u) + 0x10000u;
  }

  // Written by the holder, read by the worker: the number of the last letter; publishes letter_.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> received_{0};
  Letter letter_{};
  // Written by holders, read by submitters and by a worker about to sleep: who may write a letter,
  // and the last announced one.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> lease_{0};
};

}  // namespace lev
