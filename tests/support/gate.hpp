// gate: tasks that keep workers busy until the test lets them go, so that other tasks must wait.
//
// On threads a body waits for the gate. On virtual time nobody else would run meanwhile, so there a
// task of the gate takes long instead (gate_ns), and the host must not help: wait_policy::park.
#pragma once

#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "support/procedures.hpp"

namespace lev::test {

constexpr std::uint64_t gate_ns = 10'000'000;

struct gate_state {
  std::atomic<int> started{0};
  std::atomic<bool> is_open{false};
  bool blocks = true;
};

inline const auto gate_procedure = define(
    "test.gate",
    [](ref<gate_state> g) {
      g.to->started.fetch_add(1);
      while (g.to->blocks && !g.to->is_open) std::this_thread::yield();
    },
    nullptr, [](const descriptor&) { return gate_ns; });

class gate {
 public:
  // Occupies `count` workers; all of them are at it when this returns. With asynchronous copies a
  // worker takes some tasks ahead, so there must be more of them.
  gate(runtime& r, unsigned count) {
    const bool is_sim = std::strcmp(r.machine(), "sim") == 0;
    const unsigned tasks = is_sim ? 4 * count : count;
    state_->blocks = !is_sim;
    for (unsigned i = 0; i < tasks; ++i) tasks_.push_back(r.submit(gate_procedure, ref{state_}));
    if (is_sim) {
      EXPECT_EQ(tasks_[0].wait_outcome(gate_ns / 100).code, status::timed_out);
      return;
    }
    while (state_->started < static_cast<int>(count)) {
      std::this_thread::yield();
    }
  }
  ~gate() {
    open();
    const status code = wait_all(tasks_.data(), tasks_.size()).code;
    EXPECT_TRUE(code == status::ok || code == status::cancelled) << status_name(code);
  }
  gate(gate&&) = delete;

  void open() { state_->is_open.store(true); }

 private:
  // Where tasks in worker processes see it.
  shared_array<char> place_{sizeof(gate_state)};
  gate_state* state_ = new (place_.data()) gate_state;
  std::vector<ticket> tasks_;
};

}  // namespace lev::test
