// parker: a token is never lost, and what was written before unpark() is there after park().
#include "explore.hpp"

#include "sync/parker.hpp"

namespace {

using namespace model;

// One wake-up for one park: it must return, and see what the waker wrote.
struct one_token : scenario<one_token, 2> {
  void thread(unsigned index) {
    if (index == 0) {
      s->park.park(s->place, sleeper::never);
      require(s->reason.get() == 1, "the reason is there");
    } else {
      s->reason.set(1);
      s->park.unpark(s->place);
    }
  }
  struct state {
    lev::parker<env> park;
    sleeper place;
    plain<int> reason;
  };
  boxed<state> s;
};

// Two wakers, one owner that looks again whenever a park returns. The flags are relaxed: only the
// parker orders them.
template <std::uint64_t Deadline>
struct two_wakers : scenario<two_wakers<Deadline>, 3> {
  void thread(unsigned index) {
    if (index != 0) {
      s->flags[index - 1].store(1, std::memory_order_relaxed);
      s->park.unpark(s->place);
      return;
    }
    const auto all = [&] {
      return s->flags[0].load(std::memory_order_relaxed) +
                 s->flags[1].load(std::memory_order_relaxed) ==
             2;
    };
    while (!all()) s->park.park(s->place, Deadline);
    if (Deadline != sleeper::never) s->park.park(s->place, Deadline);
  }
  struct state {
    lev::parker<env> park;
    sleeper place;
    atomic<std::uint32_t> flags[2];
  };
  boxed<state> s;
};

// The owner polls before it sleeps, and drops a token then: what that announced it sees when it
// looks again.
struct drops_first : scenario<drops_first, 2> {
  void thread(unsigned index) {
    if (index != 0) {
      s->flag.store(1, std::memory_order_relaxed);
      s->park.unpark(s->place);
      return;
    }
    s->park.drop_token();
    while (s->flag.load(std::memory_order_relaxed) == 0) s->park.park(s->place, sleeper::never);
  }
  struct state {
    lev::parker<env> park;
    sleeper place;
    atomic<std::uint32_t> flag;
  };
  boxed<state> s;
};

}  // namespace

constexpr const char* last_exchange = "the exchange at park()'s end acquires for all ways out";
constexpr const char* one_way = "a token tells the owner something, not the waker";

int main() {
  return explorer("parker", {}, {"sync/parker.hpp"})
      .check<one_token>("one token")
      .check<two_wakers<sleeper::never>>("two wakers")
      .check<two_wakers<1>>("two wakers, time-outs")
      .check<drops_first>("a token is dropped")
      .plant("parker: no token is left for one who is awake")
      .plant("parker: looks for the token, then says that it sleeps")
      .spare("park#1 change acq_rel -> acquire", last_exchange)
      .spare("park#1 change acq_rel -> release", last_exchange)
      .spare("park load acquire -> relaxed", last_exchange)
      .spare("park#2 change acq_rel -> acquire", one_way)
      .spare("unpark change acq_rel -> release", one_way)
      .end();
}
