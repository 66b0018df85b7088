// pass_lock: whatever was made before run() is seen by a round of the job, one round at a time;
// also when the lock was held for something else meanwhile.
#include "explore.hpp"

#include "sync/pass_lock.hpp"

namespace {

using namespace model;

struct posts {
  void post(unsigned index) { posted[index].store(1, std::memory_order_relaxed); }
  // Counts what is new. `served` is no atomic: two rounds at once, or a round that does not see the
  // last one, are a race.
  bool round(unsigned most = 3) {
    unsigned found = 0;
    for (unsigned i = 0; i < 3 && found < most; ++i) {
      if (posted[i].load(std::memory_order_relaxed) == 0) continue;
      posted[i].store(0, std::memory_order_relaxed);
      served.set(served.get() + 1);
      ++found;
    }
    return found != 0;
  }
  bool wants() {
    for (atomic<std::uint32_t>& each : posted) {
      if (each.load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }
  lev::pass_lock<env> lock;
  atomic<std::uint32_t> posted[3];
  plain<unsigned> served;
};

template <unsigned Threads>
struct all_served : scenario<all_served<Threads>, Threads> {
  void thread(unsigned index) {
    s->post(index);
    s->lock.run([&] { s->round(); });
  }
  void after() { require(s->served.get() == Threads, "every post was served"); }
  boxed<posts> s;
};

// A turn serves one post only, and whoever served one comes again, as for the line of a worker.
template <unsigned Threads>
struct one_a_turn : scenario<one_a_turn<Threads>, Threads> {
  void thread(unsigned index) {
    s->post(index);
    for (bool has_served = true; has_served;) {
      has_served = false;
      s->lock.run_while([&] { return !(has_served = s->round(1)); });
    }
  }
  void after() { require(s->served.get() == Threads, "every post was served"); }
  boxed<posts> s;
};

// One thread holds the lock to change something, as set_filters() does: until nobody has asked
// meanwhile, or it leaves at once, and serves later whoever asked, if there is still work.
template <bool LeavesAtOnce>
struct with_holder : scenario<with_holder<LeavesAtOnce>, 3> {
  void thread(unsigned index) {
    if (index != 0) {
      s->post(index);
      s->lock.run([&] { s->round(); });
      return;
    }
    while (!s->lock.try_hold()) env::pause();
    s->served.set(s->served.get() + 10);
    if (!LeavesAtOnce) {
      while (!s->lock.release_hold()) s->round();
    } else if (s->lock.end_hold() && s->wants()) {
      s->lock.run([&] { s->round(); });
    }
  }
  void after() { require(s->served.get() == 12, "every post was served"); }
  boxed<posts> s;
};

}  // namespace

int main() {
  return explorer("pass_lock", {}, {"sync/pass_lock.hpp"})
      .check<all_served<2>>("two callers")
      .check<all_served<3>>("three callers")
      .check<with_holder<false>>("a holder")
      .check<one_a_turn<2>>("two callers, one post a turn")
      .check<one_a_turn<3>>("three callers, one post a turn")
      .check<with_holder<true>>("a holder that leaves at once")
      .plant("pass_lock: leaves when the job is being done, without asking")
      .plant("pass_lock: the word is set to idle without a look")
      .plant("pass_lock: end_hold() does not tell of the request")
      .plant("pass_lock: release_hold() does not take the request")
      .end();
}
