// berth: a keeper takes a member out of a worker of a shared pool, or kills the worker because a
// task has overrun its time, while the worker serves two members. No task of a member begins when
// it has been taken out, and none goes on; a worker that is killed is in no other member's task,
// and begins none; and it hears of every member that was taken out.
//
// The two sides are run_shared(), serve_only(), be_free(), read_notes() and detach() of
// machines/processes/serve.cpp, and drop_member() of zygote_members.cpp with send_note() and
// kill_if_serving() of zygote_workers.cpp, without what does not concern the berth, or bodies that
// overwrite it. A kill comes at
// any step of the worker after the keeper has sent it.
#include "explore.hpp"

#include "machines/processes/berth.hpp"

namespace {

using namespace model;

// A compare-exchange that fails is a load, which may come late. Relacy's sees the newest value.
struct late_env : env {
  template <class T>
  struct atomic : model::atomic<T> {
    using model::atomic<T>::atomic;
    bool compare_exchange_strong(T& expected, T value, std::memory_order o,
                                 where w = where::current()) {
      const auto failure = o == std::memory_order_seq_cst   ? o
                           : o == std::memory_order_acq_rel ? std::memory_order_acquire
                           : o == std::memory_order_release ? std::memory_order_relaxed
                                                            : o;
      const T now = this->load(failure, w);
      if (now == expected) return model::atomic<T>::compare_exchange_strong(expected, value, o, w);
      expected = now;
      return false;
    }
  };
};
using berth = lev::processes::berth<late_env>;

constexpr fault_name doom_first = "part: looks whom the worker serves before the note counts";
constexpr fault_name tell_first = "send_note: the note counts before it is sent";
constexpr fault_name only_told = "part: leaves a worker that serves the member alone";
constexpr fault_name unasked = "kill_if_serving: kills whomever the worker serves";
constexpr fault_name early_look = "run_shared: looks for a note before it says whom it serves";
constexpr fault_name looks_once =
    "run_shared: looks for a note only when it turns to another member";
constexpr fault_name news_ignored = "run_shared: runs the task though there is a note";
constexpr fault_name unfree = "run_shared: says whom it serves when the task has begun";
constexpr fault_name doomed_goes_on = "serve_only: goes on when its kill is certain";
constexpr fault_name half_read = "read_notes: reads one note and takes all for read";

constexpr std::uint32_t members = 2;
constexpr std::uint32_t nobody = members;

class office {
 public:
  // The worker's side: it runs tasks until it has heard that both are gone, or
  // is killed.
  void serve() {
    while (is_alive() && (is_attached_[0] || is_attached_[1])) {
      read_notes();
      const std::uint32_t member = next_member();
      if (member != nobody) {
        run_shared(member);
      } else {
        serve_only(0);
      }
      env::pause();
    }
    is_dead.store(1, std::memory_order_release);
  }

  // The keeper's side.
  void part(std::uint32_t member) {
    if (fault(doom_first)) kill_if_serving(member);
    if (fault(tell_first)) place.announce_note();
    notes.fetch_add(1u << member * 8, std::memory_order_acq_rel);
    if (!fault(tell_first)) place.announce_note();
    if (!fault(doom_first) && !fault(only_told)) kill_if_serving(member);
    // A store that is neither atomic nor `plain` is no step: it belongs to the step before.
    is_parted_[member] = true;
    if (killed_for_ != nobody) return;
    require(running_ != member, "no task of the member goes on");
    memory[member].set(1);  // what the member's tasks wrote to is used for something else
  }
  void kill_if_serving(std::uint32_t member) {
    if (!place.doom(member) && !fault(unasked)) return;
    require(running_ == nobody || running_ == member, "killed in a task of another member's");
    killed_for_ = member;
    kill.store(1, std::memory_order_release);
  }
  void reap() {
    while (is_dead.load(std::memory_order_acquire) == 0) env::pause();
    for (std::uint32_t m = 0; m < members; ++m) memory[m].set(2);
  }

 private:
  static constexpr std::uint32_t owners[] = {0, 1, 1, 0};  // of the tasks

  bool is_alive() { return kill.load(std::memory_order_relaxed) == 0; }
  std::uint32_t next_member() {
    for (; next_ < std::size(owners); ++next_) {
      if (is_attached_[owners[next_]]) return owners[next_];
    }
    return nobody;
  }
  void read_notes() {
    const std::uint32_t now = place.notes.load(std::memory_order_acquire);
    if (now == notes_seen_) return;
    const std::uint32_t sent = notes.load(std::memory_order_acquire);
    for (std::uint32_t m = 0; m < members; ++m) {
      if (!is_attached_[m] || (sent >> m * 8 & 1) == 0) continue;
      if (served_ == m + 1 && !serve_only(0)) return;
      is_attached_[m] = false;
      if (fault(half_read)) break;
    }
    notes_seen_ = now;
  }
  // False: it was killed meanwhile.
  bool serve_only(std::uint32_t served) {
    if (served == served_) return true;
    while (!place.turn(served_, served) && !fault(doomed_goes_on)) {
      if (!is_alive()) return false;
      env::pause();
    }
    served_ = served;
    return true;
  }
  void run_shared(std::uint32_t member) {
    const bool is_new = fault(early_look) && place.has_news(notes_seen_);
    const bool is_same = served_ == member + 1;
    if (!fault(unfree) && !serve_only(member + 1)) return;
    const bool looks = !fault(early_look) && !(fault(looks_once) && is_same);
    if (is_new || (looks && place.has_news(notes_seen_) && !fault(news_ignored))) return;
    require(!is_parted_[member], "no task of a member begins that was taken out");
    require(killed_for_ == nobody || killed_for_ == member, "killed for one, and serves another");
    ++next_;
    running_ = member;
    memory[member].set(memory[member].get());
    if (fault(unfree)) static_cast<void>(serve_only(member + 1));
    running_ = nobody;
  }

 public:
  berth place;
  atomic<std::uint32_t> notes;  // those sent: a byte for each member
  atomic<std::uint32_t> kill;
  atomic<std::uint32_t> is_dead;
  plain<int> memory[members];

 private:
  // The worker's own.
  bool is_attached_[members] = {true, true};
  std::uint32_t notes_seen_ = 0;
  std::uint32_t served_ = 0;
  std::uint32_t next_ = 0;
  // The truth, for the checks.
  std::uint32_t running_ = nobody;
  std::uint32_t killed_for_ = nobody;
  bool is_parted_[members] = {false, false};
};

// Both members die, one after the other.
struct detach : scenario<detach, 2> {
  void thread(unsigned index) {
    if (index == 0) return o->serve();
    o->part(0);
    o->part(1);
    o->reap();
  }
  boxed<office> o;
};

// A task of member 1 overruns its time; then both members die.
struct time_limit : scenario<time_limit, 2> {
  void thread(unsigned index) {
    if (index == 0) return o->serve();
    o->kill_if_serving(1);
    o->part(0);
    o->part(1);
    o->reap();
  }
  boxed<office> o;
};

constexpr const char* only_waits = "who is refused a turn only waits for its end";
constexpr const char* has_found = "only a doom() that finds another member must be sure of it";

}  // namespace

int main() {
  return explorer("berth", {}, {"machines/processes/berth.hpp"})
      .check<detach>("detach")
      .check<time_limit>("time limit")
      .plant("berth: turn() is a plain store")
      .plant("berth: doom() does not mark the berth")
      .plant(doom_first)
      .plant(tell_first)
      .plant(only_told)
      .plant(unasked)
      .plant(early_look)
      .plant(looks_once)
      .plant(news_ignored)
      .plant(unfree)
      .plant(doomed_goes_on)
      .plant(half_read)
      .spare("turn load seq_cst -> acquire", only_waits)
      .spare("turn load seq_cst -> relaxed", only_waits)
      .spare("doom change seq_cst -> acq_rel", has_found)
      .end();
}
