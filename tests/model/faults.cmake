# The wrong steps that the model tests must find; see plant.cmake. Each is a mistake that would be
# easy to make.

# An assertion that does not hold ends its schedule, not the program.
plant(base/assert.hpp [[#include <cstdio>]] [[#include "relacy_env.hpp"

#include <cstdio>]])
plant(base/assert.hpp
  [[std::fprintf(stderr, "leveret: internal error: %s (%s:%d); please report this\n", what, file,]]
  [[model::require(false, what);
  std::fprintf(stderr, "leveret: internal error: %s (%s:%d); please report this\n", what, file,]])

plant(queue/index_ring.hpp
  [[there = run_of(position, count, 1);]]
  [[there = model::fault("index_ring: a consumer trusts the tail, not the cell") && size() >= count
                  ? count
                  : run_of(position, count, 1);]])
plant(queue/index_ring.hpp
  [[if (sequence(c) != position + there + offset) break;]]
  [[const std::uint32_t wanted = position + there + offset;
      if (model::fault("index_ring: sequence compared with <") ? sequence(c) < wanted
                                                               : sequence(c) != wanted) {
        break;
      }]])
plant(queue/index_ring.hpp
  [[c.store(pack(position + i + mask_ + 1, 0), memory_order_release);]]
  [[const bool off = model::fault("index_ring: a popped cell is off by one");
      c.store(pack(position + i + mask_ + (off ? 2 : 1), 0), memory_order_release);]])

plant(queue/inbox.hpp
  [[if (bottom - top_.load(memory_order_acquire) >= Capacity) return false;]]
  [[if (!model::fault("inbox: a full inbox is written to") &&
        bottom - top_.load(memory_order_acquire) >= Capacity) {
      return false;
    }]])
plant(queue/inbox.hpp
  [[if (top < bottom) {]]
  [[const bool hasty = model::fault("inbox: the owner takes the last value without a race");
    if (top < bottom + (hasty ? 1 : 0)) {]])
plant(queue/inbox.hpp
  [[    if (top >= bottom) return false;
    *value]]
  [[    if (top >= bottom) return false;
    if (model::fault("inbox: a thief does not claim")) {
      *value = cells_[top & (Capacity - 1)].load(memory_order_relaxed);
      top_.store(top + 1, memory_order_seq_cst);
      return true;
    }
    *value]])
plant(queue/inbox.hpp
  [[    bottom_.store(bottom + 1, memory_order_relaxed);
    return won;]]
  [[    if (!model::fault("inbox: a lost race leaves the bottom low"))
      bottom_.store(bottom + 1, memory_order_relaxed);
    return won;]])
plant(queue/inbox.hpp
  [[if (heard || !Env::asymmetric()) {]]
  [[if ((heard || !Env::asymmetric()) && !model::fault("inbox: every push is a plain store")) {]])

plant(sync/parker.hpp
  [[if (word_.exchange(token, memory_order_acq_rel) == sleeping) sleeper.wake_word(word_);]]
  [[if (model::fault("parker: no token is left for one who is awake")) {
      std::uint32_t asleep = sleeping;
      if (word_.compare_exchange_strong(asleep, token, memory_order_acq_rel))
        sleeper.wake_word(word_);
      return;
    }
    if (word_.exchange(token, memory_order_acq_rel) == sleeping) sleeper.wake_word(word_);]])
plant(sync/parker.hpp
  [[    std::uint32_t expected = empty;
]]
  [[    std::uint32_t expected = empty;
    if (model::fault("parker: looks for the token, then says that it sleeps")) {
      if (word_.load(memory_order_acquire) == empty) {
        word_.store(sleeping, memory_order_release);
        sleeper.wait_word(word_, sleeping, deadline_ns);
      }
      word_.exchange(empty, memory_order_acq_rel);
      return;
    }
]])

plant(sync/pass_lock.hpp
  [[    if (word_.exchange(asked, memory_order_acq_rel) != idle) return;]]
  [[    if (model::fault("pass_lock: leaves when the job is being done, without asking")) {
      if (word_.load(memory_order_seq_cst) != idle) return;
    }
    if (word_.exchange(asked, memory_order_acq_rel) != idle) return;]])
plant(sync/pass_lock.hpp
  [[    } while (!finish());
]]
  [[      if (model::fault("pass_lock: the word is set to idle without a look")) {
        word_.store(idle, memory_order_release);
        return;
      }
    } while (!finish());
]])
plant(sync/pass_lock.hpp
  [[if (finish()) return true;]]
  [[if (finish()) return true;
    if (model::fault("pass_lock: release_hold() does not take the request")) {
      word_.store(idle, memory_order_release);
      return true;
    }]])

plant(sync/elsewhere.hpp
  [[word_.store(&mine, memory_order_seq_cst);]]
  [[if (model::fault("elsewhere: the sleeper looks, then writes its word down")) {
      if (mine.load(memory_order_seq_cst) != expected) return false;
      word_.store(&mine, memory_order_seq_cst);
      return true;
    }
    word_.store(&mine, memory_order_seq_cst);]])
plant(sync/elsewhere.hpp
  [[changed.fetch_add(0, memory_order_seq_cst);]]
  [[if (!model::fault("elsewhere: a waker does not repeat its change"))
      changed.fetch_add(0, memory_order_seq_cst);]])

plant(sync/sleep_lock.hpp
  [[    while (word_.exchange(may_be_awaited, memory_order_acquire) != is_free)
      sleeper.wait_word(word_, may_be_awaited, no_deadline);]]
  [[    while (word_.exchange(may_be_awaited, memory_order_acquire) != is_free) {
      sleeper.wait_word(word_, may_be_awaited, no_deadline);
      expected = is_free;
      if (model::fault("sleep_lock: who was woken forgets that others sleep") &&
          word_.compare_exchange_strong(expected, is_taken, memory_order_acquire)) {
        return;
      }
    }]])
plant(sync/sleep_lock.hpp
  [[if (word_.exchange(is_free, memory_order_release) == may_be_awaited) sleeper.wake_word(word_);]]
  [[if (model::fault("sleep_lock: looks whether somebody sleeps, then frees it")) {
      const bool is_awaited = word_.load(memory_order_relaxed) == may_be_awaited;
      word_.store(is_free, memory_order_release);
      if (is_awaited) sleeper.wake_word(word_);
      return;
    }
    if (word_.exchange(is_free, memory_order_release) == may_be_awaited) sleeper.wake_word(word_);]])

plant(task/task_state.hpp
  [[const std::uint64_t next = (seen & bits::released) != 0]]
  [[if (model::fault("task_state: done is stored without a look at the flags")) {
      word_.store(bits::make(generation, bits::done, outcome), memory_order_release);
      return true;
    }
    const std::uint64_t next = (seen & bits::released) != 0]])
plant(task/task_state.hpp
  [[const bool other = (w & bits::waited) != 0 && bits::waiter(w) != who;]]
  [[const bool other = !model::fault("task_state: a second waiter replaces the first") &&
                         (w & bits::waited) != 0 && bits::waiter(w) != who;]])
plant(task/task_state.hpp
  [[const std::uint64_t next = bits::make(generation, bits::taken);]]
  [[if (model::fault("task_state: two may collect")) return bits::outcome(w);
    const std::uint64_t next = bits::make(generation, bits::taken);]])
plant(task/task_state.hpp
  [[if (announce(generation, bits::released)) return release_result::left_to_completer;]]
  [[if (announce(generation, bits::released)) return release_result::left_to_completer;
      if (model::fault("task_state: release() gives up when the task is done")) {
        return release_result::left_to_completer;
      }]])

plant(queue/mailbox.hpp
  [[    letter_ = letter;
]]
  [[    if (model::fault("mailbox: the letter is written after it is published")) {
      received_.store(lease_.load(memory_order_relaxed) >> 16, memory_order_release);
    }
    letter_ = letter;
]])
plant(queue/mailbox.hpp
  [[static std::uint32_t next_announcement(std::uint32_t word) noexcept {]]
  [[static std::uint32_t next_announcement(std::uint32_t word) noexcept {
    if (model::fault("mailbox: a lease announces nothing")) return word & 0xffff0000u;]])
plant(queue/mailbox.hpp
  [[if ((word & 0xffff) != 0) return false;]]
  [[if ((word & 0xffff) != 0 && !model::fault("mailbox: leased twice")) return false;]])

plant(sync/doorbell.hpp
  [[word_.fetch_sub(one_sleeper - one_spinner, memory_order_seq_cst);]]
  [[if (model::fault("doorbell: the flag is down before the count is right")) {
      flags_[who]->store(awake, memory_order_release);
    }
    word_.fetch_sub(one_sleeper - one_spinner, memory_order_seq_cst);]])
plant(sync/doorbell.hpp
  [[while (flags_[who]->load(memory_order_acquire) != awake) Env::pause();]]
  [[while (flags_[who]->load(memory_order_acquire) != awake) {
      if (model::fault("doorbell: a sleeper does not wait for its waker")) return;
      Env::pause();
    }]])
plant(sync/doorbell.hpp
  [[return spinners(before) == 1 && sleepers(before) != 0;]]
  [[return spinners(before) == 1 && sleepers(before) != 0 &&
           !model::fault("doorbell: the last spinner hands nothing over");]])
plant(sync/doorbell.hpp
  [[return spinners(w) == 0 && sleepers(w) != 0;]]
  [[return spinners(w) == 0 &&
           sleepers(w) > (model::fault("doorbell: one sleeper is let lie") ? 1u : 0u);]])
plant(sync/doorbell.hpp
  [[word_.fetch_add(one_sleeper - one_spinner, memory_order_seq_cst);]]
  [[word_.fetch_add(one_sleeper - one_spinner, memory_order_seq_cst);
    if (model::fault("doorbell: no heavy fence")) return;]])

plant(sync/core_list.hpp
  [[if (pollers_.fetch_sub(1, memory_order_seq_cst) != 1) return;]]
  [[if (pollers_.fetch_sub(1, memory_order_seq_cst) != 1) return;
    if (model::fault("core_list: the last poller leaves without a look")) return;]])
plant(sync/core_list.hpp
  [[if (pollers_.load(memory_order_seq_cst) == 0) wake_entry(mine, wake);]]
  [[if (model::fault("core_list: a completer looks for no poller")) return;
    if (pollers_.load(memory_order_seq_cst) == 0) wake_entry(mine, wake);]])
plant(sync/core_list.hpp
  [[if (before != 0 && before != host + 1) wake(before - 1);]]
  [[if (before != 0 && before != host + 1 &&
        !model::fault("core_list: a name is written over another")) {
      wake(before - 1);
    }]])

plant(machines/processes/keeper.hpp
  [[return serving.compare_exchange_strong(from, to, memory_order_seq_cst);]]
  [[if (model::fault("berth: turn() is a plain store")) {
      serving.store(to, memory_order_seq_cst);
      return true;
    }
    return serving.compare_exchange_strong(from, to, memory_order_seq_cst);]])
plant(machines/processes/keeper.hpp
  [[return serving.compare_exchange_strong(expected, expected | doomed, memory_order_seq_cst);]]
  [[if (model::fault("berth: doom() does not mark the berth"))
      return serving.load(memory_order_seq_cst) == expected;
    return serving.compare_exchange_strong(expected, expected | doomed, memory_order_seq_cst);]])

plant(machines/processes/lane.hpp
  [[return asleep.load(memory_order_seq_cst) != 0 && asleep.exchange(0, memory_order_seq_cst) != 0;]]
  [[if (model::fault("lane: wake() leaves the word as it is"))
      return asleep.load(memory_order_seq_cst) != 0;
    return asleep.load(memory_order_seq_cst) != 0 && asleep.exchange(0, memory_order_seq_cst) != 0;]])
plant(machines/processes/lane.hpp
  [[record_of(number).number.store(number, memory_order_seq_cst);
    return wake();]]
  [[if (model::fault("lane: post() wakes before the record is there")) {
      const bool slept = wake();
      record_of(number).number.store(number, memory_order_seq_cst);
      return slept;
    }
    record_of(number).number.store(number, memory_order_seq_cst);
    return wake();]])

plant(machines/processes/lane.hpp
  [[record_of(number).skip.store(number, memory_order_seq_cst);
    return !has_end(number - 1);]]
  [[const bool early = model::fault("lane: looks for the end before it asks");
    const bool is_open = early && !has_end(number - 1);
    record_of(number).skip.store(number, memory_order_seq_cst);
    return early ? is_open : !has_end(number - 1);]])
