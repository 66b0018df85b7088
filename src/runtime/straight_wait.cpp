// ticket::wait() in one straight line where the task has succeeded, or is a child that can be run
// here. All else is left to wait_long().
#include "runtime/children.hpp"
#include "runtime/wait.hpp"

namespace lev::detail {

namespace {

// Each is the last call of wait_or_throw(), so that this saves no registers.
[[gnu::noinline]] void wait_no_longer(runtime_state& c, participant& self, std::uint64_t& id,
                                      wait_policy how) {
  if (!collect_success(c, self, id)) return wait_long(&c, id, how);
  id = 0;
}
[[gnu::noinline]] void wait_for_child(runtime_state& c, participant& self, std::uint64_t& id,
                                      wait_policy how) {
  if (!run_child(c, self, child{id})) return wait_no_longer(c, self, id, how);
  id = 0;
}

}  // namespace

[[gnu::noinline]] void wait_or_throw(runtime_state* c, std::uint64_t& id, wait_policy how) {
  if (c == nullptr || !is_noted(*c) || how > wait_policy::of_runtime) [[unlikely]]
    return wait_long(c, id, how);
  participant& self = noted_here(*c);
  return may_run_children(*c, self) ? wait_for_child(*c, self, id, how)
                                    : wait_no_longer(*c, self, id, how);
}

}  // namespace lev::detail
