// asides: what a participant has to see to besides its next task.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lev {

// All of it is 0 for most, which is seen by one comparison.
struct asides {
  // Pieces that were completed here, and are not counted at their join yet (gcell's batched
  // notification, GC-10).
  std::uint32_t ended_pieces = 0;
  std::uint8_t is_mailbox_open : 1 = false;  // as the owner has it
  std::uint8_t was_last_poller : 1 = false;  // while a participant sleeps: see wake_another()
  std::uint8_t unused_below : 6 = 0;         // named, as an unnamed bit has any value
  std::uint8_t other_contexts = 0;           // under way, on stacks other than the current one
  std::uint8_t pieces_in_a_row = 0;          // run, and no look at the shared queues since
  std::uint8_t has_failing : 1 = false;      // tasks to be failed without running
  std::uint8_t has_own_mode : 1 = false;     // its floating-point mode is not the usual one
  std::uint8_t unused_above : 6 = 0;
};
static_assert(sizeof(asides) == sizeof(std::uint64_t) &&
              std::has_unique_object_representations_v<asides> &&
              std::endian::native == std::endian::little);

inline bool is_any(const asides& a) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, &a, sizeof word);
  return word != 0;
}
// All but the ended pieces, from the lowest byte on as they are declared.
inline std::uint32_t flags_of(const asides& a) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&a) + sizeof a.ended_pieces, sizeof word);
  return word;
}
// Whether another look, or another's turn, comes before the next task of the inbox.
inline bool is_turn_due(const asides& a) noexcept {
  constexpr std::uint32_t all_but_failing_and_mode = 0x00ffffff;
  return (flags_of(a) & all_but_failing_and_mode) != 0;
}
// Whether anything concerns a task that is run on top of another one.
inline bool is_any_due(const asides& a) noexcept {
  constexpr std::uint32_t all_but_contexts_and_pieces = 0xff0000ff;
  return a.ended_pieces != 0 || (flags_of(a) & all_but_contexts_and_pieces) != 0;
}

}  // namespace lev
