// The interpreter: runs a program on runtimes, and writes down what it saw for the oracle.
#pragma once

#include "exercise/world.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lev::exercise {

struct limits {
  std::int64_t spin_limit_ns = 3'000'000'000;  // how long a task may look for a flag
};

// Runs the program and asks the oracle. Empty: all is well; else what is wrong, a line each.
std::string run_program(const program& p, const limits& l);

// Where the program is that runs in this process, for one that hangs. Called by a signal: what it
// reads may change meanwhile.
std::string state_now();

// Runs the block of a task's body, inside the task.
void run_body(world& w, std::uint32_t task);

// Where a block runs.
struct frame {
  world& w;
  std::uint32_t task = nobody;  // inside this task
  std::uint32_t host = nobody;  // or on this host thread
  std::uint32_t depth = 0;      // how many blocks may wait below it
  bool is_callback = false;  // the tail of whatever task completes; nothing is known of the thread
};
// Tickets that are released when their thread ends. To be touched before the thread calls in, so
// that they are destroyed after what the runtime keeps for the thread.
std::vector<ticket>& kept_tickets() noexcept;

void run_block(const frame& f, std::uint32_t block);
void run_step(const frame& f, const step& s);

// Steps that hand in tasks.
void do_submit(const frame& f, const step& s);
void do_await(const frame& f, const step& s);
void do_loop(const frame& f, const step& s);
void do_strands(const frame& f, const step& s);
// Its options, which are written down.
options options_of(const frame& f, std::uint32_t task, const step& s);
// Notes a task that was not submitted, and whether for want of tickets.
void refused(const frame& f, std::uint32_t task, status code, bool is_full);
// Steps that wait.
void do_wait(const frame& f, const step& s);
void do_await_done(const frame& f, const step& s);
void do_wait_any(const frame& f, const step& s);
void do_wait_all(const frame& f, const step& s);

// Steps that are about other runtimes and processes.
void open_twin(world& w, const char* pool);
void do_visit(const frame& f, const step& s);
void do_cross(const frame& f, const step& s);
void do_split(const frame& f, const step& s);
// Steps that change nothing.
void do_look(const frame& f);
void do_misuse(const frame& f, const step& s);
void do_shut(const frame& f, const step& s);

// A step throws it to end its block.
struct tossed {};

// Writes down what bodies on confined workers must have done (confined.cpp).
void settle(world& w, std::uint32_t task, status code);
// Writes down what became of a task, and takes it out of the count of those that hold a slot.
void collected(world& w, std::uint32_t task, const outcome& o);
void drop(world& w, std::uint32_t task);
std::uint32_t slots_of(const task_spec& t) noexcept;
// Takes that many slots into the count.
void count_live(world& w, std::uint32_t slots);
// Whether a submit may find all tickets, or all edges between tasks, in use.
bool may_be_full(const world& w) noexcept;

// The oracle judges what was seen, once the runtime is closed, and when it is gone (oracle.cpp).
void check_closed(world& w);
void check_world(world& w);
// An outcome as C tells it: an exception is its text.
outcome from_c(const lev_outcome& out);
// Whether as many tasks may wait as the workers have contexts.
bool may_all_wait(const program& p) noexcept;
// Whether a wait may end with this code, as far as that can be said at once.
bool may_refuse_wait(const frame& f, status code, std::int64_t timeout_ns) noexcept;
std::string task_name(std::uint32_t task);

}  // namespace lev::exercise
