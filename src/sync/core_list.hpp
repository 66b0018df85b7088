// core_list: the hosts of one core whose task is complete, for those that wait by
// wait_policy::directed. The protocol and its proof are in sync/README.md.
//
// Several hosts share a core. One of them polls; the others sleep. A completer puts the number of a
// sleeping host here instead of waking it, which would cost the worker a system call. The host that
// polls hands its core over: it wakes the named host, and sleeps itself. When no host polls, the
// completer wakes the host after all.
//
// Entries go by host, one cache line of them; hosts beyond that share. A name that finds its entry
// taken replaces the older one, which is woken. (In the paper every host has a worker of its own,
// and entries go by worker. Here one worker serves many hosts, whose names would push each other
// out.)
//
// Paper: SLED sections 3.1, 3.1.1 (ready_to_run, split by hardware context) and Figure 6.
#pragma once

#include "sync/env.hpp"

namespace lev {

template <class Env = real_env>
class alignas(line_pair_bytes) core_list {
 public:
  static constexpr std::uint32_t entries_max = line_bytes / sizeof(std::uint32_t) - 1;
  static constexpr std::uint32_t nobody = 0xffffffffu;

  // open() sets how many entries are looked at: one for each host, at most entries_max.
  void open(std::uint32_t hosts) noexcept { count_ = hosts < entries_max ? hosts : entries_max; }

  // The completer calls name(): `host` sleeps, or is about to, and its task is complete. wake(host)
  // is called for each host that must be woken from here.
  template <class Wake>
  void name(std::uint32_t host, Wake&& wake) noexcept {
    entry& mine = entries_[host % count_];
    // Pairs with take(): publishes what the host waited for. Pairs with stop_polling():
    // sequentially consistent, as the name is written and then pollers are looked for.
    const std::uint32_t before = mine.exchange(host + 1, memory_order_seq_cst);
    if (before != 0 && before != host + 1) wake(before - 1);
    // Pairs with stop_polling(): a poller that is seen here looks at the entry later.
    if (pollers_.load(memory_order_seq_cst) == 0) wake_entry(mine, wake);
  }

  // A host says when it starts to poll and when it stops: then no host that it was expected to wake
  // may be left named. Nothing that may wait or take long comes between the two.
  void start_polling() noexcept {
    // Pairs with name(): what a completer does that sees this poller comes before stop_polling()
    // looks.
    pollers_.fetch_add(1, memory_order_relaxed);
  }
  template <class Wake>
  void stop_polling(Wake&& wake) noexcept {
    // Pairs with name(). Sequentially consistent: this poller leaves and then looks at the entries.
    if (pollers_.fetch_sub(1, memory_order_seq_cst) != 1) return;
    for (std::uint32_t i = 0; i < count_; ++i) {
      // Pairs with name(): the other half of that handshake.
      if (entries_[i].load(memory_order_seq_cst) != 0) wake_entry(entries_[i], wake);
    }
  }

  // A poller calls take(): it gets a named host, which the caller must wake, or none. It looks from
  // the caller's own entry on, so that the core goes round.
  std::uint32_t take(std::uint32_t caller) noexcept {
    std::uint32_t at = caller % count_;
    for (std::uint32_t i = 0; i < count_; ++i) {
      at = at + 1 < count_ ? at + 1 : 0;
      if (entries_[at].load(memory_order_relaxed) == 0) continue;
      // Pairs with name(): the host that is woken sees what it waited for.
      const std::uint32_t found = entries_[at].exchange(0, memory_order_acquire);
      if (found != 0) return found - 1;
    }
    return nobody;
  }

  // A hint: whether another host polls, too.
  bool has_other_pollers() const noexcept { return pollers_.load(memory_order_relaxed) > 1; }

 private:
  using entry = typename Env::template atomic<std::uint32_t>;

  template <class Wake>
  static void wake_entry(entry& e, Wake& wake) noexcept {
    // Pairs with name(): the host that is woken sees what it waited for. Of several threads that
    // would wake it, one finds the name.
    const std::uint32_t found = e.exchange(0, memory_order_acquire);
    if (found != 0) wake(found - 1);
  }

  // Written by hosts that start or stop polling, read by completers: how many poll. Publishes that
  // they will look at the entries.
  entry pollers_{0};
  // Written by completers (a host's number and 1) and by wakers of the host (0), read by pollers:
  // publishes what the host waits for.
  entry entries_[entries_max] = {};
  std::uint32_t count_ = 0;
};

}  // namespace lev
