// What a task may ask for beyond its arguments: tasks to come after, mutexes, priority, limits.
//
//   runtime.submit(lev::after(first, second).priority(1), saxpy_procedure, 2.0f, x, y);
#ifndef LEVERET_OPTIONS_HPP
#define LEVERET_OPTIONS_HPP

#include <leveret/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lev {

// A mutex that tasks name. A task whose mutexes are taken is set aside, first come first served; no
// worker waits for it. Paper: Sol MT's locked jobs (thesis section 3).
using mutex_id = std::uint16_t;
constexpr unsigned mutex_count_max = 256;
constexpr unsigned mutexes_per_task_max = 4;

namespace detail {
struct admission;
}

// What a task may ask for beyond its arguments. Build one with lev::after(...), lev::locks(...) or
// lev::options().
class options {
 public:
  static constexpr unsigned after_max = 32;

  // after() adds tasks that must have completed with ok before this one starts. The tickets must
  // not be consumed before the submit; empty ones are passed over, so a chain may start with one.
  // More than 32: chain through a task that does nothing. A std::vector, std::array or std::span of
  // tickets will do, too.
  template <class... Tickets>
    requires(std::is_same_v<Tickets, ticket> && ...)
  options& after(const Tickets&... tickets) noexcept {
    (add_after(tickets.id(), tickets.home()), ...);
    return *this;
  }
  options& after(const ticket* tickets, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) add_after(tickets[i].id(), tickets[i].home());
    return *this;
  }
  template <detail::has_tickets<const ticket> Tickets>
  options& after(const Tickets& tickets) noexcept {
    return after(tickets.data(), tickets.size());
  }
  // after_id() is after() for a ticket's number, for language bindings.
  options& after_id(std::uint64_t id) noexcept { return add_after(id, nullptr), *this; }
  std::uint32_t after_count() const noexcept { return after_count_; }
  template <class... Mutexes>
  options& locks(Mutexes... mutexes) noexcept {
    (add_lock(mutexes), ...);
    return *this;
  }
  options& priority(std::int32_t value) noexcept { return priority_ = value, *this; }
  options& key(std::uint32_t value) noexcept { return key_ = value, *this; }
  options& grain(std::uint32_t value) noexcept { return grain_ = value, *this; }
  // These override the fields of the same names in config.processes; 0: as they say. In a task cut
  // into pieces each piece may take that long. A submit with a time limit is refused
  // (not_supported) without worker processes, since nothing could end the task. no_time_limit:
  // never killed.
  options& task_ns_max(std::uint64_t value) noexcept { return task_ns_max_ = value, *this; }
  options& max_attempts(std::uint32_t value) noexcept { return max_attempts_ = value, *this; }

 private:
  friend struct detail::admission;
  void add_after(std::uint64_t id, const detail::runtime_state* home) noexcept {
    if (id == 0) return;
    if (home != nullptr) {
      is_mixed_ |= home_ != nullptr && home_ != home;
      home_ = home;
    }
    if (after_count_ < after_max) after_[after_count_] = id;
    ++after_count_;
  }
  void add_lock(mutex_id m) noexcept {
    if (lock_count_ < mutexes_per_task_max) locks_[lock_count_] = m;
    ++lock_count_;
  }
  bool is_foreign_to(const detail::runtime_state* runtime) const noexcept {
    return is_mixed_ || (home_ != nullptr && home_ != runtime);
  }
  std::uint64_t after_[after_max];
  const detail::runtime_state* home_ = nullptr;  // of the tickets in after_
  bool is_mixed_ = false;
  mutex_id locks_[mutexes_per_task_max];
  std::uint32_t after_count_ = 0;
  std::uint32_t lock_count_ = 0;
  std::int32_t priority_ = 0;
  std::uint32_t key_ = 0;
  std::uint32_t grain_ = 0;
  std::uint32_t max_attempts_ = 0;
  std::uint64_t task_ns_max_ = 0;
};

template <class... Tickets>
options after(const Tickets&... tickets) noexcept {
  options o;
  o.after(tickets...);
  return o;
}
template <class... Mutexes>
options locks(Mutexes... mutexes) noexcept {
  options o;
  o.locks(mutexes...);
  return o;
}

}  // namespace lev

#endif
