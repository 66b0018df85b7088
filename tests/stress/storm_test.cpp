// Stress: everything at once. Several submitters with everything a task can be, few tickets,
// filters that change, waits for any, cancellations. Each task whose ticket is collected ran
// exactly once if its outcome says ok, and not at all if it says otherwise.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/stress.hpp"

namespace lev::test {
namespace {

// All that is known of one task, until its outcome is collected.
struct record {
  std::atomic<int> ran{0};
  std::atomic<int> items{0};
  int items_expected = 0;
  bool fails = false;
};

const auto run_record = define("storm.run", [](ref<record> r) {
  ++r.to->ran;
  if (r.to->fails) throw 1;
});
const auto run_items = define(
    "storm.items", [](range part, ref<record> r) { r.to->items += static_cast<int>(part.size()); });
const auto run_nested = define("storm.nested", [](ref<runtime> home, ref<record> r) {
  ++r.to->ran;
  counter children{0};
  std::vector<ticket> t;
  for (int i = 0; i < 4; ++i) {
    ticket child = home.to->try_submit(pack(count_one, ref{&children}), nullptr, nullptr);
    if (child) t.push_back(std::move(child));
  }
  const int submitted = static_cast<int>(t.size());
  EXPECT_EQ(wait_all(t.data(), t.size()).code, status::ok);
  EXPECT_EQ(children, submitted);
});

struct events {
  sometimes several_ready{"wait_any with more than one ready"};
  sometimes cancelled{"cancelled while waiting"};
  sometimes dependency_failed{"error passed on to dependants"};
  sometimes split_to_single_items{"dicing down to single items"};
  sometimes timed_out{"wait timed out"};
};

class submitter {
 public:
  submitter(runtime& r, events& e, std::uint64_t seed, const std::vector<mutex_id>& mutexes)
      : runtime_(r), events_(e), random_(seed), mutexes_(mutexes) {}

  void run(const time_box& box) {
    while (!box.is_over()) {
      one_action();
      if (open_.size() >= kept_max) collect(kept_max / 2);
    }
    collect(0);
  }

 private:
  static constexpr std::size_t kept_max = 16;
  struct open_task {
    ticket t;
    std::unique_ptr<record> r;
  };

  void one_action() {
    switch (random_.below(10)) {
      case 0:
        return submit_fan();
      case 1:
        return submit_diced();
      case 2:
        return keep(runtime_.submit(run_nested, ref{&runtime_}, ref{fresh()}));
      case 3:
        return change_filters();
      case 4:
        return submit_bulk();
      case 5:
        return collect_any();
      case 6:
        return cancel_one();
      case 7:
        return submit_locked();
      default:
        return submit_plain();
    }
  }

  record* fresh() {
    next_ = std::make_unique<record>();
    return next_.get();
  }
  void keep(ticket t) { open_.push_back({std::move(t), std::move(next_)}); }

  void submit_plain() {
    record* r = fresh();
    r->fails = random_.below(4) == 0;
    options o;
    o.priority(static_cast<std::int32_t>(random_.below(5))).key(random_.below(3));
    keep(runtime_.submit(o, run_record, ref{r}));
  }
  void submit_locked() {
    options o;
    for (int i = 0; i < 2; ++i) o.locks(mutexes_[random_.below(4)]);
    keep(runtime_.submit(o, run_record, ref{fresh()}));
  }
  void submit_fan() {
    for (int i = 0; i < 3; ++i) {
      options o;
      for (std::size_t k = open_.size(); k-- > 0 && random_.below(3) != 0;) o.after(open_[k].t);
      keep(runtime_.submit(o, run_record, ref{fresh()}));
    }
  }
  void submit_diced() {
    record* r = fresh();
    r->items_expected = 200;
    keep(runtime_.submit(options().grain(1), run_items, range{0, 200}, ref{r}));
  }
  void submit_bulk() {
    record* r = fresh();
    r->items_expected = 40;
    keep(runtime_.submit_bulk(
        40, [r](std::size_t i, descriptor& d) { d = pack(run_items, range{i, i + 1}, ref{r}); }));
  }
  void change_filters() {
    const std::array<filter, 3> all = {filters::priority(), filters::locality(),
                                       filters::by_procedure()};
    EXPECT_EQ(runtime_.set_filters(all.data() + random_.below(3), random_.below(2)), status::ok);
  }
  void cancel_one() {
    if (open_.empty()) return;
    open_[random_.below(static_cast<std::uint32_t>(open_.size()))].t.cancel();
  }

  void collect_any() {
    if (open_.empty()) return;
    std::vector<ticket> tickets;
    int ready = 0;
    for (open_task& o : open_) {
      ready += o.t.done();
      tickets.push_back(std::move(o.t));
    }
    std::size_t index = none_ready;
    const std::int64_t limit = random_.below(2) == 0 ? 1000 : no_timeout;
    const outcome o = wait_any(tickets.data(), tickets.size(), &index, limit);
    for (std::size_t i = 0; i < open_.size(); ++i) open_[i].t = std::move(tickets[i]);
    if (index == none_ready) {
      EXPECT_EQ(o.code, status::timed_out);
      events_.timed_out.note();
      return;
    }
    events_.several_ready.note_if(ready > 1);
    check(o, *open_[index].r);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void collect(std::size_t left) {
    while (open_.size() > left) {
      const outcome o = open_.front().t.wait_outcome();
      check(o, *open_.front().r);
      open_.erase(open_.begin());
    }
  }

  void check(const outcome& o, const record& r) {
    events_.cancelled.note_if(o.code == status::cancelled);
    events_.dependency_failed.note_if(o.code == status::dependency_failed);
    if (o.code == status::ok) {
      EXPECT_EQ(r.items, r.items_expected);
      EXPECT_EQ(r.ran, r.items_expected == 0 ? 1 : 0);
      EXPECT_FALSE(r.fails);
    } else if (o.code == status::task_failed) {
      EXPECT_TRUE(r.fails);
      EXPECT_EQ(r.ran, 1);
    } else {
      EXPECT_TRUE(o.code == status::cancelled || o.code == status::dependency_failed)
          << status_name(o.code);
      EXPECT_EQ(r.ran, 0);
    }
  }

  runtime& runtime_;
  events& events_;
  random_source random_;
  const std::vector<mutex_id>& mutexes_;
  std::unique_ptr<record> next_;
  std::vector<open_task> open_;
};

const auto single_item = define("storm.single", [](range part, ref<sometimes> single) {
  single.to->note_if(part.size() == 1);
});

void storm(config c, int hosts) {
  start_alarm();
  c.machine = "threads";
  c.seed = base_seed();
  SCOPED_TRACE("LEVERET_SEED=" + std::to_string(base_seed()));
  sometimes stolen("stolen");
  sometimes parked("parked");
  events e;
  {
    runtime r(c);
    std::vector<mutex_id> mutexes(4);
    for (mutex_id& m : mutexes) ASSERT_EQ(r.make_mutex(&m), status::ok);
    const time_box box;
    on_threads_together(hosts, [&](int i) {
      const std::uint64_t seed = base_seed() * 100 + static_cast<std::uint64_t>(i);
      submitter(r, e, seed, mutexes).run(box);
    });
    r.set_filters(nullptr, 0);
    r.submit(options().grain(1), single_item, range{0, 3000}, ref{&e.split_to_single_items}).wait();
    EXPECT_EQ(r.close(60'000'000'000), status::ok);
    expect_nothing_leaked(r);
    stolen.note(r.count().stolen);
    parked.note(r.count().parks);
  }
}

TEST(storm, three_hosts_three_workers) {
  config c;
  c.workers = 3;
  c.tickets = 1024;
  c.host_threads = 4;
  c.spin_ns = 2'000;
  storm(c, 3);
}

TEST(storm, few_tickets) {
  config c;
  c.workers = 2;
  c.tickets = 128;
  c.host_threads = 3;
  c.spin_ns = 0;
  storm(c, 3);
}

TEST(storm, copies_and_parked_hosts) {
  config c;
  c.workers = 4;
  c.tickets = 512;
  c.host_threads = 2;
  c.staging = staging::copy;
  c.wait = wait_policy::park;
  c.full = when_full::wait;
  storm(c, 2);
}

}  // namespace
}  // namespace lev::test
