// sleep_lock: what it protects is seen by one thread at a time, and by each thread as the last one
// left it; and whoever sleeps for it is woken.
#include "explore.hpp"

#include "sync/sleep_lock.hpp"

namespace {

using namespace model;

template <unsigned Threads, int Turns>
struct count_under_lock : scenario<count_under_lock<Threads, Turns>, Threads> {
  void thread(unsigned) {
    for (int i = 0; i < Turns; ++i) {
      s->lock.lock(s->kernel);
      s->count.set(s->count.get() + 1);
      s->lock.unlock(s->kernel);
    }
  }
  void after() { require(s->count.get() == Threads * Turns, "every count is there"); }

  struct state {
    lev::sleep_lock<env> lock;
    sleeper kernel;
    plain<int> count;
  };
  boxed<state> s;
};

}  // namespace

int main() {
  return explorer("sleep_lock", {}, {"sync/sleep_lock.hpp"})
      .check<count_under_lock<2, 2>>("two threads")
      .check<count_under_lock<3, 2>>("three threads")
      .check<count_under_lock<4, 1>>("four threads")
      .plant("sleep_lock: who was woken forgets that others sleep")
      .plant("sleep_lock: looks whether somebody sleeps, then frees it")
      .end();
}
