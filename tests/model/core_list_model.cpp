// core_list: no host that was named is forgotten, whoever polls, leaves or sleeps meanwhile; and it
// sees what it waited for.
#include "explore.hpp"

#include "sync/core_list.hpp"
#include "sync/parker.hpp"
#include "task/task_state.hpp"

namespace {

using namespace model;
using core_list = lev::core_list<env>;

// Host 0 sleeps until it is named, by nothing but the list. `Pollers` hosts poll for a moment; the
// last thread names.
template <int Pollers>
struct one_name : scenario<one_name<Pollers>, Pollers + 2> {
  void before() { s->list.open(2); }
  void thread(unsigned index) {
    const auto wake = [&](std::uint32_t) { s->park.unpark(s->place); };
    if (index == 0) {
      s->park.park(s->place, sleeper::never);
      require(s->reason.get() == 1, "the reason is there");
    } else if (index <= Pollers) {
      s->list.start_polling();
      for (unsigned pass = 0; pass < 2; ++pass) {
        if (s->list.take(index) == 0) wake(0);
        env::pause();
      }
      s->list.stop_polling(wake);
    } else {
      s->reason.set(1);
      s->list.name(0, wake);
    }
  }
  struct state {
    core_list list;
    lev::parker<env> park;
    sleeper place;
    plain<int> reason;
  };
  boxed<state> s;
};

// Two are named in the same entry, by two completers; one host polls.
struct one_entry : scenario<one_entry, 5> {
  void before() { s->list.open(1); }
  void thread(unsigned index) {
    const auto wake = [&](std::uint32_t host) { s->park[host].unpark(s->place); };
    if (index < 2) {
      s->park[index].park(s->place, sleeper::never);
      require(s->reason[index].get() == 1, "the reason is there");
    } else if (index < 4) {
      s->reason[index - 2].set(1);
      s->list.name(index - 2, wake);
    } else {
      s->list.start_polling();
      const std::uint32_t found = s->list.take(index);
      if (found != core_list::nobody) wake(found);
      s->list.stop_polling(wake);
    }
  }
  struct state {
    core_list list;
    lev::parker<env> park[2];
    sleeper place;
    plain<int> reason[2];
  };
  boxed<state> s;
};

// Hosts that wait for a task each, as worker/share_core.hpp does; one worker completes them all.
template <int Entries>
struct hand_over : scenario<hand_over<Entries>, 3> {
  static constexpr unsigned hosts = 2;

  void before() {
    s->list.open(Entries);
    for (auto& t : s->tasks) t.open();
  }
  void thread(unsigned index) {
    if (index < hosts) return host(index);
    for (unsigned i = 0; i < hosts; ++i) {
      s->output[i].set(1);
      std::uint64_t seen = s->tasks[i].word();
      while (!s->tasks[i].try_finish(seen, lev::status::ok)) {
      }
      if ((seen & lev::state_bits::waited) == 0) continue;
      s->list.name(lev::state_bits::waiter(seen),
                   [&](std::uint32_t who) { s->park[who].unpark(s->place); });
    }
  }
  void host(unsigned index) {
    const auto wake = [&](std::uint32_t who) { s->park[who].unpark(s->place); };
    const auto is_there = [&] { return s->tasks[index].peek(0) != lev::status::pending; };
    while (!is_there()) {
      s->list.start_polling();
      std::uint32_t next = core_list::nobody;
      for (unsigned pass = 0; pass < 2 && next == core_list::nobody && !is_there(); ++pass) {
        next = s->list.take(index);
        env::pause();
      }
      s->list.stop_polling(wake);
      const bool sleeps = s->tasks[index].announce_waiter(0, index);
      if (next != core_list::nobody) wake(next);
      if (sleeps) s->park[index].park(s->place, sleeper::never);
    }
    require(s->output[index].get() == 1, "the output is there");
  }
  struct state {
    core_list list;
    lev::task_state<env> tasks[hosts];
    lev::parker<env> park[hosts];
    sleeper place;
    plain<int> output[hosts];
  };
  boxed<state> s;
};

}  // namespace

int main() {
  return explorer("core_list", {}, {"sync/core_list.hpp"})
      .check<one_name<1>>("one name")
      .check<one_name<2>>("one name, two pollers")
      .check<one_entry>("one entry")
      .check<hand_over<2>>("hand-over")
      .check<hand_over<1>>("hand-over, one entry")
      .plant("core_list: the last poller leaves without a look")
      .plant("core_list: a completer looks for no poller")
      .plant("core_list: a name is written over another")
      .end();
}
