// Finds the best number of items in flight while the items run:
//
//   1. Trying: 24, 48, 1 and 16 in turns, three trials each, of which the shortest counts (a trial
//      may be interrupted, or be the first to touch the data).
//   2. Keeping: the best one runs, in pieces of about a millisecond.
//   3. Retrying: a share of the time kept is put by for trials of each of the others; one is made
//      when what it is likely to lose is there. When the time per item changes, the others are not
//      known any more, and one is tried at once.
//
// An answer costs little where it is clear and matters little where it is not: a trial loses the
// difference to the best, so close rivals are tried often and distant ones seldom.
//
// Where all fits the second-level cache 1 is best; up to the third one's size, and for trees, 16 or
// 24; beyond it, by CPU, 24 (Zen 5; lists, trees, hash tables; 2026-11-21) or more (Zen 4;
// docs/benchmark-log.md).
#include <leveret/interleave.hpp>

#include <algorithm>
#include <chrono>

namespace lev::detail {
namespace {

// Rivals within this ratio are compared in trials this many times as long.
constexpr double close_ratio = 1.5;
constexpr std::size_t longer_if_close = 16;
// Long against reading the clock (25 ns) and against filling and draining 24 strands (about 0.5
// us); short against a call that is worth tuning.
constexpr double trial_ns = 20'000;
constexpr double keep_ns = 1'000'000;
// The cost allowed for trials of the others: 0.5 % of the time in all.
constexpr double credit_share = 0.005 / (tuner::width_count - 1);
// Pieces may be disturbed, and are never too quick: what is known of the best rises by this share
// of a longer time, and falls to a shorter one at once. Else a rival would look good beside it.
constexpr double rise_share = 0.125;
// A change of the time per item by so much, in two pieces running, means another kind of data.
constexpr double drift_ratio = 1.4;
constexpr double drift_pause_ns = 20'000'000;
constexpr std::size_t first_items = 32;
constexpr std::size_t trial_items_max = std::size_t{1} << 20;
// A trial with one in flight need not fill and drain; and it is the one that may take 8 times as
// long.
constexpr std::size_t shorter_alone = 4;

constexpr std::uint8_t alone = 0;
constexpr std::uint8_t first_tried = 2;
constexpr std::uint8_t first_turns = 3 * tuner::width_count;

// The next of the widths, in turns.
constexpr std::uint8_t after(std::uint8_t which) noexcept {
  return static_cast<std::uint8_t>((which + 1u) % tuner::width_count);
}

}  // namespace

std::uint64_t tuner::now_ns() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::size_t tuner::trial_goal(unsigned which) const noexcept {
  const std::size_t items = std::max(trial_items_, first_items);
  const bool is_close = stage_ != stage::trying && which != best_ && item_ns_[which] != 0 &&
                        item_ns_[which] < item_ns_[best_] * close_ratio;
  if (is_close) return items * longer_if_close;
  return which == alone ? items / shorter_alone : items;
}

tuner::plan tuner::next(std::size_t items_left) noexcept {
  if (stage_ == stage::fixed) {
    planned_items_ = items_left;
    return {1, items_left};
  }
  const std::size_t goal = stage_ == stage::keeping ? std::max(keep_items_, first_items)
                                                    : trial_goal(current_) - done_items_;
  planned_items_ = std::min(goal, items_left);
  return {widths[current_], planned_items_};
}

void tuner::took(std::uint64_t ns) noexcept {
  if (stage_ == stage::fixed) return;
  done_items_ += planned_items_;
  done_ns_ += static_cast<double>(ns);
  if (done_items_ < trial_goal(current_)) return;
  const double items_ns = done_ns_ / static_cast<double>(done_items_);
  const double ns_of_all = done_ns_;
  done_items_ = 0;
  done_ns_ = 0;
  if (stage_ == stage::keeping) {
    keep(items_ns, ns_of_all);
    return;
  }
  double& known_ns = item_ns_[current_];
  const bool is_first = known_ns == 0;
  // Two readings of the clock may be equal.
  const double measured_ns = std::max(items_ns, 1e-3);
  known_ns = is_first || stage_ == stage::retrying ? measured_ns : std::min(known_ns, measured_ns);
  if (stage_ == stage::trying) {
    end_first_trial(ns_of_all);
  } else if (!is_first) {
    choose();
  }
  // A first trial may have had to map stacks: it is made again.
}

void tuner::end_first_trial(double ns) noexcept {
  if (current_ == first_tried && ns < trial_ns / 2 && trial_items_ < trial_items_max) {
    // Too short to tell: try again, longer, and forget the measurements so far.
    trial_items_ = std::max(trial_items_, first_items) * 4;
    forget();
    turn_ = 0;
    return;
  }
  ++turn_;
  if (turn_ == first_turns) return choose();
  current_ = after(current_);
}

void tuner::forget() noexcept {
  std::fill(std::begin(item_ns_), std::end(item_ns_), 0.0);
}

void tuner::choose() noexcept {
  const std::uint8_t before = best_;
  for (std::uint8_t which = 0; which < width_count; ++which) {
    const bool is_known = item_ns_[which] != 0;
    if (is_known && (item_ns_[best_] == 0 || item_ns_[which] < item_ns_[best_])) best_ = which;
  }
  current_ = best_;
  stage_ = stage::keeping;
  if (best_ != before || keep_items_ == 0) keep_items_ = std::max(trial_items_, first_items);
  odd_chunks_ = 0;
}

void tuner::keep(double items_ns, double ns) noexcept {
  double& known_ns = item_ns_[best_];
  const double ratio = items_ns / known_ns;
  const bool is_odd = ratio > drift_ratio || ratio * drift_ratio < 1;
  odd_chunks_ = is_odd ? static_cast<std::uint8_t>(odd_chunks_ + 1) : std::uint8_t{0};
  if (!is_odd || odd_chunks_ > 1) {
    const double share = items_ns < known_ns ? 1 : rise_share;
    known_ns = std::max(known_ns + (items_ns - known_ns) * share, 1e-3);
  }
  if (ns < keep_ns / 2 && keep_items_ < trial_items_max * 64) keep_items_ *= 2;
  if (ns > keep_ns * 2 && keep_items_ > first_items) keep_items_ /= 2;
  for (double& credit : credit_ns_) credit = std::min(credit + ns * credit_share, trial_ns * 50);
  drift_ns_ += ns;
  if (odd_chunks_ > 1 && drift_ns_ > drift_pause_ns) {
    drift_ns_ = 0;
    // The known times are of other data.
    forget();
    known_ns = std::max(items_ns, 1e-3);
    return start_trial(after(best_));
  }
  for (unsigned which = 0; which < width_count; ++which) {
    if (which != best_ && trial_loss_ns(which) < credit_ns_[which]) return start_trial(which);
  }
}

double tuner::trial_loss_ns(unsigned which) const noexcept {
  const double best_ns = item_ns_[best_];
  const double other_ns = item_ns_[which] == 0 ? 2 * best_ns : item_ns_[which];
  // At least a tenth of the trial: it fills and drains. An interrupted trial, which looks ever so
  // bad, must not be the last.
  const double lost_ns = std::clamp(other_ns - best_ns, best_ns / 10, best_ns * 10);
  return lost_ns * static_cast<double>(trial_goal(which));
}

void tuner::start_trial(unsigned which) noexcept {
  credit_ns_[which] = std::max(credit_ns_[which] - trial_loss_ns(which), 0.0);
  current_ = static_cast<std::uint8_t>(which);
  stage_ = stage::retrying;
}

}  // namespace lev::detail
