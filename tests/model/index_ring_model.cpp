// index_ring: every value comes out once, with what was written before it went in; batches stay
// together; positions wrap.
#include "explore.hpp"

#include "queue/index_ring.hpp"

namespace {

using namespace model;
using ring = lev::index_ring<env>;

constexpr std::uint32_t before_wrap = 0xfffffffe;

struct ring_of_two {
  ring_of_two() { queue.open(cells, 2, before_wrap); }
  ring::cell cells[2];
  ring queue;
};

// Values 0.. with contents; each may be taken once.
struct values : ring_of_two {
  void push(const std::uint32_t* v, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) contents[v[i]].set(v[i] + 10);
    while (!queue.try_push_all(v, count)) env::pause();
  }
  // Takes `count` values, up to `batch` at a time.
  void pop(std::uint32_t count, std::uint32_t batch) {
    std::uint32_t v[2];
    while (count != 0) {
      const std::uint32_t n = queue.try_pop_some(v, batch < count ? batch : count);
      if (n == 0) env::pause();
      for (std::uint32_t i = 0; i < n; ++i) {
        require(v[i] < 4, "a value that was pushed");
        require(contents[v[i]].get() == v[i] + 10, "with its contents");
        contents[v[i]].set(0);
        if (n == 2) require(i == 0 || v[1] != v[0], "a batch has two values");
      }
      count -= n;
    }
  }
  void expect_empty() {
    std::uint32_t v = 0;
    require(queue.looks_empty() && queue.size() == 0 && !queue.try_pop(&v), "nothing is left");
  }
  plain<std::uint32_t> contents[4];
};

struct batch_and_single : scenario<batch_and_single, 3> {
  void thread(unsigned index) {
    static constexpr std::uint32_t batch[] = {0, 1}, single[] = {2};
    if (index == 0) s->push(batch, 2);
    if (index == 1) s->push(single, 1);
    if (index == 2) s->pop(3, 2);
  }
  void after() { s->expect_empty(); }
  boxed<values> s;
};

struct two_and_two : scenario<two_and_two, 4> {
  void thread(unsigned index) {
    static constexpr std::uint32_t all[] = {0, 1, 2, 3};
    if (index == 0) s->push(all, 2);
    if (index == 1) {
      s->push(all + 2, 1);
      s->push(all + 3, 1);
    }
    if (index >= 2) s->pop(2, index - 1);
  }
  void after() { s->expect_empty(); }
  boxed<values> s;
};

// One consumer takes from where it left the ring, as long as the other one takes nothing.
struct alone_and_batch : scenario<alone_and_batch, 3> {
  void thread(unsigned index) {
    static constexpr std::uint32_t all[] = {0, 1, 2};
    if (index == 0) {
      s->push(all, 2);
      s->push(all + 2, 1);
    }
    if (index == 1) s->pop(1, 1);
    if (index == 2) take_two();
  }
  void take_two() {
    std::uint32_t position = before_wrap;
    for (int taken = 0; taken < 2;) {
      std::uint32_t v = 0;
      std::uint32_t later = 0;
      if (s->queue.try_pop_at(position, &v, 1, &later)) {
        require(v < 4 && s->contents[v].get() == v + 10, "its contents");
        s->contents[v].set(0);
        ++position;
        ++taken;
      } else {
        env::pause();
        position = s->queue.position();
      }
    }
  }
  void after() { s->expect_empty(); }
  boxed<values> s;
};

// The ring as a list of free slots: the thread that has taken a slot has it alone.
struct free_list : scenario<free_list, 3> {
  void before() {
    s->queue.try_push(0);
    s->queue.try_push(1);
  }
  void thread(unsigned index) {
    for (int i = 0; i < 2; ++i) {
      std::uint32_t slot = 0;
      while (!s->queue.try_pop(&slot)) env::pause();
      s->owner[slot].set(index);
      require(s->owner[slot].get() == index, "the slot is this thread's");
      while (!s->queue.try_push(slot)) env::pause();
    }
  }
  void after() { require(s->queue.size() == 2, "both slots are back"); }

  struct state : ring_of_two {
    plain<unsigned> owner[2];
  };
  boxed<state> s;
};

// A push and then a look at the doorbell, an announcement and then a look at the ring: one of the
// two sees the other.
struct handshake : scenario<handshake, 2> {
  void thread(unsigned index) {
    if (index == 0) {
      s->queue.try_push(7);
      s->seen_by_pusher = s->bell.load(std::memory_order_seq_cst) != 0;
    } else {
      s->bell.fetch_add(1, std::memory_order_seq_cst);
      s->seen_by_sleeper = !s->queue.looks_empty();
    }
  }
  void after() { require(s->seen_by_pusher || s->seen_by_sleeper, "one sees the other"); }

  struct state : ring_of_two {
    atomic<std::uint32_t> bell;
    bool seen_by_pusher = false;
    bool seen_by_sleeper = false;
  };
  boxed<state> s;
};

}  // namespace

int main() {
  return explorer("index_ring", {}, {"queue/index_ring.hpp"})
      .check<handshake>("handshake")
      .check<batch_and_single>("batch and single")
      .check<alone_and_batch>("alone and batch")
      .check<free_list>("free list")
      .check<two_and_two>("two and two")
      .plant("index_ring: a consumer trusts the tail, not the cell")
      .plant("index_ring: sequence compared with <")
      .plant("index_ring: a popped cell is off by one")
      .plant("index_ring: one that is alone takes whatever others have taken")
      .spare("try_pop_some store release -> relaxed",
             "a producer one lap later reads nothing that a consumer wrote but this cell")
      .spare("try_pop_at store release -> relaxed", "the same")
      .end();
}
