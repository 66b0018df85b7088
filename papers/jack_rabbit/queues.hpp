// What PPE and SPEs of Jack Rabbit share in memory: three buffers, their locks, a counter, gates.
#pragma once

#include <cstddef>
#include <deque>

#include "jack_rabbit/pool.hpp"

namespace leveret_papers {

// Figure 4.2. Its pointers have four bytes: an SPE, whose pointers have four, knows the same class.
constexpr std::uint32_t buffer_slots = 1024;
struct rabbit_buffer {
  std::uint32_t slot[buffer_slots];
  std::uint32_t head;
  std::uint32_t tail;
  std::uint32_t length;
  std::uint32_t rest[29];

  void push_back(std::uint32_t task) {
    slot[tail] = task;
    tail = (tail + 1) % buffer_slots;
    ++length;
  }
  std::uint32_t pop_front() {
    const std::uint32_t task = slot[head];
    head = (head + 1) % buffer_slots;
    --length;
    return task;
  }
};
static_assert(sizeof(rabbit_buffer) == 4224);

// Figure 4.1: table, arguments, type, two shorts, 16 addresses and sizes, to a multiple of 16.
constexpr std::uint32_t object_bytes = 192;
constexpr std::uint32_t object_count = 8192;
constexpr std::uint32_t argument_bytes = 128;

using line = cell::array<std::uint32_t>;

struct rabbit_queues {
  cell::array<rabbit_buffer> prefilter;
  cell::array<rabbit_buffer> rob;
  cell::array<rabbit_buffer> ready;
  line prefilter_lock;  // 1: free
  line rob_lock;
  line fetch_lock;
  line jobs;        // [0]: not completed yet; [1]: the caller has ended
  line gate;        // [0]: even while it is open, `over` at the end; [1]: workers that entered
  line completion;  // [0]: 1 while it is open; [1]: who entered
  line gate_lock;
  line completion_lock;
  cell::array<char> objects;
  cell::array<char> arguments;
  cell::array<char> program;
};

constexpr std::uint32_t over = ~0u;

struct rabbit_run {
  world& w;
  const rabbit_pool& what;
  cell::machine& m;
  rabbit_queues q{};
  std::vector<rabbit_batch> batches{};
  // By number, which buffers hold. Places of a deque stay while others are added.
  std::deque<rabbit_task> tasks{};
  std::vector<std::int64_t> before{};  // sums of `pieces`
  rabbit_outcome out{};
};

void prepare(rabbit_run& r);
void work(cell::spe& s, rabbit_run& r);
void post_all(cell::ppe& p, rabbit_run& r);
void schedule(cell::ppe& p, rabbit_run& r);

}  // namespace leveret_papers
