// spin_lock: what it protects is seen by one thread at a time, and by each thread as the last one
// left it.
#include "explore.hpp"

#include "sync/spin_lock.hpp"

namespace {

using namespace model;

struct count_under_lock : scenario<count_under_lock, 3> {
  void thread(unsigned) {
    for (int i = 0; i < 2; ++i) {
      const lev::spin_guard<env> held(s->lock);
      s->count.set(s->count.get() + 1);
    }
  }
  void after() { require(s->count.get() == 6, "every count is there"); }

  struct state {
    lev::spin_lock<env> lock;
    plain<int> count;
  };
  boxed<state> s;
};

}  // namespace

int main() {
  return explorer("spin_lock", {}, {"sync/spin_lock.hpp"})
      .check<count_under_lock>("three threads")
      .end();
}
