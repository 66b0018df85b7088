// futex: the kernel's part of sleeping on a word, and the clock that its deadlines are on.
#pragma once

#include "sync/env.hpp"

namespace lev {

constexpr std::uint64_t no_deadline = ~std::uint64_t{0};

// The sleepers on a word: threads of this process only, which is cheaper, or of others that share
// it.
enum class sleepers { here, anywhere };

// monotonic_ns() is the time since the system started; the same in all its processes.
std::uint64_t monotonic_ns() noexcept;

// sleep_while() returns when `word` is no longer `expected`, with what its waker wrote before, or
// when monotonic_ns() is past `deadline_ns`; in between it sleeps.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns, sleepers who) noexcept;

// wake_sleeper() wakes one sleeper on the word, if there is one.
void wake_sleeper(const std::atomic<std::uint32_t>& word, sleepers who) noexcept;

}  // namespace lev
