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

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

namespace model {

// Random choice of the next thread. Some schedules switch at every step, others rarely, so that one
// thread gets far while another stands between two steps; in some, one thread is slow throughout.
template <rl::thread_id_t Count>
class uneven_scheduler
    : public rl::scheduler<uneven_scheduler<Count>, rl::scheduler_thread_info, Count> {
 public:
  using base = rl::scheduler<uneven_scheduler<Count>, rl::scheduler_thread_info, Count>;
  using shared_context_t = typename base::shared_context_t;
  using thread_info_t = typename base::thread_info_t;
  struct task_t {};

  uneven_scheduler(rl::test_params& p, shared_context_t& c, rl::thread_id_t dynamic)
      : base(p, c, dynamic) {}

  rl::thread_id_t iteration_begin_impl() {
    static constexpr unsigned lengths[] = {1, 3, 8, 24, 80};
    random_.seed(this->iter_);
    length_ = lengths[random_.rand() % 5];
    slow_ = random_.rand() % 2 == 0 ? static_cast<int>(random_.rand() % Count) : -1;
    return any();
  }
  bool iteration_end_impl() { return this->iter_ == this->params_.iteration_count; }

  rl::thread_id_t schedule_impl(rl::unpark_reason& reason, unsigned yield) {
    const int running = this->running_threads_count;
    if (this->timed_thread_count_ != 0) {
      const int timed = this->timed_thread_count_;
      const int i = random_.rand() % (running != 0 ? timed * 6 : timed);
      if (i < timed) {
        const rl::thread_id_t thread = this->timed_threads_[i]->index_;
        this->unpark_thread(thread);
        reason = rl::unpark_reason_timeout;
        return thread;
      }
    }
    reason = rl::unpark_reason_normal;
    const bool stays = this->thread_->state_ == rl::thread_state_running && yield == 0;
    return stays && random_.rand() % length_ != 0 ? this->thread_->index_ : any();
  }
  unsigned rand_impl(unsigned limit, rl::sched_type) { return random_.rand() % limit; }
  rl::iteration_t iteration_count_impl() { return this->params_.iteration_count; }
  void get_state_impl(std::ostream&) {}
  void set_state_impl(std::istream&) {}
  void on_thread_block(rl::thread_id_t, bool) {}
  void purge_blocked_threads() {}

 private:
  rl::thread_id_t any() {
    const unsigned count = static_cast<unsigned>(this->running_threads_count);
    const rl::thread_id_t thread = this->running_threads[random_.rand() % count];
    if (thread != slow_ || random_.rand() % 8 == 0) return thread;
    return this->running_threads[random_.rand() % count];
  }
  rl::random_generator random_;
  unsigned length_ = 1;
  int slow_ = -1;
};

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

// The base of a scenario, which has `void thread(unsigned index)` and perhaps before(), after().
template <class Derived, int Threads>
struct scenario : rl::test_suite<Derived, Threads> {
  static constexpr bool is_asymmetric = false;
  static constexpr bool is_bounded = true;  // false: random schedules only, the others are too many
  scenario() {
    asymmetric_fences = Derived::is_asymmetric;
    if (schedules_left-- == 0) rl::ctx().rl_until("enough", {});
  }
};

template <class Scenario, class Scheduler>
verdict run(rl::scheduler_type_e type, const budget& b, std::uint64_t schedules, bool tells) {
  verdict v;
  rl::ostringstream out;
  std::ofstream nowhere;
  rl::test_params p;
  p.iteration_count = schedules;
  p.output_stream = &out;
  p.progress_stream = &nowhere;
  p.search_type = type;
  p.context_bound = b.preemptions;
  p.execution_depth_limit = b.steps_max;
  rl::ostringstream state;
  schedules_left = schedules;
  v.result = rl::run_test<Scenario, Scheduler>(p, state, false);
  v.schedules = p.stop_iteration;
  v.is_complete = v.result == rl::test_result_success;
  if (!tells || !v.failed()) return v;
  p.initial_state = state.str();
  p.collect_history = true;
  schedules_left = schedules;
  rl::run_test<Scenario, Scheduler>(p, state, true);
  v.history = out.str().c_str();
  return v;
}

template <class Scenario>
verdict run_random(const budget& b, std::uint64_t schedules, bool tells) {
  using scheduler = uneven_scheduler<Scenario::params::thread_count>;
  return run<Scenario, scheduler>(rl::random_scheduler_type, b, schedules, tells);
}
template <class Scenario>
verdict run_bounded(const budget& b, std::uint64_t schedules, bool tells) {
  using scheduler = rl::context_bound_scheduler<Scenario::params::thread_count>;
  return run<Scenario, scheduler>(rl::fair_context_bound_scheduler_type, b, schedules, tells);
}

// The checks of one program, all schedules together.
class explorer {
 public:
  // `headers` are the endings of the files whose orders are weakened.
  explorer(const char* protocol, const budget& b, std::initializer_list<const char*> headers)
      : protocol_(protocol), budget_(b), headers_(headers.begin(), headers.end()) {
    if (const char* factor = std::getenv("LEVERET_MODEL_FACTOR")) {
      budget_.random *= static_cast<unsigned>(std::atoi(factor));
      budget_.spare_share = 1;
    }
  }

  template <class Scenario>
  explorer& check(const char* name) {
    check_one(name, "random", run_random<Scenario>(budget_, budget_.random, true));
    finders_.push_back({name, [](const budget& b) {
                          verdict v = run_random<Scenario>(b, b.random_planted, false);
                          if constexpr (Scenario::is_bounded) {
                            if (!v.failed()) v = run_bounded<Scenario>(b, b.bounded_planted, false);
                          }
                          return v;
                        }});
    if constexpr (Scenario::is_bounded) {
      if (failures_ == 0)
        check_one(name, "bounded", run_bounded<Scenario>(budget_, budget_.bounded, true));
    }
    return *this;
  }

  // An order that no scenario needs, as "function#n load|store|change order -> order", and why it
  // is there all the same.
  explorer& spare(const char* what, const char* why) {
    spares_.push_back({what, why, false});
    return *this;
  }

  // An order that is weakened by another explorer, and not here.
  explorer& elsewhere(const char* what) {
    elsewhere_.push_back({what, nullptr, false});
    return *this;
  }

  // Plants a wrong step and looks for it, in one scenario only if that is named.
  explorer& plant(fault_name f, const char* scenario = nullptr) {
    planted_id = f.id;
    const std::string found = failures_ == 0 ? find(scenario) : std::string();
    planted_id = 0;
    ++steps_planted_;
    if (failures_ != 0) return *this;  // where the code itself fails, faults say nothing
    if (found.empty()) return fail(std::string("not found: ") + f.name);
    std::printf("  found   %-75s %s\n", f.name, found.c_str());
    std::fflush(stdout);
    return *this;
  }

  // Weakens the orders met so far and prints the result; the program's exit status.
  int end() {
    if (failures_ == 0) weaken_all();
    for (const spare_order& s : spares_) {
      if (!s.is_used && failures_ == 0) fail(std::string("spare, but found or not met: ") + s.what);
    }
    for (const spare_order& s : elsewhere_) {
      if (!s.is_used && failures_ == 0) fail(std::string("elsewhere, but not met: ") + s.what);
    }
    std::printf("%s: %llu schedules; %u orders weakened, %u found, %u spare; %u wrong steps; %s\n",
                protocol_, static_cast<unsigned long long>(schedules_), weakenings_, found_,
                weakenings_ - found_, steps_planted_, failures_ == 0 ? "ok" : "FAILED");
    return failures_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  struct finder {
    const char* scenario;
    verdict (*find)(const budget&);
  };
  struct spare_order {
    const char* what;
    const char* why;
    bool is_used;
  };

  explorer& fail(const std::string& what) {
    ++failures_;
    std::printf("  FAILED  %s\n", what.c_str());
    return *this;
  }

  void check_one(const char* name, const char* how, const verdict& v) {
    schedules_ += v.schedules;
    const char* said = v.failed() ? rl::test_result_str(v.result) : "ok";
    std::printf("  %-8s %-24s %9llu schedules%s: %s\n", how, name,
                static_cast<unsigned long long>(v.schedules),
                v.is_complete && *how == 'b' ? " (all)" : "", said);
    std::fflush(stdout);
    if (!v.failed()) return;
    fail(name);
    tell(v.history);
  }

  // The last steps of a schedule, without what precedes the threads and without template arguments.
  static void tell(const std::string& history) {
    constexpr std::size_t lines_max = 250;
    std::vector<std::string> lines;
    std::istringstream in(history.substr(0, history.find("\nthread 0:")));
    for (std::string line; std::getline(in, line);) {
      const std::size_t from = line.find(" [with ");
      if (from != std::string::npos) line.erase(from, line.rfind(']') + 1 - from);
      lines.push_back(line);
      if (line.find("[BEFORE END]") != std::string::npos) lines.clear();
    }
    for (std::size_t i = lines.size() > lines_max ? lines.size() - lines_max : 0; i < lines.size();
         ++i) {
      std::printf("    %s\n", lines[i].c_str());
    }
  }

  // Looks for a schedule that fails; where and how, or nothing.
  std::string find(const char* scenario = nullptr) {
    budget b = budget_;
    if (scenario != nullptr) b.random_planted = b.random_directed;
    return find(b, scenario);
  }
  std::string find(const budget& b, const char* scenario = nullptr) {
    for (const finder& f : finders_) {
      if (scenario != nullptr && std::strcmp(scenario, f.scenario) != 0) continue;
      const verdict v = f.find(b);
      schedules_ += v.schedules;
      if (!v.failed()) continue;
      return std::string(rl::test_result_str(v.result)) + " (" + f.scenario + ", schedule " +
             std::to_string(v.schedules) + ")";
    }
    return {};
  }

  bool concerns(unsigned i) const {
    if (!has_site[i] || !sites[i].is_genuine) return false;
    const std::string file = sites[i].at.file_name();
    for (const std::string& header : headers_) {
      if (file.ends_with(header)) return true;
    }
    return false;
  }

  static const char* order_name(std::memory_order o) { return rl::format(relacy_order(o)); }

  // The deed of a site, as spare() names it; "#n" where the function has several alike.
  std::string text_of(const site& s) const {
    static constexpr const char* kinds[] = {"load", "store", "change"};
    const std::string name = function_name(s.at);
    unsigned before = 0;
    unsigned alike = 0;
    for (unsigned i = 0; i < sites_max; ++i) {
      const site& other = sites[i];
      if (!concerns(i) || other.kind != s.kind || other.order != s.order ||
          function_name(other.at) != name) {
        continue;
      }
      ++alike;
      before += other.at.line() < s.at.line() ||
                (other.at.line() == s.at.line() && other.at.column() < s.at.column());
    }
    return name + (alike > 1 ? "#" + std::to_string(before + 1) : "") + " " +
           kinds[static_cast<int>(s.kind)] + " " + order_name(s.order);
  }

  static std::string function_name(const where& w) {
    std::string name = w.function_name();
    name.resize(name.find('('));
    const std::size_t start = name.rfind(':');
    return start == std::string::npos ? name : name.substr(start + 1);
  }

  void weaken_all() {
    using enum std::memory_order;
    for (unsigned i = 0; i < sites_max; ++i) {
      if (!concerns(i)) continue;
      const site& s = sites[i];
      if (s.order == seq_cst) {
        const std::memory_order next[] = {acquire, release, acq_rel};
        weaken(s, next[static_cast<int>(s.kind)]);
      }
      if (s.order == acq_rel) {
        weaken(s, acquire);
        weaken(s, release);
      } else {
        weaken(s, relaxed);
      }
    }
  }

  void weaken(const site& s, std::memory_order to) {
    const std::string file = s.at.file_name();
    const std::string text = text_of(s) + " -> " + order_name(to);
    const std::string place = file.substr(file.rfind('/') + 1) + ":" + std::to_string(s.at.line());
    for (spare_order& o : elsewhere_) {
      if (text == o.what) return void(o.is_used = true);
    }
    spare_order* spare = nullptr;
    for (spare_order& o : spares_) {
      if (text == o.what) spare = &o;
    }
    budget b = budget_;
    if (spare != nullptr) {  // nothing ends these searches early
      b.random_planted /= b.spare_share;
      b.bounded_planted /= b.spare_share;
    }
    weakened = {&s, to};
    const std::string found = find(b);
    weakened = {};
    ++weakenings_;
    if (!found.empty()) {
      ++found_;
      std::printf("  found   %-24s %-50s %s\n", place.c_str(), text.c_str(), found.c_str());
    } else if (spare != nullptr) {
      spare->is_used = true;
      std::printf("  spare   %-24s %-50s %s\n", place.c_str(), text.c_str(), spare->why);
    } else {
      fail(place + " " + text + ": not found");
    }
    std::fflush(stdout);
  }

  const char* protocol_;
  budget budget_;
  std::vector<std::string> headers_;
  std::vector<spare_order> spares_;
  std::vector<spare_order> elsewhere_;
  std::vector<finder> finders_;
  std::uint64_t schedules_ = 0;
  unsigned weakenings_ = 0;
  unsigned found_ = 0;
  unsigned steps_planted_ = 0;
  unsigned failures_ = 0;
};

}  // namespace model
