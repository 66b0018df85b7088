// elsewhere: whoever sleeps in poll() with a bell is woken by those who change its parker's word,
// as one who sleeps on the word is. The sleeper is machines/processes/machine.cpp with pool::ring()
// and pool::wait(), where the bell is an eventfd.
#include "explore.hpp"

#include "sync/elsewhere.hpp"
#include "sync/parker.hpp"

namespace {

using namespace model;
using word = atomic<std::uint32_t>;

class poller {
 public:
  void wait_word(word& mine, std::uint32_t expected, std::uint64_t) {
    if (!sign_.may_sleep(mine, expected)) return;
    kernel_.wait_word(bell_, 0, sleeper::never);
    bell_.exchange(0, std::memory_order_relaxed);
  }
  void wake_word(word& changed) {
    if (!sign_.must_ring(changed)) return;
    bell_.fetch_add(1, std::memory_order_relaxed);
    kernel_.wake_word(bell_);
  }

 private:
  lev::elsewhere<env> sign_;
  word bell_;
  sleeper kernel_;
};

// Each waker wakes once; the sleeper goes on until it has seen all of them.
template <unsigned Wakers>
struct wakers : scenario<wakers<Wakers>, Wakers + 1> {
  void thread(unsigned index) {
    if (index != 0) {
      s->flags[index - 1].store(1, std::memory_order_relaxed);
      s->park.unpark(s->place);
      return;
    }
    while (seen() < Wakers) s->park.park(s->place, sleeper::never);
  }
  unsigned seen() {
    unsigned n = 0;
    for (auto& flag : s->flags) n += flag.load(std::memory_order_relaxed);
    return n;
  }
  struct state {
    lev::parker<env> park;
    poller place;
    atomic<std::uint32_t> flags[Wakers];
  };
  boxed<state> s;
};

}  // namespace

int main() {
  return explorer("elsewhere", {}, {"sync/elsewhere.hpp"})
      .check<wakers<1>>("one waker")
      .check<wakers<2>>("two wakers")
      .plant("elsewhere: the sleeper looks, then writes its word down")
      .plant("elsewhere: a waker does not repeat its change")
      .end();
}
