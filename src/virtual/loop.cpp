// The turns of a loop: which event is next, which actor goes on, and how a run ends; see loop.hpp.
#include "virtual/loop.hpp"

#include <algorithm>
#include <new>

#include "virtual/clock_end.hpp"

namespace lev::virt {

namespace {
// A destructor may ask often, but one that loops until a wait succeeds would do so for ever; what
// is caught and tried again is so sooner.
constexpr unsigned refusals_max = 1'000'000;
constexpr unsigned refusal_by_throw = 1000;
}  // namespace

std::string actor::waits_for() const {
  if (has_ended_) return "has ended";
  if (why_ == nullptr) return "goes on by itself";
  std::string text = std::string("waits for ") + why_;
  if (describe_ != nullptr) text += describe_(whom_);
  return text;
}

std::string actor::was_doing() const {
  std::string text = doing_.empty() ? "" : ", at " + doing_;
  if (got_on_.count() >= 0) {
    const std::int64_t fs = got_on_.count() - home_.begun_fs_;
    text += ", got on last at " + std::to_string(fs / 1'000'000) + " ns";
  }
  return text;
}

void actor::on_event(std::uint64_t note) {
  if (note != turn_ || has_ended_) return;
  home_.next_ = this;
}

void actor::enter(void* self) {
  actor& me = *static_cast<actor*>(self);
  try {
    me.body_();
  } catch (const loop::unwound&) {
    // The run is over, and this stack is clean.
  } catch (...) {
    me.home_.fail(std::current_exception());
  }
  me.home_.finish(me);
}

namespace {
// The sum, or the end of the clock.
std::int64_t later(std::int64_t fs, virtual_time by) {
  return fs + std::min(by.count(), clock_end.count() - fs);
}
}  // namespace

loop::loop(loop_options options) : options_(options) {}

loop::~loop() = default;

actor& loop::start(std::string name, std::function<void()> body) {
  const auto number = static_cast<unsigned>(actors_.size());
  actors_.push_back(
      std::make_unique<actor>(*this, std::move(name), std::move(body), number, options_.seed));
  actor& a = *actors_.back();
  if (!a.context_.open(options_.stack_bytes, &actor::enter, &a)) {
    actors_.pop_back();
    throw std::bad_alloc();
  }
  ++alive_;
  push(now_fs_, a, a.turn_, 1);
  return a;
}

void loop::run() {
  LEV_ASSERT(current_ == nullptr);
  begun_fs_ = now_fs_;
  empty_polls_ = 0;
  over_fs_ = later(now_fs_, options_.time_max);
  late_fs_ = std::min(over_fs_, later(now_fs_, options_.progress_max));
  main_.stand_for_caller();
  if (actor* first = next()) {
    current_ = first;
    first->has_started_ = true;
    context::switch_to(main_, first->context_);
    current_ = nullptr;
  }
  end_ = now();
  drain();
  unwind();
  is_over_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void loop::push(std::int64_t at_fs, target& to, std::uint64_t note, unsigned is_work) {
  LEV_DCHECK(at_fs >= now_fs_);
  const std::uint64_t number = ++sequence_;
  const std::uint64_t drawn = options_.seed == 0 ? number : mix64(options_.seed + number);
  work_pending_ += is_work;
  heap_.push({at_fs, (drawn << 1) | is_work, &to, note});
}

// The clock moves on and the trace knows by whom.
void loop::happen(std::int64_t at_fs, std::uint64_t who, bool is_work) {
  now_fs_ = at_fs;
  ++events_;
  hash_ = mix(hash_, static_cast<std::uint64_t>(at_fs) + (who << 1) + (is_work ? 1 : 0));
  if (is_work) {
    polls_ = 0;
  } else if (work_pending_ == 0 && ++polls_ > options_.polls_max) {
    get_stuck(stuck::kind::no_progress,
              "no progress: every actor that goes on only polls, and nothing else is to happen");
  }
}

// The actor that goes on next; null when the run is over.
actor* loop::next() {
  while (!is_over_) {
    if (alive_ == 0) return nullptr;
    if (heap_.is_empty()) {
      get_stuck(stuck::kind::deadlock, "deadlock: nothing is to happen any more");
      break;
    }
    const event e = heap_.pop();
    if (is_late(e.at_fs)) {
      stop_late(e.at_fs);
      break;
    }
    const bool is_work = (e.order & 1) != 0;
    work_pending_ -= is_work ? 1 : 0;
    next_ = nullptr;
    now_fs_ = e.at_fs;
    try {
      e.to->on_event(e.note);
    } catch (...) {
      fail(std::current_exception());
    }
    happen(e.at_fs, next_ != nullptr ? next_->number + 1 : 0, is_work);
    if (next_ != nullptr && !is_over_) return next_;
  }
  return nullptr;
}

// Suspends the actor that runs for another one, or for run() if that is null; comes back when its
// turn comes, or throws when the run is over.
void loop::give_way(actor* to) {
  actor& self = *current_;
  if (to != &self) {
    current_ = to;
    if (to != nullptr) to->has_started_ = true;
    context::switch_to(self.context_, to != nullptr ? to->context_ : main_);
    current_ = &self;
  }
  ++self.turn_;
  self.is_waiting_ = false;
  self.why_ = nullptr;
  refuse_if_over();
}

// An actor of a run that is over goes no further: its stack is unwound from here. A destructor that
// would wait meanwhile does not; an actor that goes on all the same is left where it is.
bool loop::refuse_if_over() {
  if (!is_over_) return false;
  actor& self = *current_;
  const bool is_unwound = std::uncaught_exceptions() > 0;
  self.refusals_ += is_unwound ? 1 : refusal_by_throw;
  if (self.refusals_ > refusals_max) {
    self.has_ended_ = true;
    context::switch_to(self.context_, main_);
  }
  if (!is_unwound) throw unwound{};
  return true;
}

void loop::pass(virtual_time d, unsigned is_work) {
  LEV_DCHECK(current_ != nullptr);
  actor& self = *current_;
  // A step behind the end of the clock is late, whatever time_max.
  const std::int64_t left = behind_end.count() - now_fs_;
  const std::int64_t at = now_fs_ + std::clamp<std::int64_t>(d.count(), 0, left);
  if (is_work == 0 && at == now_fs_ && !is_over_) count_empty_poll();
  if (refuse_if_over()) return;
  // No event comes before that: no need to go through the heap.
  if ((heap_.is_empty() || heap_.first_at_fs() > at) && !is_late(at)) {
    happen(at, self.number + 1, is_work != 0);
    refuse_if_over();
    return;
  }
  push(at, self, self.turn_, is_work);
  give_way(next());
}

// An actor that polls and lets no time pass keeps the clock from all that is still to happen.
void loop::count_empty_poll() {
  if (std::exchange(empty_poll_fs_, now_fs_) != now_fs_) empty_polls_ = 0;
  if (++empty_polls_ > options_.polls_max)
    get_stuck(stuck::kind::no_progress, "no progress: polls that take no time stop the clock");
}

bool loop::block(const char* why, actor::describe_function describe, const void* whom) {
  LEV_DCHECK(current_ != nullptr);
  if (refuse_if_over()) return false;
  actor& self = *current_;
  self.is_waiting_ = true;
  self.why_ = why;
  self.describe_ = describe;
  self.whom_ = whom;
  give_way(next());
  return !is_over_;
}

bool loop::block_until(virtual_time until, const char* why) {
  actor& self = *current_;
  self.was_woken_ = false;
  push(until.count() > now_fs_ ? until.count() : now_fs_, self, self.turn_, 1);
  return block(why) && self.was_woken_;
}

void loop::wake_at(actor& a, virtual_time at, bool is_poll) {
  if (!a.is_waiting_) return;
  a.is_waiting_ = false;
  a.was_woken_ = true;
  push(at.count() > now_fs_ ? at.count() : now_fs_, a, a.turn_, is_poll ? 0 : 1);
}

void loop::hand_to(actor& to, const char* why) {
  if (refuse_if_over()) return;
  LEV_DCHECK(current_ != nullptr && &to != current_ && to.is_waiting_);
  actor& self = *current_;
  to.is_waiting_ = false;
  self.is_waiting_ = true;
  self.why_ = why;
  self.describe_ = nullptr;
  happen(now_fs_, to.number + 1, false);
  give_way(is_over_ ? nullptr : &to);
}

void loop::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  is_over_ = true;
}

// The last act of an actor, on its own stack.
void loop::finish(actor& self) {
  self.has_ended_ = true;
  --alive_;
  actor* to = is_over_ ? nullptr : next();
  current_ = to;
  if (to != nullptr) to->has_started_ = true;
  context::finish_to(self.context_, to != nullptr ? to->context_ : main_);
}

// Events under way when the last actor has ended still happen.
void loop::drain() {
  while (!is_over_ && !heap_.is_empty()) {
    const event e = heap_.pop();
    now_fs_ = std::min(e.at_fs, clock_end.count());
    try {
      e.to->on_event(e.note);
    } catch (...) {
      fail(std::current_exception());
    }
  }
}

// Every actor that has not ended is resumed once more, to throw; then all stacks go.
void loop::unwind() {
  is_over_ = true;
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    actor& a = *actors_[i];
    if (!a.has_ended_ && a.has_started_) {
      current_ = &a;
      context::switch_to(main_, a.context_);
      current_ = nullptr;
    } else if (!a.has_ended_) {
      a.has_ended_ = true;
      --alive_;
    }
  }
  actors_.clear();
  while (!heap_.is_empty()) heap_.pop();
  work_pending_ = 0;
  alive_ = 0;
}

std::string loop::everybody() const {
  std::string text;
  constexpr std::size_t shown_max = 40;
  std::size_t shown = 0;
  for (const auto& a : actors_) {
    if (a->has_ended_) continue;
    if (++shown > shown_max) continue;
    text += "\n  " + a->name + " " + a->waits_for() + a->was_doing();
  }
  if (shown > shown_max) text += "\n  and " + std::to_string(shown - shown_max) + " more";
  return text;
}

void loop::progress(virtual_time ahead) {
  LEV_DCHECK(current_ != nullptr);
  current_->got_on_ = now();
  const std::int64_t late = later(later(now_fs_, options_.progress_max), ahead);
  late_fs_ = std::min(over_fs_, std::max(late_fs_, late));
}

void loop::stop_late(std::int64_t at_fs) {
  if (at_fs > over_fs_) return get_stuck(stuck::kind::time_over, "the time of this run is over");
  const std::int64_t micros = options_.progress_max.count() / 1'000'000'000;
  get_stuck(stuck::kind::no_progress,
            "no progress: nobody has got on for " + std::to_string(micros) + " us");
}

void loop::get_stuck(stuck::kind kind, const std::string& text) {
  const std::int64_t ns = (now_fs_ - begun_fs_) / 1'000'000;
  const std::string at = " after " + std::to_string(ns) + " ns";
  fail(std::make_exception_ptr(stuck(kind, text + at + everybody())));
}

}  // namespace lev::virt
