// A worker of a shared pool sleeps until any of its hosts posts a task or gives an order, or its
// keeper sends a note: it says on each lane that it sleeps, and sleeps on one word, its alarm.
// Whatever comes while it falls asleep, and whoever else comes then, it is woken.
//
// The worker is await(), sleep() and read_notes() of machines/processes/serve.cpp and may_sleep()
// of client.hpp; the others are give_order() and wake() of pool.cpp, post() of its callers and
// send_note() of zygote_workers.cpp.
#include "explore.hpp"

#include "machines/processes/alarm.hpp"
#include "machines/processes/berth.hpp"
#include "machines/processes/lane.hpp"

namespace {

using namespace model;
using lane = lev::processes::lane<env>;

constexpr fault_name one_look = "sleep: looks at the first lane only";
constexpr fault_name last_decides = "sleep: the last lane alone says whether to sleep";
constexpr fault_name early_look = "sleep: looks at the lanes before it says that it sleeps";
constexpr fault_name late_alarm = "sleep: sets the alarm when it has looked at everything";
constexpr fault_name notes_unseen = "sleep: does not look at the notes";
constexpr fault_name one_lane_told = "sleep: says on the first lane only that it sleeps";
constexpr fault_name orders_unseen = "may_sleep: does not look at the orders";
constexpr fault_name note_unwoken = "send_note: wakes nobody";
constexpr fault_name note_woken_early = "send_note: wakes, and counts the note then";
constexpr fault_name order_unwoken = "give_order: wakes nobody";
constexpr fault_name unrung = "wake: wakes, and does not ring";
constexpr fault_name late_ring = "wake: wakes before it rings";

constexpr std::uint32_t lane_count = 2;
constexpr std::uint32_t tasks_max = 3;  // of one host

struct hall {
  hall() {
    for (lane& l : lanes) l.orders.store(lane::order_work, std::memory_order_relaxed);
  }

  // The hosts' side.
  void post(std::uint32_t host, std::uint32_t begin, std::uint32_t count = 1) {
    for (std::uint32_t n = begin; n != begin + count; ++n)
      contents[host][n - 1].set(static_cast<int>(n));
    if (lanes[host].post(begin, count)) wake();
  }
  void give_order(std::uint32_t host, std::uint32_t order) {
    lanes[host].orders.store(order, std::memory_order_seq_cst);
    if (lanes[host].wake() && !fault(order_unwoken)) wake();
  }
  void wake() {
    if (!fault(unrung) && !fault(late_ring)) alarm.ring();
    kernel.wake_word(alarm.rings);
    if (fault(late_ring)) alarm.ring();
  }

  // The keeper's side.
  void send_note() {
    sent.fetch_add(1, std::memory_order_acq_rel);
    if (fault(note_woken_early)) wake();
    place.announce_note();
    if (!fault(note_unwoken) && !fault(note_woken_early)) wake();
  }

  // The worker's side: it goes on until it has had so many tasks of each host and so many notes.
  void serve(std::uint32_t of_first, std::uint32_t of_second, std::uint32_t notes) {
    while (next[0] <= of_first || next[1] <= of_second || notes_read < notes) {
      read_notes();
      if (take(0) || take(1)) continue;
      if (next[0] > of_first && next[1] > of_second && notes_read == notes) break;
      sleep();
    }
  }
  bool is_ordered(std::uint32_t host) {
    return lanes[host].orders.load(std::memory_order_relaxed) == lane::order_work;
  }
  bool take(std::uint32_t host) {
    if (!lanes[host].has_record(next[host]) || !is_ordered(host)) return false;
    const int found = contents[host][next[host] - 1].get();
    require(found == static_cast<int>(next[host]), "the task is there");
    ++next[host];
    return true;
  }
  void read_notes() {
    const std::uint32_t now = place.notes.load(std::memory_order_acquire);
    if (now == notes_seen) return;
    notes_read = sent.load(std::memory_order_acquire);
    notes_seen = now;
  }
  bool may_sleep(std::uint32_t host) {
    const std::uint32_t now = lanes[host].orders.load(std::memory_order_seq_cst);
    if (fault(orders_unseen))
      return !is_ordered_before[host] || !lanes[host].has_record(next[host]);
    if (now == lane::order_wait) return true;
    return now != lane::order_stop && !lanes[host].has_record(next[host]);
  }
  bool may_sleep() {
    bool may = fault(notes_unseen) || !place.has_news(notes_seen);
    for (std::uint32_t i = 0; i < (fault(one_look) ? 1 : lane_count); ++i)
      may = may_sleep(i) && (may || fault(last_decides));
    return may;
  }
  void sleep() {
    for (std::uint32_t i = 0; i < lane_count; ++i) is_ordered_before[i] = is_ordered(i);
    const bool early = fault(early_look) && may_sleep();
    std::uint32_t rings = alarm.set();
    for (lane& l : lanes) {
      if (&l == &lanes[0] || !fault(one_lane_told)) l.fall_asleep();
    }
    const bool may = fault(early_look) ? early : may_sleep();
    if (fault(late_alarm)) rings = alarm.set();
    if (may) {
      kernel.wait_word(alarm.rings, rings, sleeper::never);
      // The worker sees from then on what the kernel sees.
      alarm.rings.fetch_add(0, std::memory_order_relaxed);
    }
    for (lane& l : lanes) l.wake_up();
  }

  lane lanes[lane_count];
  lev::processes::berth<env> place;
  lev::processes::alarm<env> alarm;
  atomic<std::uint32_t> sent;
  sleeper kernel;
  plain<int> contents[lane_count][tasks_max];
  // The worker's own.
  std::uint32_t next[lane_count] = {1, 1};
  bool is_ordered_before[lane_count] = {};
  std::uint32_t notes_seen = 0;
  std::uint32_t notes_read = 0;
};

struct two_hosts : scenario<two_hosts, 3> {
  void thread(unsigned index) { index == 2 ? h->serve(1, 1, 0) : h->post(index, 1); }
  boxed<hall> h;
};

// Tasks that travel together: one look whether the worker sleeps is enough.
struct together : scenario<together, 2> {
  void thread(unsigned index) { index == 1 ? h->serve(tasks_max, 0, 0) : h->post(0, 1, tasks_max); }
  boxed<hall> h;
};

struct host_and_keeper : scenario<host_and_keeper, 3> {
  void thread(unsigned index) {
    if (index == 0) return h->post(1, 1);
    if (index == 2) return h->serve(0, 1, 2);
    h->send_note();
    h->send_note();
  }
  boxed<hall> h;
};

// The worker is not yet to begin the task that is there.
struct order_to_work : scenario<order_to_work, 3> {
  void before() { h->lanes[0].orders.store(lane::order_wait, std::memory_order_relaxed); }
  void thread(unsigned index) {
    if (index == 0) return h->give_order(0, lane::order_work);
    if (index == 1) return h->post(0, 1);
    h->serve(1, 0, 0);
  }
  boxed<hall> h;
};

struct all_of_them : scenario<all_of_them, 4> {
  static constexpr bool is_bounded = false;
  void thread(unsigned index) {
    if (index < lane_count) return h->post(index, 1);
    if (index == 2) return h->send_note();
    h->serve(1, 1, 1);
  }
  boxed<hall> h;
};

constexpr const char* in_order = "no store is moved before the count of the note here";
constexpr const char* picks_one = "the load before it has looked; it picks one of several wakers";

}  // namespace

int main() {
  return explorer("pool_sleep", {.random = 20'000, .random_planted = 8'000},
                  {"machines/processes/alarm.hpp", "machines/processes/lane.hpp"})
      .check<two_hosts>("two hosts")
      .check<together>("together")
      .plant("lane: post() publishes the first of several first")
      .check<host_and_keeper>("host and keeper")
      .check<order_to_work>("order to work")
      .check<all_of_them>("all of them")
      .plant("lane: post() wakes before the record is there")
      .plant(one_look)
      .plant(last_decides)
      .plant(early_look)
      .plant(late_alarm)
      .plant(notes_unseen)
      .plant(one_lane_told)
      .plant(orders_unseen)
      .plant(note_unwoken)
      .plant(note_woken_early)
      .plant(order_unwoken)
      .plant(unrung)
      .plant(late_ring)
      .spare("set load acquire -> relaxed", in_order)
      .spare("ring change release -> relaxed", in_order)
      .spare("wake change seq_cst -> acq_rel", picks_one)
      .spare("wake change seq_cst -> relaxed", picks_one)
      .end();
}
