// remote_crew: workers in other processes, and the pipeline that serves them. Everything but the
// body is done by a host thread that is in the runtime: one that submits, one that waits, or else
// the service. So a round trip costs only the two necessary line transfers, and no host thread runs
// unnecessarily.
//
//   take         a task from the ready queue
//   stage        copy its inputs to the worker's local store
//   (execute)    post it to the worker's line; the process runs it
//   write_back   collect its end, copy its outputs to the caller's memory
//   complete     as everywhere
//
// The proof that nothing is lost or done twice is in machines/processes/README.md.
#pragma once

#include "remote/nap.hpp"
#include "remote/remote_line.hpp"
#include "sync/linger.hpp"
#include "worker/crew.hpp"
#include "worker/engine.hpp"

#include <memory>

namespace lev {

// hire() makes the crew of a runtime: this one, if its machine has workers in other processes.
std::unique_ptr<crew> hire(engine& e);

// The part of a participant that tends lines.
struct tender {
  bool is_watching = false;             // it is counted as a watcher
  std::uint64_t completed_at_look = 0;  // how many it had completed when it last found work at once
  lingerer linger;
  napper nap;
};

// A worker's participant runs nothing here: the host keeps its store, counters and trace. The other
// participants tend the lines: host threads, and the service, which comes after the workers.
class remote_crew final : public crew {
 public:
  remote_crew(engine& owner, remote_workers& processes) noexcept
      : crew(owner), remote(&processes) {}

  void plan() override;
  bool open() override;
  bool run_one(participant& self) noexcept override;
  void queued(participant& self) noexcept override;
  void send(participant& self, std::uint32_t task) noexcept override;
  void idle(participant& self, awaited& what, std::uint64_t deadline_ns,
            wait_policy how) noexcept override;
  bool await(participant& self, awaited& what, std::uint64_t deadline_ns, wait_policy how,
             giving_up when) noexcept override;
  std::uint64_t done_by(const participant& p) const noexcept override;
  bool can_do(const detail::draft& d, const draft_facts& facts, refusal* why) noexcept override;
  bool can_do_plainly(procedure_id id) noexcept override;
  bool can_do_closures() const noexcept override { return false; }
  bool has_time_limits() const noexcept override { return true; }
  void limit(std::uint32_t task, std::uint64_t task_ns_max,
             std::uint32_t max_attempts) noexcept override;
  void want_ends() noexcept override;
  bool holds_tasks() const noexcept override { return true; }
  void recall(participant& self) noexcept override;
  bool end_running(bool all) noexcept override;
  bool is_service(const participant& p) const noexcept override { return p.index == e.workers; }
  bool is_under_way() const noexcept override;
  bool pause_watch(const participant& p) noexcept override;
  void resume_watch(const participant& p) noexcept override;

  const processes_config& settings() const noexcept { return e.settings.processes; }
  // take_ends() tells what has ended by now, for a host that is about to wait (straight_take.hpp).
  // False: the caller is where it must not.
  bool take_ends(participant& self) noexcept;
  // can_send_straight() tells that can_do() has nothing against the procedure, unless the crew is
  // down, and that its tasks have only values, which lie in their slots.
  bool can_send_straight(procedure_id id) const noexcept {
    LEV_DCHECK(known != nullptr);
    // Pairs with the machine's noting: the procedure is known to the worker of a task posted after.
    return known[id].load(memory_order_acquire) == known_as::of_near_values;
  }
  tender& tender_of(const participant& self) noexcept { return tenders[self.index]; }

  remote_workers* const remote;
  bool shares_workers = false;     // with other host processes
  bool is_traced = false;          // then all participants are
  std::uint32_t straight_max = 0;  // tasks in a line that gets one more while no task is ready
  std::unique_ptr<remote_line[]> lines;         // one for each worker
  std::unique_ptr<tender[]> tenders;            // one for each participant
  const atomic<std::uint8_t>* known = nullptr;  // remote_workers::known(), since the opening
  std::uint32_t idle_deaths = 0;  // for the service: workers in a row that died without a task
  std::uint64_t first_idle_death_ns = 0;
  std::uint32_t late_deaths = 0;  // for the service: workers in a row that hung as they started
  std::uint64_t late_death_ns = 0;
  std::uint64_t first_shortage_ns = 0;  // of workers in a row that could not be started
  std::uint64_t last_shortage_ns = 0;
  // Written by the service, read by submitters and tenders: 1 once worker processes cannot be kept
  // alive. Publishes why.
  atomic<std::uint32_t> is_down{0};
  char why_down[240] = "";
  // Written by the service, read by tenders: 1 from the first time that a task is run again.
  // Publishes nothing.
  atomic<std::uint32_t> has_rerun{0};
  // Written by the first waiter that wants to be told of ends at once, read by the others: 1 from
  // then on. Publishes nothing.
  atomic<std::uint32_t> are_ends_wanted{0};
  // Written by the service and by tenders that post a task, read by the latter: whether the service
  // checks time limits now and then. Publishes nothing.
  atomic<std::uint32_t> is_timing{0};
  // Written by the service and by tenders that post a task, read by the latter: whether the service
  // checks now and then that lines move. Publishes nothing.
  atomic<std::uint32_t> is_patrolled{0};
  std::uint64_t patrol_ns = 0;  // for the service: when it does so next
  // Written by submitters, read by tenders and the service: the least time limit that a task has
  // asked for; no_deadline until one has asked for limits of its own. Publishes nothing.
  atomic<std::uint64_t> least_limit_ns{no_deadline};
  // Written by callers that end a task, and by the service; read by the service: 1 when a line may
  // have a task that must end. Publishes the request in its ticket.
  atomic<std::uint32_t> is_ending{0};
  // Written by close(), read by the service: 1 when tasks that run in other processes must end.
  // Publishes nothing: is_ending does.
  atomic<std::uint32_t> ends_all{0};
};

// tend() moves every line on as far as possible; false when there was nothing to do.
bool tend(remote_crew& r, participant& self) noexcept;

// tend_all() tends until there is nothing to do, and tells of what it has completed: for callers
// that leave the runtime afterwards.
void tend_all(remote_crew& r, participant& self) noexcept;

// has_remote_work() tells whether tend() would find something.
bool has_remote_work(remote_crew& r) noexcept;

// keep_ends() takes the ends of a dead worker out of its line, before the line is emptied; tend()
// completes them. In the line's turn.
void keep_ends(remote_crew& r, std::uint32_t worker) noexcept;

// The service calls attend(): deaths (bury.cpp), time limits, and tasks to be ended (attend.cpp).
// service_deadline() is when it must look again.
void attend(remote_crew& r, participant& self) noexcept;
std::uint64_t service_deadline(remote_crew& r) noexcept;

}  // namespace lev
