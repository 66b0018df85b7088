// away: a host takes back the oldest task that it has posted to a worker of a shared pool, when
// that worker serves another host. The task runs once, by the worker or, when the host was certain,
// somewhere else; also if the worker dies in it and another process takes its place.
//
// A confined worker, which takes turns with that of the other host, is another process than that
// one: the host looks whether it has claimed the task.
//
// The two sides are run_shared() and serve_only() of machines/processes/serve.cpp with the worker's
// run() of client.cpp, and take_back() of machine.cpp with pool::has_left_us() of join_keeper.cpp,
// without what does not concern the task. Confined workers: run_in_turn() of serve.cpp, and
// pass_turn() of zygote_own.cpp.
#include "explore.hpp"

#include "machines/processes/berth.hpp"
#include "machines/processes/lane.hpp"

namespace {

using namespace model;

constexpr fault_name any_process = "take_back: the word of any process will do";
constexpr fault_name looks_first = "take_back: looks whom the worker serves before it asks";
constexpr fault_name early_end = "take_back: looks for the end before it looks whom it serves";
constexpr fault_name idle_will_do = "take_back: a worker that serves nobody is away, too";
constexpr fault_name late_end = "run_shared: turns to another host before the end is published";
constexpr fault_name late_turn = "run_shared: looks at what is to be skipped before it turns";

constexpr fault_name claim_unseen = "take_back: a confined worker that is away has not begun it";
constexpr fault_name late_claim = "run_in_turn: claims the task when it has looked for a request";

constexpr std::uint32_t us = 0;
constexpr std::uint32_t other = 1;
constexpr std::uint32_t task = 1;
enum : std::uint32_t { first_process = 7, next_process = 8 };

template <bool Dies>
struct take_back : scenario<take_back<Dies>, 2> {
  void before() {
    lane->record_of(task).number.store(task, std::memory_order_relaxed);
    lane->ended[0].store(lane->make_end(0, lev::status::ok), std::memory_order_relaxed);
    place->tell_process(first_process);
    require(place->turn(0, other + 1), "nobody is doomed here");
  }
  void thread(unsigned index) { index == 0 ? work() : host(); }
  void after() {
    require(!(has_begun_ && is_back_), "what was taken back for certain is never begun");
  }

  void turn(std::uint32_t from, std::uint32_t to) {
    require(place->turn(from, to), "nobody is doomed here");
  }
  void work() {
    bool is_skipped = fault(late_turn) && lane->is_skipped(task);
    turn(other + 1, us + 1);
    if (!fault(late_turn)) is_skipped = lane->is_skipped(task);
    has_begun_ = has_begun_ || !is_skipped;
    if (Dies && !is_skipped) return be_replaced();
    if (fault(late_end)) turn(us + 1, other + 1);
    lane->finish(task);
    if (!fault(late_end)) turn(us + 1, other + 1);
    turn(other + 1, 0);
  }
  // The steps of its keeper, then of the next worker.
  void be_replaced() {
    place->serving.store(0, std::memory_order_relaxed);
    place->tell_process(next_process);
    turn(0, other + 1);
  }

  bool is_away() {
    if (fault(any_process)) return place->is_away_from(us);
    if (!fault(idle_will_do)) return place->is_away_from(us, first_process);
    return place->serving.load(std::memory_order_seq_cst) != us + 1;
  }
  void host() {
    const bool was_away = fault(looks_first) && is_away();
    const bool had_end = fault(early_end) && lane->has_end(task);
    require(!lane->take_back(task), "the oldest is not certain by itself");
    if (fault(looks_first) ? !was_away : !is_away()) return;
    is_back_ = fault(early_end) ? !had_end : !lane->has_end(task);
  }

  boxed<lev::processes::lane<env>> lane;
  boxed<lev::processes::berth<env>> place;

 private:
  // The truth, for the check.
  bool has_begun_ = false;
  bool is_back_ = false;
};

// Confined: thread 0 is our worker, thread 1 the other host's.
template <bool Dies>
struct take_back_in_turn : scenario<take_back_in_turn<Dies>, 3> {
  void before() {
    desk->record_of(task).number.store(task, std::memory_order_relaxed);
    desk->ended[0].store(desk->make_end(0, lev::status::ok), std::memory_order_relaxed);
    require(place->try_take(other, false), "it is free");
  }
  void thread(unsigned index) {
    if (index == 0) return work();
    if (index == 2) return host();
    place->leave();
    take_turn(other);
    place->leave();
  }
  void after() {
    require(!(has_begun_ && is_back_), "what was taken back for certain is never begun");
  }

  void take_turn(std::uint32_t member) {
    while (!place->try_take(member, false)) env::pause();
  }
  void work() {
    take_turn(us);
    if (!fault(late_claim)) desk->claim(task);
    const bool is_skipped = desk->is_skipped(task);
    has_begun_ = !is_skipped;
    if (Dies && has_begun_) return place->leave_for(us);  // its keeper does
    if (fault(late_claim)) desk->claim(task);
    desk->finish(task);
    place->leave();
  }
  void host() {
    require(!desk->take_back(task), "the oldest is not certain by itself");
    if (!place->is_away_from(us)) return;
    if (!fault(claim_unseen) && desk->was_claimed(task)) return;
    is_back_ = !desk->has_end(task);
  }

  boxed<lev::processes::lane<env>> desk;
  boxed<lev::processes::berth<env>> place;

 private:
  bool has_begun_ = false;
  bool is_back_ = false;
};

}  // namespace

int main() {
  constexpr const char* one_of_two =
      "of the end of a turn and the begin of the next, one as strong will do for the host's look";
  return explorer("away", {}, {"machines/processes/berth.hpp"})
      .check<take_back<false>>("take back")
      .plant(looks_first)
      .plant(early_end)
      .plant(late_end)
      .plant(late_turn)
      .check<take_back<true>>("take back, and the worker dies")
      .plant(any_process)
      .plant(idle_will_do)
      .check<take_back_in_turn<false>>("take back in turn")
      .check<take_back_in_turn<true>>("take back in turn, and the worker dies")
      .plant(claim_unseen)
      .plant(late_claim)
      .spare("leave change seq_cst -> acq_rel", one_of_two)
      .spare("try_take change seq_cst -> acq_rel", one_of_two)
      .spare("try_take change seq_cst -> relaxed",
             "what tasks have written needs it; and what is read next here is as strong as can be")
      .end();
}
