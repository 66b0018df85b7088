// See pool_script.hpp. A host submits tasks of all kinds together, innocent ones and those that end
// their workers, and then waits for each. Only a worker that the driver has killed excuses an
// innocent task that does not succeed.
#include "fault/pool_script.hpp"

#include <leveret/leveret.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fault/pool_tasks.hpp"

namespace lev::test {

namespace {

constexpr std::int64_t limit_ns = 60'000'000'000;

enum class kind_of : std::uint8_t {
  square,
  columns,
  bulk,
  sliced,
  add_one,
  once,
  refuse,
  crash,
  hang,
  end
};

struct deed {
  kind_of what = kind_of::square;
  ticket t;
  std::uint64_t kills = 0;  // of the driver's before it was submitted
  std::uint32_t attempts = 3;
  word how = 0;
  bool is_asked_to_go = false;  // cancelled, or ended
  int after = -1;               // the deed that must succeed first
  status got = status::pending;
  std::vector<word> x, y;
  shared_array<word> s{1};
};

class host {
 public:
  explicit host(const script& s)
      : s_(s), random_(s.seed * 1'000 + s.host), workers_(1 + random_.below(3)) {}

  void run() {
    const std::uint32_t lives = 1 + random_.below(3);
    for (std::uint32_t i = 0; i < lives; ++i) {
      join();
      for (std::uint32_t n = 1 + random_.below(4); n != 0; --n) submit_and_wait();
      leave();
    }
  }

 private:
  std::uint32_t any(std::uint32_t bound) { return random_.below(bound); }
  std::uint64_t kills_since(std::uint64_t before) const {
    return s_.world->kills_begun.load() - before;
  }

  [[noreturn, gnu::format(printf, 2, 3)]] void fail(const char* form, ...) const {
    char text[600];
    va_list rest;
    va_start(rest, form);
    std::vsnprintf(text, sizeof text, form, rest);
    va_end(rest);
    std::fprintf(stderr, "seed %llu, host %u, process %d, step %d: %s\n",
                 static_cast<unsigned long long>(s_.seed), s_.host, getpid(), step_, text);
    _exit(1);
  }
  void tell(const char* what) const {
    if (s_.is_told) std::fprintf(stderr, "host %u step %d: %s\n", s_.host, step_, what);
  }

  config choose_config() {
    config c;
    c.machine = "processes";
    c.processes.pool = s_.pool;
    c.workers = static_cast<int>(workers_);
    const std::uint32_t depths[] = {0, 0, 1, 3, 16};
    c.depth = depths[any(5)];
    const std::uint32_t tickets[] = {4096, 256, 64};
    c.tickets = tickets[any(3)];
    if (any(2) == 0) c.spin_ns = 0;
    if (s_.is_confined) c.processes.isolation = isolation::confined;
    c.processes.max_attempts = 1 + any(3);
    c.processes.restarts_max = 2 + any(7);
    const wait_policy waits[] = {wait_policy::help, wait_policy::park, wait_policy::yield};
    c.wait = waits[any(3)];
    hook_ms_ = any(3) == 0 ? static_cast<int>(any(12)) : 0;
    if (hook_ms_ != 0)
      c.processes.on_death = {[](void* ms, int, int) { poll(nullptr, 0, *static_cast<int*>(ms)); },
                              &hook_ms_};
    return c;
  }
  void join() {
    ++step_;
    tell("joins");
    config_ = choose_config();
    kills_of_life_ = s_.world->kills_done.load();
    guilty_attempts_ = 0;
    for (;;) {
      const std::uint64_t before = s_.world->kills_done.load();
      try {
        runtime_.emplace(config_);
        return;
      } catch (const error& e) {
        if (kills_since(before) == 0) fail("cannot join: %s", e.what());
      }
    }
  }
  void leave() {
    ++step_;
    tell("leaves");
    const counters n = runtime_->count();
    const std::uint64_t kills = kills_since(kills_of_life_);
    if (n.reruns > guilty_attempts_ + kills * workers_)
      fail("%llu tasks were run again; the guilty have %llu attempts, and %llu workers were killed",
           static_cast<unsigned long long>(n.reruns),
           static_cast<unsigned long long>(guilty_attempts_),
           static_cast<unsigned long long>(kills));
    if (any(4) == 0) {
      const status closed = runtime_->close(limit_ns);
      if (closed != status::ok) fail("does not close: %s", status_name(closed));
    }
    runtime_.reset();
  }

  void submit_and_wait() {
    ++step_;
    tell("submits");
    const std::uint32_t most = std::min<std::uint32_t>(config_.tickets / 32, 24);
    std::vector<deed> all(1 + any(most));
    try {
      for (std::size_t i = 0; i < all.size(); ++i) submit(all, i);
    } catch (const error& e) {
      if (e.code() == status::pool_down && is_down_excused()) return end_all(all);
      fail("refused: %s", e.what());
    }
    for (deed& d : all) ask_to_go(d);
    if (any(8) == 0) poll(nullptr, 0, static_cast<int>(any(20)));
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1 && any(2) == 0; --i)
      std::swap(order[i - 1], order[any(static_cast<std::uint32_t>(i))]);
    std::vector<outcome> ends(all.size());
    for (const std::size_t i : order) {
      ends[i] = all[i].t.wait_outcome(limit_ns);
      all[i].got = ends[i].code;
      if (ends[i].code == status::timed_out) fail("%s", describe(all[i], ends[i]).c_str());
    }
    for (std::size_t i = 0; i < all.size(); ++i) check(all, all[i], ends[i]);
  }

  kind_of choose_kind() {
    const std::uint32_t n = any(20);
    if (n < 5) return kind_of::square;
    if (n < 7) return kind_of::add_one;
    if (n < 9) return kind_of::columns;
    if (n < 11) return kind_of::bulk;
    if (n < 12) return kind_of::sliced;
    if (n < 13) return s_.is_confined ? kind_of::sliced : kind_of::once;
    if (n < 14) return kind_of::refuse;
    if (n < 17) return kind_of::crash;
    return n < 18 ? kind_of::hang : kind_of::end;
  }
  void submit(std::vector<deed>& all, std::size_t i) {
    deed& d = all[i];
    d.what = choose_kind();
    d.kills = s_.world->kills_done.load();
    options o;
    d.attempts = config_.processes.max_attempts;
    if (any(4) == 0) o.max_attempts(d.attempts = 1 + any(3));
    if (i != 0 && any(5) == 0)
      o.after(all[static_cast<std::size_t>(
                      d.after = static_cast<int>(any(static_cast<std::uint32_t>(i))))]
                  .t);
    const word times[] = {0, 20, 200, 2'000};
    const word us = times[any(4)];
    const std::size_t sizes[] = {1, 7, 64, 3'000};
    fill(d, sizes[any(4)]);
    switch (d.what) {
      case kind_of::square:
        d.t = runtime_->submit(o, do_square, us, d.x, d.y);
        break;
      case kind_of::sliced:
        d.t = runtime_->submit(o, do_square, us, sliced(d.x), sliced(d.y));
        break;
      case kind_of::columns:
        d.after = -1;
        d.attempts = config_.processes.max_attempts;
        d.t = runtime_->submit_bulk(d.x.size(), do_square_row, each(d.x), each(d.y));
        break;
      case kind_of::bulk:
        d.after = -1;
        d.attempts = config_.processes.max_attempts;
        d.t = runtime_->submit_bulk(
            std::min<std::size_t>(d.x.size(), 20), [&](std::size_t n, descriptor& task) {
              task = pack(do_square, us / 10, std::span(&d.x[n], 1), std::span(&d.y[n], 1));
            });
        break;
      case kind_of::add_one:
        d.t = runtime_->submit(o, do_add_one, us, d.s);
        break;
      case kind_of::once:
        d.t = runtime_->submit(o, do_once, word_of{&d.s[0]});
        break;
      case kind_of::refuse:
        d.t = runtime_->submit(o, do_refuse, us);
        break;
      case kind_of::crash:
        d.how = any(s_.is_confined ? crashes_of_confined : std::size(crashes));
        guilty_attempts_ += d.attempts;
        d.t = runtime_->submit(o, do_crash, d.how, us);
        break;
      case kind_of::hang:
        d.t = runtime_->submit(o.task_ns_max(1'000'000 + any(20'000'000)), do_hang, d.s);
        break;
      case kind_of::end:
        d.t = runtime_->submit(o, do_hang, d.s);
        break;
    }
  }
  void fill(deed& d, std::size_t size) {
    d.x.resize(size);
    d.y.assign(size, -1);
    d.s = shared_array<word>(size);
    for (std::size_t i = 0; i < size; ++i) d.s[i] = d.x[i] = static_cast<word>(i + any(100));
    if (d.what == kind_of::once || d.what == kind_of::hang || d.what == kind_of::end) d.s[0] = 0;
  }
  // Some innocent ones, too.
  void ask_to_go(deed& d) {
    if (d.what != kind_of::end && any(12) != 0) return;
    d.is_asked_to_go = true;
    // Not if it may never begin.
    if (d.what == kind_of::end && d.after < 0 && !s_.is_confined && any(2) == 0) await_begin(d);
    const status said = d.what == kind_of::end || any(2) == 0 ? d.t.end() : d.t.cancel();
    if (said != status::ok && said != status::too_late) fail("asked to end: %s", status_name(said));
  }
  void await_begin(deed& d) {
    const std::uint64_t begin = runtime_->now_ns();
    while (__atomic_load_n(&d.s[0], __ATOMIC_SEQ_CST) == 0 && !d.t.done()) {
      if (runtime_->now_ns() - begin > 40'000'000) return;  // behind others that do not end
      poll(nullptr, 0, 1);
    }
  }

  static const char* name_of(kind_of k) {
    const char* names[] = {"square", "columns", "bulk",  "sliced", "add_one",
                           "once",   "refuse",  "crash", "hang",   "end"};
    return names[static_cast<int>(k)];
  }
  std::string describe(const deed& d, const outcome& o) const {
    std::string text = std::string(name_of(d.what)) + " " + std::to_string(d.how) + " ended as " +
                       status_name(o.code) + ", of " + std::to_string(d.attempts) +
                       " attempts, after " + std::to_string(d.after) +
                       (d.is_asked_to_go ? ", asked to go" : "") + ", " +
                       std::to_string(kills_since(d.kills)) + " kills, " +
                       std::to_string(d.x.size()) + " elements: ";
    return text + what_of(o);
  }
  static std::string what_of(const outcome& o) {
    try {
      if (o.exception) std::rethrow_exception(o.exception);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  }

  bool is_down_excused() const {
    return kills_since(kills_of_life_) > config_.processes.restarts_max;
  }
  void end_all(std::vector<deed>& all) {
    for (deed& d : all) {
      if (d.t && d.t.wait_outcome(limit_ns).code == status::timed_out)
        fail("a pool is down, and a task goes on");
    }
  }
  // Whether the outcome is one that has nothing to do with what the task does.
  bool is_excused(const std::vector<deed>& all, const deed& d, const outcome& o) const {
    const std::uint64_t kills = kills_since(d.kills);
    if (o.code == status::dependency_failed)
      return d.after >= 0 && all[static_cast<std::size_t>(d.after)].got != status::ok;
    if (o.code == status::cancelled) return d.is_asked_to_go;
    if (o.code == status::worker_died) return d.what == kind_of::once && kills != 0;
    if (o.code == status::poison) return kills >= (d.what == kind_of::crash ? 1 : d.attempts);
    if (o.code == status::pool_down) return is_down_excused();
    return false;
  }
  void check(const std::vector<deed>& all, const deed& d, const outcome& o) const {
    bool is_good = is_as_meant(d, o) || is_excused(all, d, o);
    const bool is_whole =
        d.what != kind_of::bulk && d.what != kind_of::columns && d.what != kind_of::sliced;
    if (is_good && (is_whole || o.code == status::ok))
      is_good = has_right_values(d, o.code == status::ok);
    if (!is_good) fail("%s", describe(d, o).c_str());
  }
  bool is_as_meant(const deed& d, const outcome& o) const {
    const std::string what = what_of(o);
    switch (d.what) {
      case kind_of::refuse:
        return o.code == status::task_failed &&
               what.find("it does not want to") != std::string::npos;
      case kind_of::crash:
        return o.code == status::poison &&
               what.find(std::string(crashes[d.how]) + ", attempt " + std::to_string(d.attempts)) !=
                   std::string::npos;
      case kind_of::hang:
        return o.code == status::overran;
      case kind_of::end:
        return o.code == status::cancelled;
      default:
        return o.code == status::ok;
    }
  }
  bool has_right_values(const deed& d, bool is_done) const {
    if (d.what == kind_of::once && (is_done ? d.s[0] != 1 : d.s[0] > 1)) return false;
    const std::size_t count =
        d.what == kind_of::bulk ? std::min<std::size_t>(d.x.size(), 20) : d.x.size();
    for (std::size_t i = 0; i < d.x.size(); ++i) {
      const bool is_output = is_done && i < count && d.what <= kind_of::sliced;
      if (d.y[i] != (is_output ? d.x[i] * d.x[i] : -1)) return false;
      if (d.what == kind_of::add_one && d.s[i] != d.x[i] + (is_done ? 1 : 0)) return false;
    }
    return true;
  }

  const script s_;
  random_source random_;
  const std::uint32_t workers_;
  config config_;
  std::optional<runtime> runtime_;
  int step_ = 0;
  int hook_ms_ = 0;
  std::uint64_t kills_of_life_ = 0;
  std::uint64_t guilty_attempts_ = 0;
};

}  // namespace

void run_script(const script& s) {
  host(s).run();
}

}  // namespace lev::test
