// ordered::state: the tasks of a scope (see ordered.cpp), and who may touch them.
//
// One call of the scope is under way at most (in_call): another thread's, or one of a callback
// within it, is refused. `busy` is held in a call, except while it waits, and by a submitter that
// finds no ticket and collects the complete tasks meanwhile (scope_list.hpp). `members` grows in
// calls only, so a place stays what it is.
#pragma once

#include <leveret/ordered.hpp>

#include "flow/memory_uses.hpp"
#include "runtime/runtime_state.hpp"
#include "runtime/scope_list.hpp"

#include <exception>
#include <vector>

namespace lev {

struct ordered::state final : detail::scope {
  using runtime_state = detail::runtime_state;

  explicit state(runtime_state& of) : c(of) {
    if (c.why_absent == nullptr) c.scopes.add(*this);  // a fork() may have left the list locked
  }

  static constexpr std::uint32_t nobody = ~std::uint32_t{0};  // a place
  struct member {
    std::uint64_t ticket = 0;  // 0: it was collected
    std::uint64_t number = 0;  // of the submit
    std::uint64_t seen = 0;    // the latest search that has found it
    bool has_failed = false;
    bool is_used = false;
    bool is_join = false;  // an empty task, which stands for others
  };

  // Failed tasks whose uses are kept; with more, no task of the scope runs any more.
  static constexpr std::size_t failed_max = 4096;
  static constexpr std::size_t collected_at_once = 64;

  runtime_state& c;
  memory_uses uses;
  std::vector<member> members;
  std::vector<std::uint32_t> unused;  // places in `members`
  std::vector<std::uint32_t> before;  // tasks that the next task follows
  std::uint64_t submitted = 0;
  std::uint64_t searches = 0;
  std::size_t under_way = 0;  // members with a ticket
  std::size_t failed = 0;     // members that have failed
  std::size_t collect_at = collected_at_once;
  outcome failure;
  std::vector<std::exception_ptr> unwanted;  // of failures after the first
  std::uint64_t failure_number = 0;
  std::uint32_t failures = 0;
  bool is_stopped = false;  // too many have failed
  bool is_watched = false;  // whether it has called watch_exit()

  std::uint64_t submit(const descriptor& task, const options* o);
  // `is_in_call`, which may be null, tells whether another call is the reason of a refusal.
  outcome wait(std::int64_t timeout_ns, bool* is_in_call = nullptr) noexcept;
  // False: exit() has called it where it cannot wait for the tasks, and the state is left as it is.
  bool finish() noexcept;
  std::size_t give_back() noexcept override;

 private:
  // A call of the scope, for as long as it lives; false: another one is under way.
  class call {
   public:
    // Pairs with the end of the last call.
    explicit call(state& scope) noexcept
        : scope_(scope), is_only_(!scope.in_call.exchange(true, memory_order_acquire)) {
      if (is_only_) scope_.busy.lock();
    }
    // An exception's destructor is the program's, and may use the scope or its runtime. It runs
    // when no lock is held and no call is under way.
    ~call() {
      if (!is_only_) return;
      std::vector<std::exception_ptr> dropped;
      if (!scope_.unwanted.empty()) [[unlikely]]
        dropped = scope_.take_unwanted();
      scope_.busy.unlock();
      // Pairs with the next call's exchange: all that this one did is visible to it.
      scope_.in_call.store(false, memory_order_release);
    }
    call(call&&) = delete;
    explicit operator bool() const noexcept { return is_only_; }

   private:
    state& scope_;
    bool is_only_;
  };

  // Written by calls of any thread, read by them: publishes to the next one what the last one did.
  atomic<bool> in_call{false};
  spin_lock<> busy;

  status status_of(const member& m) const noexcept {
    if (m.has_failed) return status::dependency_failed;
    if (m.ticket == 0) return status::ok;
    return c.task_slots.at(detail::ticket_task(m.ticket))
        .state.peek(detail::ticket_generation(m.ticket));
  }
  bool is_in_own_task() const noexcept;
  void note_failure(std::uint64_t number, outcome& how) noexcept;
  std::vector<std::exception_ptr> take_unwanted() noexcept;
  void count_failed(member& m) noexcept;
  bool collect(member& m, outcome& how) noexcept;
  enum class who { owner, another };
  std::size_t collect_complete(who caller = who::owner) noexcept;
  outcome wait_for(member& m, std::int64_t timeout_ns) noexcept;
  void wait_surely_for(member& m) noexcept;
  bool find_before(const descriptor& task);
  void wait_for_oldest(std::vector<std::uint32_t>& of, std::size_t count);
  void wait_for_some();
  void make_room();
  std::uint32_t join(std::size_t first, std::size_t count);
  bool join_before(std::size_t count_max);
  std::uint64_t submit_after(const descriptor& task, const options* o, bool is_plain);
  std::uint32_t take_place(std::uint64_t id) noexcept;
  void skip() noexcept;
  std::uint32_t next_awaited() const noexcept;
  outcome take_result() noexcept;
};

}  // namespace lev
