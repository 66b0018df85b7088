// The pipeline's sleeping and waking, on the code itself: no task waits while a worker sleeps, no
// waiter sleeps for ever, and outputs are there when the outcome is.
//
// Bodies that wait for each other, which no program may rely on, end only if no worker sleeps while
// a task waits; what is lost shows as a deadlock.
#include "pipeline.hpp"

namespace {

using namespace model;

// One task, one worker: by mailbox or ready queue, to a worker that is awake or asleep.
template <lev::wait_policy Policy>
struct one_task : pipeline<one_task<Policy>, 1, 1> {
  static constexpr lev::wait_policy wait_policy = Policy;
  void host(unsigned) {
    input.set(1);
    this->wait(this->submit(0));
    require(output.get() == 2, "the output is there");
  }
  void body(unsigned) { output.set(input.get() + 1); }
  plain<int> input, output;
};

// Two tasks that wait for each other, on two workers.
template <bool Asymmetric, bool Straight = false>
struct two_tasks : pipeline<two_tasks<Asymmetric, Straight>, 2, 1> {
  static constexpr bool is_asymmetric = Asymmetric;
  static constexpr bool is_straight = Straight;
  void host(unsigned) {
    const std::uint64_t first = this->submit(0);
    this->wait(this->submit(1));
    this->wait(first);
  }
  void body(unsigned task) {
    this->start(task);
    this->wait_started(1 - task);
  }
};

// The same on one worker and a host that helps.
struct helping_host : pipeline<helping_host, 1, 1> {
  static constexpr lev::wait_policy wait_policy = lev::wait_policy::help;
  void host(unsigned) {
    const std::uint64_t first = submit(0);
    wait(submit(1));
    wait(first);
  }
  void body(unsigned task) {
    start(task);
    wait_started(1 - task);
  }
};

// A task submits another into its worker's inbox and waits until it has started, on the other
// worker.
template <bool Asymmetric, bool Straight = false>
struct child : pipeline<child<Asymmetric, Straight>, 2, 1> {
  static constexpr bool is_asymmetric = Asymmetric;
  static constexpr bool is_straight = Straight;
  void host(unsigned) { this->wait(this->submit(0)); }
  void body(unsigned task) {
    this->start(task);
    if (task == 0) {
      const std::uint64_t inner = this->submit(1);
      this->wait_started(1);
      detail::release(this->core, inner);
    }
  }
};

// A task waits for one that it has submitted: its worker must run it.
template <unsigned Depth>
struct nested : pipeline<nested<Depth>, 1, 1> {
  static constexpr std::uint32_t depth = Depth;
  void host(unsigned) { this->wait(this->submit(0)); }
  void body(unsigned task) {
    if (task == 0) {
      this->wait(this->submit(1));
      require(output.get() == 1, "the output is there");
    } else {
      output.set(1);
    }
  }
  plain<int> output;
};

// More tasks than tickets: the submitter waits for space.
struct space : pipeline<space, 1, 1> {
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned) {
    for (unsigned i = 0; i < 4; ++i) submit(i, nullptr, true);
  }
  void body(unsigned) { ran.set(ran.get() + 1); }
  void after() { require(ran.get() == 4, "all have run"); }
  plain<int> ran;
};

// One slot comes back while the other is in use, by a task that waits for the one to be submitted.
struct one_space : pipeline<one_space, 2, 1> {
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned) {
    for (unsigned i = 0; i < 3; ++i) submit(i, nullptr, true);
  }
  void body(unsigned task) {
    if (task == 0) wait_started(2);
    if (task == 2) start(2);
  }
};

// Two hosts sleep for a slot each, and two come back. The tasks that get them wait for each other.
// A third host calls in and goes, and no host takes the slots that it has for its own.
template <int Hosts, bool Straight = false>
struct two_in_line : pipeline<two_in_line<Hosts, Straight>, 2, Hosts> {
  static constexpr std::uint32_t tickets = 2;
  static constexpr bool is_straight = Straight;
  static constexpr bool submits_typed = false;
  void host(unsigned index) {
    this->submit(2, nullptr, true);
    this->submit(index, nullptr, true);
  }
  void body(unsigned task) {
    if (task == 2) return;
    this->start(task);
    this->wait_started(1 - task);
  }
};

// The host holds every ticket: it is told so, and does not wait for itself.
template <lev::when_full When>
struct held : pipeline<held<When>, 1, 1> {
  static constexpr lev::when_full when_full = When;
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned) {
    const std::uint64_t first = this->submit(0);
    const std::uint64_t second = this->submit(1);
    const lev::argument a = detail::parameter<unsigned>::pack(2);
    lev::refusal why;
    require(detail::try_submit(this->core, {1, 1, 0, 0, 0, 0, &a}, nullptr, false, &why) == 0,
            "refused");
    this->wait(first);
    this->wait(second);
  }
};

// Another host has called in, and ends while the host finds all tickets in use, or sleeps for one.
struct left_alone : pipeline<left_alone, 1, 2> {
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned index) {
    if (index == 1) {
      wait(submit(0));
      has_called.store(1, std::memory_order_release);
      return lev::unbind(*core, *detail::here(*core));
    }
    while (has_called.load(std::memory_order_acquire) == 0) env::pause();
    const std::uint64_t first = submit(0);
    const std::uint64_t second = submit(1);
    const lev::argument a = detail::parameter<unsigned>::pack(2u);
    lev::refusal why;
    require(detail::try_submit(core, {1, 1, 0, 0, 0, 0, &a}, nullptr, false, &why) == 0, "refused");
    wait(first);
    wait(second);
  }
  atomic<std::uint32_t> has_called;
};

// Two hosts come one after the other, and take the ticket that the first host does not hold.
struct come_and_gone : pipeline<come_and_gone, 1, 3> {
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned index) {
    const std::uint64_t first = submit(0);
    if (index == 0) wait(submit(0));
    wait(first);
    if (index != 0) lev::unbind(*core, *detail::here(*core));
  }
};

// The host holds all tickets but one, whose slot comes back by way of the worker's own: the host
// never believes that it holds them all.
struct cached : pipeline<cached, 1, 1> {
  static constexpr std::uint32_t tickets = 8;
  void host(unsigned) {
    std::uint64_t ids[tickets - 1];
    for (auto& id : ids) id = submit(0);
    for (unsigned i = 0; i < 3; ++i) submit(0, nullptr, true);
    for (const auto id : ids) wait(id);
  }
};

// Two hosts send tasks to one worker.
template <unsigned Depth, lev::wait_policy Policy = lev::wait_policy::park>
struct two_hosts : pipeline<two_hosts<Depth, Policy>, 1, 2> {
  static constexpr std::uint32_t depth = Depth;
  static constexpr lev::wait_policy wait_policy = Policy;
  void host(unsigned index) {
    for (unsigned i = 0; i < 2; ++i) {
      input[index].set(i);
      this->wait(this->submit(index));
      require(output[index].get() == i + 1, "the output is there");
    }
  }
  void body(unsigned task) { output[task].set(input[task].get() + 1); }
  plain<unsigned> input[2], output[2];
};

// A wait that may give up at any time, and is tried again.
struct time_outs : pipeline<time_outs, 1, 1> {
  void host(unsigned) {
    wait_with_time_outs(submit(0));
    require(output.get() == 1, "the output is there");
  }
  void body(unsigned) { output.set(1); }
  plain<int> output;
};

// Two hosts want the same ticket: both wake, one gets the outcome.
struct two_waiters : pipeline<two_waiters, 1, 2> {
  void host(unsigned index) {
    if (index == 0) ticket.store(submit(0), std::memory_order_release);
    std::uint64_t id;
    while ((id = ticket.load(std::memory_order_acquire)) == 0) env::pause();
    const lev::status s = detail::wait_one(core, id, lev::no_timeout).code;
    require(s == lev::status::ok || s == lev::status::stale_ticket, "an outcome");
    if (s == lev::status::ok) collected.fetch_add(1);
  }
  void after() { require(collected.load() == 1, "one has it"); }
  atomic<std::uint64_t> ticket;
  atomic<std::uint32_t> collected;
};

// One host closes while the other submits: the task is refused, or done.
template <bool Asymmetric, bool Straight = false>
struct closing : pipeline<closing<Asymmetric, Straight>, 1, 2> {
  static constexpr bool is_asymmetric = Asymmetric;
  static constexpr bool is_straight = Straight;
  static constexpr std::uint32_t tickets = Straight ? 16 : 4;  // so many that a host keeps some
  void host(unsigned index) {
    if (index == 1) {
      require(detail::close_within(this->core, lev::no_timeout, false) == lev::status::ok,
              "closed");
      return;
    }
    for (unsigned i = 0; i < (Straight ? 2 : 1); ++i) {
      const lev::argument a = detail::parameter<unsigned>::pack(0);
      lev::refusal why;
      const std::uint64_t id = this->try_submit({1, 1, 0, 0, 0, 0, &a}, nullptr, false, &why);
      if (id != 0) {
        this->wait(id);
      } else {
        require(why.code == lev::status::closed, "refused because it closes");
      }
    }
  }
};

// The worker is busy, so the host runs the second task, and has what that posts in its own inbox:
// this one waits for what the host does when its wait is over, or its time.
template <bool IsTimed>
struct back_in_time : pipeline<back_in_time<IsTimed>, 1, 1> {
  static constexpr lev::wait_policy wait_policy = lev::wait_policy::help;
  void host(unsigned) {
    const std::uint64_t first = this->submit(0);
    this->wait_started(0);
    const std::uint64_t second = this->submit(1);
    if (IsTimed) {
      const lev::status s = detail::wait_one(this->core, first, 1).code;
      require(s == lev::status::timed_out, "its time is over");
    } else {
      this->wait(second);
    }
    this->start(2);
    this->wait(first);
    if (IsTimed) this->wait(second);
  }
  void body(unsigned task) {
    if (task == 0) this->start(0);
    if (task == 1) this->submit(2, nullptr, true);
    if (task != 1) this->wait_started(2);
  }
};

// A close that cancels, while the worker is busy: what waits does not run.
struct cancelling : pipeline<cancelling, 1, 1> {
  static constexpr bool is_straight = true;
  void host(unsigned) {
    submit(0, nullptr, true);
    wait_started(0);
    submit(1, nullptr, true);
    require(detail::close_within(core, 1, true) == lev::status::timed_out, "one runs");
    start(2);
  }
  void body(unsigned task) {
    require(task == 0, "the first only");
    start(0);
    wait_started(2);
  }
};

constexpr const char* old_twice =
    "rare: the old value at both of the sleeper's looks, when all others sleep";
constexpr const char* own_participant =
    "each of the checker's threads has a participant of its own";
constexpr const char* no_phases = "no scenario has submits between begin_submit() and end_submit()";

explorer& name_spares(explorer& e) {
  return e.spare("count load acquire -> relaxed", "Relacy runs loads in order; other CPUs do not")
      .spare("set_count store release -> relaxed", "Relacy runs a thread's steps in order")
      .elsewhere("disarm store seq_cst -> release")  // seldom_orders()
      .elsewhere("disarm store seq_cst -> relaxed")
      .elsewhere("wake_for_slot load seq_cst -> acquire")
      .elsewhere("wake_for_slot load seq_cst -> relaxed")
      .spare("has_other_hosts load seq_cst -> acquire", old_twice)
      .spare("has_other_hosts load seq_cst -> relaxed", old_twice)
      .spare("is_there load seq_cst -> acquire", no_phases)
      .spare("is_there load seq_cst -> relaxed", no_phases)
      .spare("tell_all_for_space load seq_cst -> acquire", old_twice)
      .spare("tell_all_for_space load seq_cst -> relaxed", old_twice)
      .spare("unbind store seq_cst -> release", old_twice)
      .spare("unbind store seq_cst -> relaxed", old_twice)
      .spare("try_bind load acquire -> relaxed", own_participant);
}

int usual_orders() {
  constexpr budget b{.random = 3'000, .random_planted = 2'500, .steps_max = 20'000};
  explorer e("pipeline", b,
             {"runtime/held.cpp", "runtime/awaits.hpp", "worker/wake.hpp", "flow/index_pool.hpp"});
  return name_spares(e)
      .check<space>("space")
      .check<one_space>("one space")
      .check<two_in_line<2>>("two in line")
      .check<two_in_line<3>>("two in line, and a third host")
      .check<two_in_line<2, true>>("two in line, straight")
      .check<held<lev::when_full::wait>>("held")
      .check<held<lev::when_full::help>>("held, host helps")
      .check<left_alone>("left alone")
      .check<come_and_gone>("come and gone")
      .check<cached>("cached")
      .check<one_task<lev::wait_policy::park>>("one task, host parks")
      .check<one_task<lev::wait_policy::help>>("one task, host helps")
      .check<two_tasks<false>>("two tasks")
      .check<two_tasks<true>>("two tasks, asymmetric")
      .check<two_tasks<true, true>>("two tasks, straight")
      .check<child<false>>("child")
      .check<child<true>>("child, asymmetric")
      .check<child<true, true>>("child, straight")
      .check<helping_host>("helping host")
      .check<nested<1>>("nested")
      .check<nested<2>>("nested, depth 2")
      .check<two_hosts<1>>("two hosts")
      .check<two_hosts<2>>("two hosts, depth 2")
      .check<two_hosts<1, lev::wait_policy::directed>>("two hosts of one core")
      .check<one_task<lev::wait_policy::yield>>("one task, host yields")
      .check<one_task<lev::wait_policy::directed>>("one task, host directs")
      .check<time_outs>("time-outs")
      .check<two_waiters>("two waiters")
      .check<closing<false>>("closing")
      .check<closing<true>>("closing, asymmetric")
      .check<closing<true, true>>("closing, straight")
      .check<back_in_time<false>>("back in time")
      .check<back_in_time<true>>("back in time, by a time-out")
      .check<cancelling>("cancelling")
      .plant("sleep: no last look, in the pipeline")
      .plant("sleep: the waiter is not armed")
      .plant("open_mailbox: the owner takes it for closed")
      .plant("submit: a letter to one that sleeps")
      .plant("directed: the hand-over is lost", "two hosts of one core")
      .plant("directed: sleeps without having said so", "two hosts of one core")
      .plant("directed: those who are named are left when the last poller goes",
             "two hosts of one core")
      .plant("finish: only the waiter named last is woken")
      .plant("enqueue: no ring")
      .plant("enqueue: no ring for the own inbox")
      .plant("close: workers are not woken")
      .plant("submit: does not look at closing once more", "closing")
      .plant("submit: the straight path does not look at closing", "closing, straight")
      .plant("close: no heavy fence", "closing, asymmetric")
      .plant("close: plain tasks go on to be run plainly", "cancelling")
      .plant("run_some: begins with its mailbox open", "two tasks")
      .plant("run_some: goes on though what it waits for is there", "back in time")
      .plant("serve_until: a timed wait runs a batch", "back in time, by a time-out")
      .plant("tell_space: slots come back silently", "one space")
      .plant("await_space: a wake-up for a slot is not passed on", "two in line")
      .plant("await_space: not counted for the barrier", "held")
      .plant("await_space: counted for the barrier before it says so", "held")
      .plant("await_space: forgets that all is held", "held")
      .plant("is_held_by_caller: a host may come meanwhile", "come and gone")
      .plant("unbind: nobody is told", "left alone")
      .plant("index_pool: a cache looks empty before the ring is full", "cached")
      .end();
}

// A waiter that takes its wish back while a slot comes: some schedule of thousands passes both by.
int seldom_orders() {
  constexpr budget b{.random = 300, .random_planted = 40'000, .steps_max = 20'000};
  return explorer("pipeline, seldom", b, {"runtime/awaits.hpp", "worker/wake.hpp"})
      .check<two_in_line<3>>("two in line, and a third host")
      .check<two_in_line<2, true>>("two in line, straight")
      .elsewhere("arm change seq_cst -> acq_rel")
      .elsewhere("arm change seq_cst -> relaxed")
      .elsewhere("arm change acq_rel -> acquire")
      .elsewhere("arm change acq_rel -> release")
      .elsewhere("is_there load seq_cst -> acquire")
      .elsewhere("is_there load seq_cst -> relaxed")
      .elsewhere("tell_space load seq_cst -> acquire")
      .elsewhere("tell_space load seq_cst -> relaxed")
      .elsewhere("tell_all_for_space load seq_cst -> acquire")
      .elsewhere("tell_all_for_space load seq_cst -> relaxed")
      .elsewhere("unbind store seq_cst -> release")
      .elsewhere("unbind store seq_cst -> relaxed")
      .elsewhere("try_bind load acquire -> relaxed")
      .end();
}

}  // namespace

int main() {
  const int usual = usual_orders();
  return seldom_orders() == EXIT_SUCCESS ? usual : EXIT_FAILURE;
}
