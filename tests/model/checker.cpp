// Relacy, for scenarios of two to five threads.
#include "explore.hpp"

#include <fstream>

namespace model {
namespace {

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

any_scenario* (*make_now)();  // the scenario whose schedules are tried

// What Relacy makes anew for each schedule.
template <int Threads>
struct suite : rl::test_suite<suite<Threads>, Threads> {
  suite() : scenario_(make_now()) {}
  ~suite() { scenario_->~any_scenario(); }
  void before() { scenario_->before(); }
  void thread(unsigned index) { scenario_->thread(index); }
  void after() { scenario_->after(); }

 private:
  any_scenario* scenario_;
};

using run_test = rl::test_result_e (*)(rl::test_params&, std::ostream&, bool);

template <int Threads>
run_test runs(search how) {
  if (how == search::random) return rl::run_test<suite<Threads>, uneven_scheduler<Threads>>;
  return rl::run_test<suite<Threads>, rl::context_bound_scheduler<Threads>>;
}

run_test runs(int thread_count, search how) {
  static constexpr run_test (*for_threads[])(search) = {runs<2>, runs<3>, runs<4>, runs<5>};
  return for_threads[thread_count - 2](how);
}

}  // namespace

verdict run(const scenario_type& type, search how, const budget& b, std::uint64_t schedules,
            bool tells) {
  verdict v;
  rl::ostringstream out;
  std::ofstream nowhere;
  rl::test_params p;
  p.iteration_count = schedules;
  p.output_stream = &out;
  p.progress_stream = &nowhere;
  p.search_type =
      how == search::random ? rl::random_scheduler_type : rl::fair_context_bound_scheduler_type;
  p.context_bound = b.preemptions;
  p.execution_depth_limit = b.steps_max;
  rl::ostringstream state;
  const run_test runs_now = runs(type.thread_count, how);
  make_now = type.make;
  schedules_left = schedules;
  v.result = runs_now(p, state, false);
  v.schedules = p.stop_iteration;
  v.is_complete = v.result == rl::test_result_success;
  if (!tells || !v.failed()) return v;
  p.initial_state = state.str();
  p.collect_history = true;
  schedules_left = schedules;
  runs_now(p, state, true);
  v.history = out.str().c_str();
  return v;
}

}  // namespace model
