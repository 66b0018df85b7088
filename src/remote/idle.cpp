// How a participant waits where workers are processes: it polls the lines, lingers, then sleeps.
// Where the workers need every core it neither polls for long nor lingers, and naps.
#include "worker/idle.hpp"
#include "base/numbers.hpp"
#include "remote/remote_crew.hpp"
#include "worker/serve.hpp"
#include "worker/share_core.hpp"
#include "worker/worker.hpp"

#include <utility>

namespace lev {

namespace {

// What a participant waits for, or an end that it could take. A host that sleeps watches no line:
// it asks to be told, and workers tell the service.
class or_an_end final : public awaited {
 public:
  or_an_end(remote_crew& r, const participant& self, awaited& own, bool is_patient) noexcept
      : crew_(r), own_(own), is_host_(!r.is_service(self)), is_patient_(is_patient) {}
  bool is_there() noexcept override { return own_.is_there() || has_remote_work(crew_); }
  bool arm() noexcept override {
    if (is_host_) crew_.remote->want_ends(true, is_patient_);
    crew_.remote->unwatch();
    return own_.arm();
  }
  void disarm() noexcept override {
    own_.disarm();
    crew_.remote->watch();
    if (is_host_) crew_.remote->want_ends(false, is_patient_);
  }

 private:
  remote_crew& crew_;
  awaited& own_;
  bool is_host_;
  bool is_patient_;
};

// A participant that finds work again at its first look, and has completed nothing since, waits for
// the holder of a line's turn.
void wait_for_turn(const participant& self, tender& own) noexcept {
  const std::uint64_t completed = self.counters.completed.read();
  if (own.completed_at_look == completed) real_env::pause();
  own.completed_at_look = completed;
}

// No other thread relies on the service's polling: it looks once.
bool poll_until(remote_crew& r, participant& self, awaited& what, bool sleeps,
                std::uint64_t until_ns) noexcept {
  constexpr std::uint32_t turns_per_clock = 32;
  const bool is_once = r.is_service(self);
  if (is_once ? has_remote_work(r) : what.is_there()) {
    wait_for_turn(self, r.tender_of(self));
    return true;
  }
  for (std::uint32_t turn = 1; !is_once; ++turn) {
    r.e.machine->relax();
    if (what.is_there()) return true;
    if (turn % turns_per_clock != 0) continue;
    if (r.e.machine->now_ns() >= until_ns) break;
    if (!sleeps) self.park.drop_token();
  }
  return false;
}

// Polls on, and offers the core between looks. False: it is time to sleep.
bool linger(remote_crew& r, participant& self, awaited& what, std::uint64_t span_ns,
            std::uint64_t deadline_ns) noexcept {
  lingerer& own = r.tender_of(self).linger;
  const auto switches = [&]() noexcept { return r.e.machine->core_switches(); };
  if (r.is_service(self) || !own.begin(switches)) return false;
  const auto now_ns = [&]() noexcept { return r.e.machine->now_ns(); };
  const std::uint64_t until_ns = smaller(now_ns() + span_ns, deadline_ns);
  for (bool is_free = true; is_free && now_ns() < until_ns;) {
    is_free = own.offer(now_ns, [&]() noexcept { r.e.machine->yield_core(); }, switches);
    if (!what.is_there()) continue;
    if (is_free) own.end();
    return true;
  }
  return false;
}

// Whether as many workers have tasks as there are cores: a poller takes the core from one of them.
bool needs_every_core(const remote_crew& r) noexcept {
  std::uint32_t busy = 0;
  for (std::uint32_t w = 0; w < r.e.workers && busy < r.e.cores; ++w)
    busy += r.lines[w].tasks() != 0 ? 1 : 0;
  return busy >= r.e.cores;
}

std::uint64_t spin_span_ns(const remote_crew& r, bool is_tight) noexcept {
  constexpr std::uint64_t tight_ns = 2'000;
  if (r.e.cores == 1 || r.remote->is_crowded()) return 0;
  return is_tight ? smaller<std::uint64_t>(r.e.settings.spin_ns, tight_ns) : r.e.settings.spin_ns;
}

void sleep(remote_crew& r, participant& self, awaited& what, std::uint64_t deadline_ns) noexcept {
  if (r.is_service(self)) deadline_ns = smaller(deadline_ns, service_deadline(r));
  if (what.arm() && !what.is_there()) {
    self.counters.parks.add(1);
    self.park.park(*r.e.machine, deadline_ns);
  }
  what.disarm();
}

// A serving participant is counted as a watcher once: a callback that waits does so on top of
// another wait, and must not sleep while that one is counted. The service was not told of ends that
// came meanwhile, so the participant looks once more when it has stopped.
class watching {
 public:
  watching(remote_crew& r, participant& self) noexcept
      : crew_(r), self_(self), own_(r.tender_of(self)) {
    if (!was_watching_) crew_.remote->watch();
  }
  ~watching() {
    own_.is_watching = was_watching_;  // before tend_all(): a callback may wait, too
    if (!was_watching_) {
      crew_.remote->unwatch();
      if (has_remote_work(crew_)) tend_all(crew_, self_);
    }
    self_.calls.is_tending = was_tending_;
  }
  watching(watching&&) = delete;

 private:
  remote_crew& crew_;
  participant& self_;
  tender& own_;
  bool was_tending_ =
      std::exchange(self_.calls.is_tending, false);  // the wait is that of a callback
  bool was_watching_ = std::exchange(own_.is_watching, true);
};

bool run_turn(engine& e, participant& self, awaited*) noexcept {
  return static_cast<remote_crew&>(*e.crew).run_one(self);
}

}  // namespace

void remote_crew::idle(participant& self, awaited& what, std::uint64_t deadline_ns,
                       wait_policy how) noexcept {
  settle_to_idle(e, self);
  const idling i(self, deadline_ns);
  const bool is_tight = !is_service(self) && needs_every_core(*this);
  napper& nap = tender_of(self).nap;
  const auto ends = [this]() noexcept { return count_ends(e); };
  const std::uint64_t nap_ns = is_tight && !what.is_patient() ? nap.span_ns(ends) : 0;
  const bool is_patient = nap_ns != 0 || what.is_patient();
  or_an_end any(*this, self, what, how != wait_policy::directed && is_patient);
  if (how == wait_policy::yield) return idle_yielding(e, self, any, deadline_ns);
  if (how == wait_policy::directed) return idle_directed(e, self, any, deadline_ns);
  const bool sleeps = how != wait_policy::spin;
  const std::uint64_t spin_ns = spin_span_ns(*this, is_tight);
  const std::uint64_t now_ns = sleeps ? e.machine->now_ns() : 0;
  const std::uint64_t spin_end_ns = sleeps ? smaller(now_ns + spin_ns, deadline_ns) : deadline_ns;
  if (poll_until(*this, self, any, sleeps, spin_end_ns)) return;
  if (!sleeps) return;
  if (!is_tight && linger(*this, self, any, lingerer::span_ns(spin_ns), deadline_ns)) return;
  if (nap_ns == 0) return sleep(*this, self, any, deadline_ns);
  nap.begin_nap(ends());
  sleep(*this, self, any, smaller(now_ns + spin_ns + nap_ns, deadline_ns));
}

// The line of a worker that is being replaced is empty, and its tasks are ready for the next one.
bool remote_crew::is_under_way() const noexcept {
  std::uint32_t tasks = e.sched.ready().first().size();
  for (std::uint32_t w = 0; w < e.workers; ++w) tasks += lines[w].tasks();
  return tasks != 0;
}

// The service was not told of ends that came before.
bool remote_crew::pause_watch(const participant& p) noexcept {
  if (!std::exchange(tender_of(p).is_watching, false)) return false;
  remote->unwatch();
  if (has_remote_work(*this)) remote->notify_service();
  return true;
}

void remote_crew::resume_watch(const participant& p) noexcept {
  tender_of(p).is_watching = true;
  remote->watch();
}

// A callback waits like a host, because no task runs here below it. If it waits for room, it gives
// up when nothing is on its way to or from a worker, or is ready for one.
bool remote_crew::await(participant& self, awaited& what, std::uint64_t deadline_ns,
                        wait_policy how, giving_up when) noexcept {
  constexpr std::uint64_t patience_ns = 10'000'000;
  tender_of(self).nap.begin_wait();
  // Tasks that have ended by now need no wait.
  if (take_ends(self) && what.is_there()) return true;
  for (;;) {
    const bool may_give_up = when == giving_up::when_still;
    const std::uint64_t until_ns =
        may_give_up ? smaller(e.machine->now_ns() + patience_ns, deadline_ns) : deadline_ns;
    tell_ends(e, self);
    {
      const watching w(*this, self);
      if (serve_until(e, self, what, until_ns, how, &run_turn)) return true;
    }
    if (!may_give_up) return false;
    if (!is_under_way()) return false;
  }
}

}  // namespace lev
