// The oracle: what may have become of each task, by what it was and by what was done to it.
#include "exercise/interpret.hpp"
#include "exercise/scopes.hpp"
#include "exercise/sound.hpp"
#include "support/leaks.hpp"

#include <gtest/gtest-spi.h>

#include <cstdio>
#include <string>

namespace lev::exercise {

namespace {

const char* ending_text(ending e) {
  constexpr const char* texts[] = {"ok", "an exception", "a code", "a crash", "damage to its lane"};
  return texts[static_cast<unsigned>(e)];
}

// All that is known of one task when the program is over.
class verdict {
 public:
  verdict(world& w, std::uint32_t task)
      : w_(w),
        task_(task),
        spec_(w.plan.tasks[task]),
        r_(w.shared->tasks[task]),
        seen_(w.seen[task]),
        is_remote_(!is_local(w.plan.config.machine)) {}

  void check() {
    if (r_.what.load() != 0)
      blame(std::string(fault_text(static_cast<fault>(r_.what.load()))) + " (" +
            std::to_string(r_.detail.load()) + ")");
    if (seen_.wants_call && seen_.called_back.load() != 1)
      blame("its callback was called " + std::to_string(seen_.called_back.load()) + " times");
    if (!seen_.is_submitted) return check_refused();
    if (!is_remote_ && r_.begun.load() != r_.ended.load())
      blame("its body did not come to its end");
    if (is_remote_ && ran_too_often()) blame("ran more often than its workers died");
    if (seen_.is_collected && seen_.seen.code != status::pending) return check_outcome();
    if (!w_.is_told(task_)) return;
    if (must_run() && !ran_whole())
      blame("lost: it was neither run nor cancelled (begun " + std::to_string(r_.begun.load()) +
            ")");
  }

 private:
  void blame(const std::string& text) { w_.blame(task_name(task_) + ": " + text); }
  void check_refused() {
    if (r_.begun.load() != 0 && spec_.what != shape::bulk) blame("ran, although it was refused");
    const status code = seen_.refused;
    const bool may_be_closed = !seen_.is_child || w_.is_cancelling.load();
    const bool is_closed =
        seen_.was_closing && may_be_closed && (code == status::closed || code == status::cancelled);
    const bool is_full = code == status::would_block && seen_.may_be_full;
    const step* const by = submitter();
    // It names a ticket that another thread may have collected.
    const bool is_stale =
        code == status::stale_ticket && by != nullptr && by->after_shown != nobody;
    const bool is_late = code == status::timed_out && by != nullptr && by->by == entrance::within &&
                         seen_.may_be_full;
    if (code != status::ok && !is_closed && !is_full && !is_stale && !is_late)
      blame(std::string("was refused with ") + status_name(code));
  }
  const step* submitter() const {
    for (const block& b : w_.plan.blocks) {
      for (const step& s : b) {
        if ((s.what == verb::submit || s.what == verb::ordered) && s.a == task_) return &s;
      }
    }
    return nullptr;
  }
  std::uint32_t pieces() const { return spec_.what == shape::bulk ? spec_.pieces : 1; }
  std::uint32_t bad_count() const {
    if (spec_.end == ending::ok) return 0;
    if (spec_.what != shape::bulk) return 1;
    const std::uint32_t all = spec_.pieces >= 32 ? ~0u : (1u << spec_.pieces) - 1;
    return static_cast<std::uint32_t>(__builtin_popcount(spec_.bad_pieces & all));
  }
  bool ran_whole() const {
    if (spec_.what == shape::sliced && spec_.end != ending::ok) return r_.begun.load() != 0;
    if (spec_.what == shape::sliced) return r_.items.load() == spec_.pieces;
    if (spec_.end == ending::crash && spec_.attempts >= limit())
      return r_.begun.load() != 0 && r_.ended.load() + bad_count() >= pieces();
    if (spec_.end == ending::scribble) return r_.begun.load() != 0;
    return w_.plan.config.chaos != 0 ? r_.ended.load() >= pieces() : r_.ended.load() == pieces();
  }
  std::uint32_t limit() const {
    const std::uint32_t most = r_.attempts != 0 ? r_.attempts : w_.plan.config.max_attempts;
    return may_rerun() ? most : 1;
  }
  bool may_rerun() const { return spec_.may_rerun && !w_.changes_inputs(task_); }
  // A body in a worker process begins once, and once more for each death.
  bool ran_too_often() const {
    const bool is_known = !w_.plan.drops_runtime && spec_.what != shape::sliced;
    return is_known && r_.begun.load() > pieces() + w_.deaths;
  }
  bool any_dies() const {
    if (w_.plan.config.chaos != 0) return true;
    for (const task_spec& t : w_.plan.tasks) {
      if (t.end == ending::crash || t.end == ending::scribble) return true;
    }
    return false;
  }
  bool may_be_cancelled() const { return seen_.cancel_asked.load() || w_.is_cancelling.load(); }
  bool predecessor_failed() const {
    for (std::uint64_t left = r_.after; left != 0; left &= left - 1) {
      const auto other = static_cast<std::uint32_t>(__builtin_ctzll(left));
      if (!verdict(w_, other).is_good() || w_.may_be_ended(other)) return true;
    }
    return false;
  }
  bool is_good() const {
    if (spec_.what == shape::sliced)
      return r_.items.load() == spec_.pieces && spec_.end == ending::ok;
    return w_.plan.config.chaos != 0 ? r_.good.load() >= pieces() : r_.good.load() == pieces();
  }
  // A made task with strided memory needs a ticket of its own.
  bool may_lack_tickets() const { return spec_.takes_more() && may_be_full(w_); }
  bool must_run() const {
    return !may_be_cancelled() && !predecessor_failed() && w_.plan.config.chaos == 0 &&
           !may_lack_tickets();
  }

  void check_outcome() {
    const status code = seen_.seen.code;
    const std::uint32_t begun = r_.begun.load();
    if (code == status::ok) {
      if (!is_good())
        blame("ended with ok, but did not run to a good end (begun " + std::to_string(begun) + ")");
    } else if (code == status::task_failed) {
      check_failure();
    } else if (code == status::dependency_failed) {
      if (begun != 0) blame("ended with dependency_failed, but ran");
      if (!predecessor_failed())
        blame("ended with dependency_failed, but all it comes after ended with ok");
    } else if (code == status::cancelled) {
      if (!may_be_cancelled()) blame("was cancelled, though nobody asked for it");
      // One that was to be run again, as its worker had died, may be cancelled then.
      const bool may_have_begun =
          spec_.what != shape::plain || (is_remote_ && any_dies()) || w_.may_be_ended(task_);
      if (begun != 0 && !may_have_begun) blame("was cancelled, but ran");
    } else if (code == status::poison) {
      check_poison();
    } else if (code == status::worker_died) {
      const bool is_killed =
          spec_.end == ending::crash || spec_.end == ending::scribble || w_.plan.config.chaos != 0;
      if (!is_killed || may_rerun()) blame("ended with worker_died");
    } else {
      blame(std::string("ended with ") + status_name(code));
    }
  }
  void check_poison() {
    // A piece of several rows, of a task or of a bulk, is copied if they do not lie one behind the
    // other, and so may run again; one of one row may be changed in place.
    const bool may_be_copied = spec_.may_rerun && spec_.what != shape::plain;
    const bool is_deadly =
        spec_.end == ending::scribble ||
        (spec_.end == ending::crash && spec_.attempts >= limit() && (may_be_copied || may_rerun()));
    if (!is_deadly && w_.plan.config.chaos == 0)
      blame("ended with poison, though it ends with " + std::string(ending_text(spec_.end)));
    if (spec_.what == shape::sliced) check_element();
  }
  // The report names elements with the bad one among them; where tickets are never short, that one
  // alone, and all others are done.
  void check_element() {
    unsigned long long first = 0;
    unsigned long long end = 0;
    const std::size_t at = seen_.text.find("elements [");
    if (at != std::string::npos)
      std::sscanf(seen_.text.c_str() + at, "elements [%llu, %llu)", &first, &end);
    if (first > spec_.bad_element || spec_.bad_element >= end)
      return blame("does not name element " + std::to_string(spec_.bad_element) + ": \"" +
                   seen_.text + "\"");
    const bool is_cut = !spec_.has_hooks && w_.plan.config.tickets >= 256 && !may_be_cancelled();
    if (is_cut && (end != first + 1 || r_.items.load() + 1 != spec_.pieces))
      blame("was not cut down to its bad element: \"" + seen_.text + "\", done " +
            std::to_string(r_.items.load()));
  }
  void check_failure() {
    if (may_lack_tickets()) return;
    if (spec_.end != ending::throws && spec_.end != ending::code)
      return blame("ended with task_failed, though its body did not fail");
    if (spec_.what == shape::bulk) {
      const std::uint32_t wanted = bad_count();
      // A piece whose worker was killed may be out of attempts, and is one more.
      const bool may_be_more = w_.plan.config.chaos != 0 && seen_.seen.failures > wanted;
      if (seen_.seen.failures != wanted && seen_.seen.failures != 0 && !may_be_more &&
          !may_be_cancelled())
        blame("says that " + std::to_string(seen_.seen.failures) + " pieces failed, not " +
              std::to_string(wanted));
      return;
    }
    if (spec_.end == ending::throws && seen_.text != "task " + std::to_string(task_))
      blame("threw \"task " + std::to_string(task_) + "\", seen as \"" + seen_.text + "\"");
    if (spec_.end == ending::code && seen_.seen.task_code != static_cast<int>(task_) + 1)
      blame("returned " + std::to_string(task_ + 1) + ", seen as " +
            std::to_string(seen_.seen.task_code));
  }

  world& w_;
  std::uint32_t task_;
  const task_spec& spec_;
  const record& r_;
  const sighting& seen_;
  bool is_remote_;
};

}  // namespace

bool may_all_wait(const program& p) noexcept {
  std::uint32_t all = waiters(p);
  for (const task_spec& t : p.tasks) {
    if (t.body == nobody) continue;
    for (const step& s : p.blocks[t.body]) all += s.what == verb::yield;
  }
  const std::uint32_t contexts = p.config.contexts == 0 ? 16 : p.config.contexts;
  return all >= contexts * static_cast<std::uint32_t>(p.config.workers);
}

void check_closed(world& w) {
  testing::TestPartResultArray found;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &found);
    test::expect_nothing_leaked(*w.home);
  }
  for (int i = 0; i < found.size(); ++i)
    w.blame(std::string("left: ") + found.GetTestPartResult(i).message());
}

void check_world(world& w) {
  if (w.coroutines.load() != 0)
    w.blame(std::to_string(w.coroutines.load()) + " coroutines were never resumed");
  for (std::uint32_t t = 0; t < w.plan.tasks.size(); ++t) verdict(w, t).check();
  for (unsigned m = 0; m < mutexes_max; ++m) {
    if (w.shared->holders[m].load() != 0) w.blame("a mutex is held at the end");
  }
  const std::uint32_t ticks = w.shared->ticks.load();
  const std::uint32_t ticks_most = w.ticks_expected.load();
  if (w.plan.config.chaos != 0 || w.plan.config.is_confined) {
    // Workers that kill themselves run tasks again, or not at all; confined ones cannot count.
  } else if (ticks > ticks_most || ticks + w.ticks_missing.load() < ticks_most)
    w.blame(std::to_string(ticks) + " of " + std::to_string(ticks_most) + " tasks of visitors ran");
  w.check_memory();
  check_scopes(w);
}

}  // namespace lev::exercise
