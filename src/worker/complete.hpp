// complete: the outcome of a task reaches everybody who waits for it.
#ifndef LEVERET_WORKER_COMPLETE_HPP
#define LEVERET_WORKER_COMPLETE_HPP

#include "worker/enqueue.hpp"

namespace lev {

// complete() ends a task: outcome to ticket, join, dependants, callback and mutexes. `seen` is its
// state word, or what it is believed to be. The slot may belong to another task when this returns.
void complete(engine& e, participant& self, std::uint32_t task, std::uint64_t seen,
              std::uint8_t flags, status result, int task_code) noexcept;

// flush_notices() counts pieces completed here at their join. Before anything that may wait or take
// long.
void flush_notices(engine& e, participant& self) noexcept;

// end_bulk() lets go of a join on behalf of the submitter, who held it open while it added pieces.
void end_bulk(engine& e, participant& self, std::uint32_t join) noexcept;

// start() queues a task whose predecessors are complete, unless a mutex keeps it. Also fails it if
// a predecessor failed.
void start(engine& e, participant& self, std::uint32_t task) noexcept;

// serve_dependants() tells the tasks in a list that a predecessor ended.
void serve_dependants(engine& e, participant& self, std::uint32_t list, status outcome) noexcept;

// fail_unclaimed() keeps a failure that no ticket will report, for wait_for_completion().
void fail_unclaimed(engine& e, std::uint32_t task, status result, int task_code,
                    std::uint32_t failures) noexcept;

// is_quiescent(): every task that was submitted is complete.
bool is_quiescent(engine& e) noexcept;

}  // namespace lev

#endif
