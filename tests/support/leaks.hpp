// expect_nothing_leaked(): after close(), and with all tickets dropped, a runtime holds nothing: no
// slot, no byte of a local store, no queued task, no edge, no mutex, no exception.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/runtime_state.hpp"

namespace lev::test {

inline void expect_idle(detail::runtime_state& c, participant& p) {
  EXPECT_EQ(p.store_map.blocks(), 0u) << "blocks of a local store in use";
  EXPECT_TRUE(p.inbox.looks_empty());
  EXPECT_EQ(p.ahead_count, 0u);
  EXPECT_EQ(p.draining, nullptr);
  EXPECT_EQ(p.frames_used, 0u);
  EXPECT_EQ(p.aside.ended_pieces, 0u) << "pieces not counted at their join";
  EXPECT_EQ(p.nest, 0u);
  EXPECT_EQ(p.running, nullptr);
  EXPECT_EQ(p.failing, no_slot);
  EXPECT_EQ(p.wants.load(memory_order_relaxed), 0u);
  if (p.index >= c.workers) return;
  const bool is_free = p.mailbox.try_lease(1);
  EXPECT_TRUE(is_free) << "somebody still holds the mailbox";
  if (is_free) p.mailbox.retract();
}

inline void expect_slots_free(detail::runtime_state& c) {
  std::uint32_t cached = 0;
  for (std::uint32_t i = 0; i < c.participant_count; ++i) {
    EXPECT_LE(c.participants[i].free_slots.count(), c.participants[i].free_slots.limit);
    cached += c.participants[i].free_slots.count();
  }
  EXPECT_EQ(c.task_slots.free_count() + cached, c.task_slots.listed_count()) << "task slots leaked";
  std::uint32_t not_free = 0;
  std::uint32_t exceptions = 0;
  for (std::uint32_t i = 0; i < c.task_slots.count(); ++i) {
    not_free += state_bits::phase(c.task_slots.at(i).state.word()) != state_bits::free;
    exceptions += c.task_slots.extra(i).exception != nullptr;
  }
  EXPECT_EQ(not_free, 0u) << "slots whose state is not free";
  EXPECT_EQ(exceptions, 0u) << "exceptions left in slots";
}

inline void expect_mutexes_free(detail::runtime_state& c) {
  slot_extra& extra = c.task_slots.extra(0);
  for (unsigned id = 0; id < mutex_count_max && c.mutexes.exists(static_cast<mutex_id>(id)); ++id) {
    extra.locks[0] = static_cast<mutex_id>(id);
    extra.lock_count = 1;
    extra.locks_held = 0;
    EXPECT_TRUE(c.mutexes.acquire(c.task_slots, 0)) << "mutex " << id << " is still taken";
    EXPECT_EQ(c.mutexes.release(c.task_slots, static_cast<mutex_id>(id)), no_slot);
  }
}

inline void expect_nothing_leaked(runtime& r) {
  detail::runtime_state& c = *r.state();
  const counters n = r.count();
  EXPECT_EQ(n.submitted, n.completed);
  EXPECT_TRUE(c.sched.ready().looks_empty());
  EXPECT_TRUE(c.sched.looks_empty());
  EXPECT_TRUE(c.backlog.looks_empty());
  for (std::uint32_t i = 0; i < c.participant_count; ++i) expect_idle(c, c.participants[i]);
  expect_slots_free(c);
  expect_mutexes_free(c);
  std::uint32_t kept_edges = 0;
  for (std::uint32_t i = 0; i < c.participant_count; ++i)
    kept_edges += c.participants[i].free_edges.count();
  EXPECT_EQ(c.edges.free_count() + kept_edges, c.edges.count()) << "dependency edges leaked";
}

}  // namespace lev::test
