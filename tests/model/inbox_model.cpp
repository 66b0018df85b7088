// inbox: every value is taken once, by the owner or by one thief, with what was written before it
// was pushed; and a push is seen by a sleeper's last look, or its pusher sees the sleeper.
#include "explore.hpp"

#include "queue/inbox.hpp"

namespace {

using namespace model;

struct inbox_of_two {
  void push(std::uint32_t value) {
    contents[value].set(value + 10);
    require(inbox.try_push(value, heard), "there is room");
  }
  void took(std::uint32_t value) {
    require(value < 5, "a value that was pushed");
    require(contents[value].get() == value + 10, "with its contents, once");
    contents[value].set(0);
  }
  bool pop() {
    std::uint32_t value = 0;
    const bool there = inbox.try_pop(&value);
    if (there) took(value);
    return there;
  }
  bool steal() {
    std::uint32_t value = 0;
    const bool there = inbox.try_steal(&value);
    if (there) took(value);
    return there;
  }
  // Takes what is left at the end: nothing is lost.
  void expect_all(std::uint32_t count) {
    while (pop()) {
    }
    for (std::uint32_t i = 0; i < count; ++i) require(contents[i].get() == 0, "taken");
    require(inbox.looks_empty() && inbox.room() == 2, "empty");
  }
  lev::inbox<env, 2> inbox;
  plain<std::uint32_t> contents[5];
  bool heard = true;
};

// Owner and thief want the last value; then the place is used again.
template <bool Heard>
struct last_value : scenario<last_value<Heard>, 2> {
  static constexpr bool is_asymmetric = !Heard;
  void before() {
    s->heard = Heard;
    s->push(0);
  }
  void thread(unsigned index) {
    if (index == 0) {
      s->pop();
      s->push(1);
      s->pop();
    } else {
      s->steal();
      s->steal();
    }
  }
  void after() { s->expect_all(2); }
  boxed<inbox_of_two> s;
};

// Two thieves, an owner that pushes and pops, with laps.
struct two_thieves : scenario<two_thieves, 3> {
  void thread(unsigned index) {
    if (index == 0) {
      s->push(0);
      s->push(1);
      s->pop();
      s->push(2);
      s->pop();
      s->pop();
    } else {
      s->steal();
      s->steal();
    }
  }
  void after() { s->expect_all(3); }
  boxed<inbox_of_two> s;
};

// The owner pushes two at once, twice, and pops the first of each first; a thief takes the others.
template <bool Heard>
struct two_at_once : scenario<two_at_once<Heard>, 2> {
  static constexpr bool is_asymmetric = !Heard;
  void before() { s->heard = Heard; }
  void thread(unsigned index) {
    if (index == 1) {
      s->steal();
      s->steal();
      return;
    }
    for (std::uint32_t first = 0; first < 4; first += 2) {
      const std::uint32_t both[] = {first, first + 1};
      for (const std::uint32_t value : both) s->contents[value].set(value + 10);
      while (!s->inbox.try_push_all(both, 2, Heard)) s->pop();
      std::uint32_t value = 0;
      if (!s->inbox.try_pop(&value)) continue;
      require(value % 2 == 0, "the first one, or it is the older one of the two that is left");
      s->took(value);
    }
  }
  void after() { s->expect_all(4); }
  boxed<inbox_of_two> s;
};

// The owner pushes until there is room: what a thief has read is not overwritten.
struct full : scenario<full, 2> {
  void thread(unsigned index) {
    if (index == 0) {
      for (std::uint32_t i = 0; i < 4; ++i) {
        s->contents[i].set(i + 10);
        while (!s->inbox.try_push(i, true)) env::pause();
      }
    } else {
      for (int i = 0; i < 2; ++i) {
        while (!s->steal()) env::pause();
      }
    }
  }
  void after() { s->expect_all(4); }
  boxed<inbox_of_two> s;
};

// push() and a look at the doorbell; an announcement, the heavy fence and a last look. One of the
// two sees the other.
template <bool Asymmetric>
struct handshake : scenario<handshake<Asymmetric>, 2> {
  static constexpr bool is_asymmetric = Asymmetric;
  void thread(unsigned index) {
    if (index == 0) {
      const bool heard = s->sleepers.load(std::memory_order_relaxed) != 0 || !env::asymmetric();
      s->inbox.try_push(0, heard);
      s->seen_by_owner = s->sleepers.load(std::memory_order_seq_cst) != 0;
    } else {
      s->sleepers.fetch_add(1, std::memory_order_seq_cst);
      env::heavy_fence();
      s->seen_by_sleeper = !s->inbox.looks_empty();
    }
  }
  void after() { require(s->seen_by_owner || s->seen_by_sleeper, "one sees the other"); }

  struct state {
    lev::inbox<env, 2> inbox;
    atomic<std::uint32_t> sleepers;
    bool seen_by_owner = false;
    bool seen_by_sleeper = false;
  };
  boxed<state> s;
};

}  // namespace

constexpr const char* old_top = "an old top only makes the inbox look fuller";
constexpr const char* own_claim = "the change itself decides; the owner reads what it wrote";
constexpr const char* in_order = "Relacy runs loads in order; other CPUs than x86 do not";

int main() {
  return explorer("inbox", {}, {"queue/inbox.hpp"})
      .check<handshake<false>>("handshake")
      .check<handshake<true>>("handshake, asymmetric")
      .check<last_value<true>>("last value")
      .check<last_value<false>>("last value, plain push")
      .check<two_thieves>("two thieves")
      .check<two_at_once<true>>("two at once")
      .check<two_at_once<false>>("two at once, plain push")
      .check<full>("full")
      .plant("inbox: a full inbox is written to")
      .plant("inbox: several are published before they are there")
      .plant("inbox: the owner takes the last value without a race")
      .plant("inbox: a thief does not claim")
      .plant("inbox: a lost race leaves the bottom low")
      .plant("inbox: every push is a plain store")
      .spare("looks_empty#1 load seq_cst -> acquire", old_top)
      .spare("looks_empty#1 load seq_cst -> relaxed", old_top)
      .spare("claim#2 change seq_cst -> acq_rel", own_claim)
      .spare("claim#2 change seq_cst -> relaxed", own_claim)
      .spare("try_steal#1 load seq_cst -> acquire",
             "the claim orders the loads in the total order, too")
      .spare("try_steal#1 load seq_cst -> relaxed", in_order)
      .spare("try_push_all load acquire -> relaxed", in_order)
      .end();
}
