// loop: actors and events under one virtual clock, in one order for each seed.
//
//   1. start() makes an actor: a function with a stack, a name and a random source of its own.
//   2. run() takes the earliest event, sets the clock to it, and lets it happen: an actor goes on,
//      or a part of a machine does what was due.
//   3. An actor goes on until it waits for time (wait, poll) or for another (block, wake). It
//      takes the next event itself, so that a change of actors is one switch of contexts.
//   4. run() ends when all actors have ended. When none can go on, when all only poll and no
//      other event is left, or when none has reported progress for too long, it throws an error
//      that says what each one waits for; the stacks are unwound.
//
// Every event goes into the trace hash: its time, what it happened to and the order. Equal seeds
// give equal hashes. With a seed other than 0 the order of events at one time is drawn from it.
#pragma once

#include <leveret/virtual_time.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "context/context.hpp"
#include "virtual/event_heap.hpp"

namespace lev::virt {

class loop;

// Thrown by run() when nothing could ever happen again; the text names each actor.
class stuck : public std::runtime_error {
 public:
  enum class kind { deadlock, no_progress, time_over };
  stuck(kind k, const std::string& text) : std::runtime_error(text), why(k) {}
  kind why;
};

class actor final : public target {
 public:
  using describe_function = std::string (*)(const void* whom);

  actor(loop& home, std::string called, std::function<void()> body, unsigned counted,
        std::uint64_t seed)
      : name(std::move(called)),
        number(counted),
        random(mix64(seed) + counted),
        home_(home),
        body_(std::move(body)) {}

  // What it waits for, in words, or "goes on" when it waits for time alone; and what it is doing.
  std::string waits_for() const;
  std::string was_doing() const;  // its times are of the run

  const std::string name;
  const unsigned number;
  random_source random;

 private:
  friend class loop;
  void on_event(std::uint64_t note) override;
  static void enter(void* self);

  loop& home_;
  std::function<void()> body_;
  context context_;
  std::uint64_t turn_ = 0;  // of its waits: an event of an earlier one is stale
  const char* why_ = nullptr;
  describe_function describe_ = nullptr;
  const void* whom_ = nullptr;
  std::string doing_;        // a copy: the caller's text may be gone when the run ends
  virtual_time got_on_{-1};  // when it last reported progress
  bool is_waiting_ = false;  // in block(), and not woken yet
  bool was_woken_ = false;
  bool has_ended_ = false;
  bool has_started_ = false;
  unsigned refusals_ = 0;  // of waits since the run is over, weighed
};

struct loop_options {
  std::uint64_t seed = 0;
  std::size_t stack_bytes = std::size_t{256} << 10;
  // Polls in a row with no other event left, or that take no time, after which a run is said to
  // make no progress.
  std::uint64_t polls_max = 2'000'000;
  virtual_time time_max = virtual_time::max() / 2;  // of each run
  // Time without a report of progress, after which a run is said to make no progress.
  virtual_time progress_max = virtual_time::max() / 2;
};

class loop {
 public:
  explicit loop(loop_options options = {});
  ~loop();
  loop(loop&&) = delete;

  // Makes an actor that starts now, or when run() is called. It lives until run() returns. Throws
  // std::bad_alloc when there is no memory for its stack.
  actor& start(std::string name, std::function<void()> body);

  // Until all actors have ended. Throws `stuck`, or what an actor or an event has thrown.
  void run();

  virtual_time now() const { return virtual_time(now_fs_); }
  // When the last actor of the last run ended; events under way may have come later.
  virtual_time end() const { return end_; }
  // The actor that runs; null in run() itself.
  actor* current() const { return current_; }
  std::uint64_t hash() const { return hash_; }
  std::uint64_t events() const { return events_; }

  // For an actor whose run is over: throws, so that its stack is unwound; true when that is under
  // way already, in a destructor. The calls below do the same, but return then without a wait: a
  // loop that waits for something must end then.
  bool refuse_if_over();

  // For an actor: time passes. poll() says that the actor only looks whether something changed.
  void wait(virtual_time d) { pass(d, 1); }
  void poll(virtual_time d) { pass(d, 0); }

  // For an actor: blocks until it is woken. `why` is used when that never happens: "waits for " and
  // the words of `describe`, if there is one, for `whom`. False when the run is over.
  [[nodiscard]] bool block(const char* why, actor::describe_function describe = nullptr,
                           const void* whom = nullptr);
  // The same, or until that time: false when it was not woken.
  bool block_until(virtual_time until, const char* why);
  // Wakes an actor that blocks; no effect on another. It goes on at `at`, or now.
  void wake(actor& a) { wake_at(a, now()); }
  // is_poll: it was waiting for its turn to look.
  void wake_at(actor& a, virtual_time at, bool is_poll = false);
  bool is_blocked(const actor& a) const { return a.is_waiting_; }

  // For an actor: the other, which blocks, goes on in its place and at once; this one blocks.
  void hand_to(actor& next, const char* why);

  // Posts an event to `to` for a time that is not before now.
  void post(virtual_time at, target& to, std::uint64_t note) { push(at.count(), to, note, 1); }

  // For an actor: it made progress, and its next step may take as long as `ahead`.
  void progress(virtual_time ahead);
  // For an actor: what it is doing, for the text of an error; null for nothing.
  void doing(const char* what) { current_->doing_ = what == nullptr ? "" : what; }

  // Something changed that the hash should know.
  void note(std::uint64_t what) { hash_ = mix(hash_, what); }
  // Ends the run with an error.
  void fail(std::exception_ptr error);

 private:
  friend class actor;
  struct unwound {};  // thrown into actors that cannot go on

  static std::uint64_t mix(std::uint64_t hash, std::uint64_t what) {
    hash = (hash ^ what) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
  }
  void push(std::int64_t at_fs, target& to, std::uint64_t note, unsigned is_work);
  void pass(virtual_time d, unsigned is_work);
  void count_empty_poll();
  void happen(std::int64_t at_fs, std::uint64_t who, bool is_work);
  bool is_late(std::int64_t at_fs) const { return at_fs > late_fs_; }
  void stop_late(std::int64_t at_fs);
  actor* next();
  void give_way(actor* to);
  void finish(actor& self);
  void drain();
  void unwind();
  std::string everybody() const;
  void get_stuck(stuck::kind kind, const std::string& text);

  loop_options options_;
  event_heap heap_;
  std::vector<std::unique_ptr<actor>> actors_;
  context main_;
  actor* current_ = nullptr;
  actor* next_ = nullptr;  // set by the event of an actor
  std::int64_t now_fs_ = 0;
  std::int64_t begun_fs_ = 0;  // when this run began
  std::int64_t over_fs_ = 0;   // an event later than the time of this run
  std::int64_t late_fs_ = 0;   // or than that of those who get on ends the run
  virtual_time end_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325u;
  std::uint64_t work_pending_ = 0;  // events in the heap that are not polls
  std::uint64_t polls_ = 0;         // since something else happened
  std::uint64_t empty_polls_ = 0;   // that took no time, at the time of the last one
  std::int64_t empty_poll_fs_ = 0;
  std::size_t alive_ = 0;
  bool is_over_ = false;
  std::exception_ptr error_;
};

}  // namespace lev::virt
