// Exploring the schedules of scenarios, and planting faults that must be found.
//
//   1. Each scenario is run under many random schedules and, where that ends, under all schedules
//      with at most two preemptions. Every one must succeed.
//   2. Each order stronger than relaxed that was met in the headers named is weakened by one step,
//      and seq_cst also to relaxed; some scenario must then fail. An order that is not needed must
//      be named in `spare`, with the reason.
//   3. Each mistake of mutants/ is planted; some scenario must then fail.
//
// Random schedules are numbered; the number seeds them, so a failure is repeated by running the
// program again. With LEVERET_MODEL_FACTOR=100 in the environment step 1 runs a hundred times as
// many.
#pragma once

#include "relacy_env.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace model {

struct budget {
  unsigned random = 30'000;          // schedules of each scenario
  unsigned bounded = 100'000;        // schedules with at most `preemptions`, where they are tried
  unsigned random_planted = 15'000;  // schedules of each scenario to find a fault in
  unsigned bounded_planted = 10'000;
  unsigned random_directed = 400'000;  // the same, where the scenario is named
  unsigned spare_share = 8;  // an order that is said to be spare gets that part of the schedules
  unsigned preemptions = 2;
  unsigned steps_max = 4'000;  // of one schedule: more is a livelock
};

struct verdict {
  rl::test_result_e result = rl::test_result_success;
  std::uint64_t schedules = 0;
  bool is_complete = false;  // all schedules with that many preemptions
  std::string history;
  bool failed() const {
    return result != rl::test_result_success && result != rl::test_result_until_condition_hit;
  }
};

inline std::uint64_t schedules_left = 0;

// A scenario as the checker sees it, so that the checker is compiled once for each number of
// threads (checker.cpp): once for each scenario, it would take most of the build.
class any_scenario {
 public:
  any_scenario() = default;
  any_scenario(any_scenario&&) = delete;
  virtual ~any_scenario() = default;
  virtual void before() {}
  virtual void thread(unsigned index) = 0;
  virtual void after() {}
};

// The base of a scenario, which has `void thread(unsigned index)` and perhaps before(), after().
template <class Derived, int Threads>
struct scenario : any_scenario {
  static_assert(Threads >= 2 && Threads <= 5, "checker.cpp is compiled for as many");
  static constexpr int thread_count = Threads;
  static constexpr bool is_asymmetric = false;
  static constexpr bool is_bounded = true;  // false: random schedules only, the others are too many
  scenario() {
    asymmetric_fences = Derived::is_asymmetric;
    if (schedules_left-- == 0) rl::ctx().rl_until("enough", {});
  }
};

struct scenario_type {
  const char* name;
  int thread_count;
  bool is_bounded;
  any_scenario* (*make)();  // for one schedule, in the place of the last one
};

template <class Scenario>
any_scenario* make_scenario() {
  alignas(Scenario) static unsigned char place[sizeof(Scenario)];
  return new (place) Scenario;
}

enum class search : std::uint8_t { random, bounded };

// Tries that many schedules, fewer where one fails or there are no more. `tells` asks for the
// history of one that fails.
verdict run(const scenario_type& type, search how, const budget& b, std::uint64_t schedules,
            bool tells);

// The checks of one program, all schedules together.
class explorer {
 public:
  // `headers` are the endings of the files whose orders are weakened.
  explorer(const char* protocol, const budget& b, std::initializer_list<const char*> headers);

  template <class Scenario>
  explorer& check(const char* name) {
    return check({name, Scenario::thread_count, Scenario::is_bounded, make_scenario<Scenario>});
  }

  // An order that no scenario needs, as "function#n load|store|change order -> order", and why it
  // is there all the same.
  explorer& spare(const char* what, const char* why);

  // An order that is weakened by another explorer, and not here.
  explorer& elsewhere(const char* what);

  // Plants a wrong step and looks for it, in one scenario only if that is named.
  explorer& plant(fault_name f, const char* name = nullptr);

  // Weakens the orders met so far and prints the result; the program's exit status.
  int end();

 private:
  struct spare_order {
    const char* what;
    const char* why;
    bool is_used;
  };

  explorer& check(const scenario_type& type);
  explorer& fail(const std::string& what);
  void tell_of(const scenario_type& type, search how, const verdict& v);
  std::string find(const budget& b, const char* name = nullptr);
  bool concerns(unsigned i) const;
  std::string text_of(const site& s) const;
  void weaken_all();
  void weaken(const site& s, std::memory_order to);

  const char* protocol_;
  budget budget_;
  std::vector<std::string> headers_;
  std::vector<spare_order> spares_;
  std::vector<spare_order> elsewhere_;
  std::vector<scenario_type> scenarios_;
  std::uint64_t schedules_ = 0;
  unsigned weakenings_ = 0;
  unsigned found_ = 0;
  unsigned steps_planted_ = 0;
  unsigned failures_ = 0;
};

}  // namespace model
