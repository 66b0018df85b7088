// Opening a runtime: check the configuration, reserve all memory, start the machine's workers.
#include "base/numbers.hpp"
#include "base/usual_floats.hpp"
#include "remote/remote_crew.hpp"
#include "runtime/awaits.hpp"
#include "share/role.hpp"
#include "share/shortage.hpp"
#include "sync/uncancelled.hpp"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

namespace lev::detail {

namespace {

// Refuses a field of the configuration that is not within these bounds. A number above them may be
// meant well: `above` is the status of one.
template <class Number>
void check_field(const char* name, Number value, std::type_identity_t<Number> least,
                 std::type_identity_t<Number> most, const char* what_it_must_be,
                 status above = status::bad_config) {
  if (value >= least && value <= most) return;
  char message[200];
  std::snprintf(message, sizeof message, "config.%s = %s: %s", name, std::to_string(value).c_str(),
                what_it_must_be);
  throw error(value < least ? status::bad_config : above, -1, message);
}
template <class Choice>
void check_choice(const char* name, Choice value, Choice last, const char* what_it_must_be) {
  check_field(name, static_cast<unsigned>(value), 0, static_cast<unsigned>(last), what_it_must_be);
}

constexpr std::uint32_t tickets_limit = 1u << 24;
constexpr std::uint32_t hosts_limit = 4096;
constexpr std::size_t local_store_limit = std::size_t{1} << 32;
constexpr std::size_t context_stack_min = 32 << 10;
constexpr std::size_t context_stack_limit = std::size_t{1} << 32;

// The messages below have these numbers.
static_assert(workers_max == 1024 && ahead_max == 16 && contexts_max == 16);
// A participant's number, plus 1, has 16 bits in a task's state word and in a mailbox's lease: the
// workers, the service, the hosts, and the one kept for close().
static_assert(workers_max + 1 + hosts_limit + 1 < 0xffff);
// Slots, including spare ones, and two edges each, are counted in 32 bits; positions of the rings
// must tell a full one from an empty one.
static_assert(std::uint64_t{tickets_limit} * 2 < std::uint64_t{1} << 31);

// Brings a configuration into its final form, or refuses it.
void settle_config(config& c, bool is_remote) {
  check_field("workers", c.workers, 0, static_cast<int>(workers_max),
              "must be 0 (automatic) to 1024");
  if (c.workers == 0) {
    const unsigned cores = available_cores();
    c.workers = static_cast<int>(is_remote ? cores : larger(cores, 2u) - 1);
  }
  check_field("tickets", c.tickets, 1, tickets_limit, "must be 1 to 2^24", status::out_of_memory);
  c.tickets = std::bit_ceil(larger(c.tickets, 2u));
  check_field("local_store_bytes", c.local_store_bytes, 1, local_store_limit, "must be 1 to 2^32",
              status::out_of_memory);
  c.local_store_bytes = round_up(c.local_store_bytes, page_bytes);
  check_field("depth", c.depth, 0, ahead_max, "must be 0 (automatic) to 16");
  check_field("host_threads", c.host_threads, 1, hosts_limit, "must be 1 to 4096");
  check_field("nest_max", c.nest_max, 1, 100'000, "must be 1 to 100000");
  check_field("contexts", c.contexts, 0, contexts_max, "must be 0 (automatic) to 16");
  check_field("context_stack_bytes", c.context_stack_bytes, context_stack_min, context_stack_limit,
              "must be 32768 (32 KiB) to 2^32");
  check_field("processes.max_attempts", c.processes.max_attempts, 1, 1000, "must be 1 to 1000");
  check_field("wait", static_cast<unsigned>(c.wait), 0,
              static_cast<unsigned>(wait_policy::of_runtime) - 1,
              "must be one of wait_policy, and not of_runtime");
  check_choice("staging", c.staging, staging::copy, "must be one of staging, 0 to 2");
  check_choice("full", c.full, when_full::fail, "must be one of when_full, 0 to 2");
  check_choice("processes.isolation", c.processes.isolation, isolation::confined,
               "must be one of isolation, 0 to 1");
  check_field("trace_events", c.trace_events, 0, 1u << 26,
              "at most 2^26 events are kept per worker", status::out_of_memory);
  if (c.trace_events != 0) c.trace_events = std::bit_ceil(c.trace_events);
  LEV_ASSERT(c.workers > 0 && c.local_store_bytes % page_bytes == 0);
}

const machine_kind& choose_machine(const config& c) {
  char message[200];
  const machine_kind* kind = find_machine_kind(c.machine);
  if (kind == nullptr) {
    std::snprintf(message, sizeof message, "no machine '%.60s'; this library has:",
                  c.machine == nullptr ? "(null)" : c.machine);
    for (unsigned i = 0; const machine_kind* k = machine_kind_at(i); ++i) {
      const std::size_t used = std::char_traits<char>::length(message);
      std::snprintf(message + used, sizeof message - used, " %s", k->name);
    }
    throw error(status::unavailable, -1, message);
  }
  if (const char* why = kind->unavailable(); why != nullptr) {
    std::snprintf(message, sizeof message, "machine '%s' does not work here: %s", c.machine, why);
    throw error(status::unavailable, -1, message);
  }
  return *kind;
}

// Enough for one task of each worker to recurse this deep while all tickets are in use by tasks
// that wait in queues.
constexpr std::uint32_t spare_per_taker = 64;
// Enough for a task of the backlog in each context of a worker, and of a host where they help.
constexpr std::uint32_t last_per_participant = 16;
static_assert(last_per_participant >= contexts_max);
std::uint32_t last_slots(const runtime_state& c) {
  const bool hosts_help = c.takers != c.workers && c.caps.many_hosts;
  const std::uint32_t hosts = hosts_help ? c.settings.host_threads : c.takers - c.workers;
  return c.has_contexts ? last_per_participant * (c.workers + hosts) : 0;
}

// Where tasks run in other processes, or in virtual time, submitters do not compete for the queue;
// and a queue for very many tasks has room for one ring.
std::uint32_t ready_rings(const runtime_state& c, std::uint32_t queued) {
  constexpr std::uint32_t cells_max = 1u << 18;  // 2 MiB
  if (!c.is_straight) return 1;
  std::uint32_t rings = ready_queue<>::rings_for(c.takers);
  while (rings > 1 && queued > cells_max / rings) rings /= 2;
  return rings;
}

// The last one is for the host that closes the runtime when all others are taken.
std::uint32_t hosts_max(const runtime_state& c) {
  return (c.caps.many_hosts ? c.settings.host_threads : 1) + 1;
}

void open_shared(runtime_state& c) {
  const std::uint32_t n = c.settings.tickets;
  const std::uint32_t spare = std::bit_ceil(spare_per_taker * c.takers);
  const std::uint32_t last = last_slots(c);
  const std::uint32_t last_cells = std::bit_ceil(larger(last, 2u));
  const std::uint32_t own = c.is_straight ? hosts_max(c) : 0;
  const std::uint32_t queued = std::bit_ceil(n + spare + last);
  const std::uint32_t slots = n + spare + last + own;
  c.slots = make_zeroed<slot>(slots);
  c.rests = make_zeroed<slot_rest>(slots);
  c.extras = make_zeroed<slot_extra>(slots);
  const std::uint32_t rings = ready_rings(c, queued);
  // Two edges for each task, and at least as many as one submit may name.
  const std::uint32_t edges = larger(n * 2, std::bit_ceil(options::after_max));
  const std::size_t all_cells =
      std::size_t{n} + spare + last_cells + edges + std::size_t{queued} * (1 + rings);
  c.cells = make_zeroed<index_ring<>::cell>(all_cells);
  c.waiting.reset(new waiting_task[std::size_t{queued} * 2]);
  c.nodes.reset(new dependant[edges]);
  index_ring<>::cell* cells = c.cells.get();
  const index_ring<>::cell* const cells_end = cells + all_cells;
  const auto next_cells = [&cells](std::size_t count) {
    cells += count;
    return cells - count;
  };
  index_ring<>::cell* const free_cells = next_cells(n);
  index_ring<>::cell* const spare_cells = next_cells(spare);
  c.task_slots.open({c.slots.get(), c.rests.get(), c.extras.get(), free_cells, spare_cells,
                     next_cells(last_cells)},
                    {n, spare, last, own});
  c.edges.open(c.nodes.get(), next_cells(edges), edges);
  scheduler_limits limits;
  limits.takers = c.takers;
  constexpr std::uint32_t waiting_max = 1u << 30;  // more than there are slots
  limits.threshold = smaller(c.settings.dice_threshold, waiting_max / c.takers);
  limits.local_store_bytes = c.settings.local_store_bytes;
  limits.copies = c.copies;
  index_ring<>::cell* prefilter = next_cells(queued);
  c.sched.open(&c.task_slots,
               {prefilter, next_cells(std::size_t{queued} * rings), c.waiting.get(),
                c.waiting.get() + queued, queued, rings},
               limits);
  LEV_ASSERT(cells == cells_end);
}

// A submit finds as many edges as it may name, however many are in caches.
constexpr std::uint32_t edges_of_submit = options::after_max;

// The limit of a participant's cache. All caches together hold at most half of `there`, so that one
// participant cannot starve another. Half of that is for the workers and the first hosts, as few
// programs have more: by default enough for a host that waits for 32 tasks at a time. None has less
// than its equal share, and the others have `limit_min` where there are so many.
std::uint32_t limit_of_cache(const runtime_state& c, std::uint32_t there, std::uint32_t index) {
  constexpr std::uint32_t limit_min = 4;
  constexpr std::uint32_t first_hosts = 8;
  const std::uint32_t shared = there / 2;
  const std::uint32_t first = smaller(c.first_host + first_hosts, c.participant_count);
  const std::uint32_t others = c.participant_count - first;
  LEV_ASSERT(first != 0);
  const std::uint32_t equal = shared / c.participant_count;
  std::uint32_t limit = others == 0 ? equal : larger(shared / 2 / first, equal);
  if (equal >= limit_min) limit = smaller(limit, (shared - others * limit_min) / first);
  limit = smaller(index_cache::size_max, limit);
  if (index >= first) limit = smaller(limit, (shared - limit * first) / others);
  // A submit that is refused when all are in use must find each free one.
  return limit < limit_min || c.settings.full == when_full::fail ? 0 : limit;
}

void open_participants(runtime_state& c) {
  c.participant_count = c.first_host + hosts_max(c);
  LEV_ASSERT(c.first_host >= c.workers && c.participant_count < 0xffff);
  c.participants_owner.reset(new participant[c.participant_count]);
  c.flags.reset(new doorbell<>::flag*[c.participant_count]);
  c.participants = c.participants_owner.get();
  const bool frames = c.caps.async_copies && c.depth > 1;
  const std::size_t frames_each = frames_of(c);
  if (frames) c.frames.reset(new job[frames_each * c.participant_count]);
  if (c.depth > 1 && c.has_contexts)
    c.hints.reset(new task_hint[std::size_t{hint_count} * c.participant_count]);
  // up to the first host thread
  const std::size_t traced = c.settings.trace_events == 0 ? 0 : c.first_host + 1;
  if (traced != 0) c.events.reset(new kept_event[traced * c.settings.trace_events]);
  for (std::uint32_t i = 0; i < c.participant_count; ++i) {
    participant& p = c.participants[i];
    p.engine = &c;
    p.index = i;
    p.is_worker = i < c.first_host;
    p.random = random_source(c.settings.seed * 0x10001u + i);
    p.ready = c.sched.ready().place_of(p.is_worker ? i : i - c.first_host);
    p.letters_left = c.mailboxes;
    p.free_slots.limit = limit_of_cache(c, c.settings.tickets, i);
    p.free_edges.limit = limit_of_cache(c, c.edges.count() - edges_of_submit, i);
    if (frames) p.frames = c.frames.get() + frames_each * i;
    for (atomic<std::uint32_t>& s : p.staged) s.store(no_slot, memory_order_relaxed);
    if (c.hints != nullptr) p.hints = c.hints.get() + std::size_t{hint_count} * i;
    if (i < traced)
      p.events.open(c.events.get() + std::size_t{c.settings.trace_events} * i,
                    c.settings.trace_events);
    c.flags[i] = &p.asleep;
  }
  c.participants_used.store(c.first_host, memory_order_relaxed);
  c.doorbell.open(c.flags.get(), c.participant_count);
  c.hosts_by_core.open(c.participant_count - c.first_host);
}

void run_worker(void* context, std::uint32_t worker) {
  auto& c = *static_cast<runtime_state*>(context);
  LEV_ASSERT(worker >= c.first_actor && worker < c.first_host);
  participant& self = c.participants[worker];
  set_current_actor(&self);
  if (c.crew->is_service(self)) begin_service(self);
  await_stop until(c);
  c.crew->await(self, until, no_deadline, wait_policy::help);
  set_current_actor(nullptr);
}

// How many turns of an idle loop take about as long as a few submits: then a look finds a batch,
// and the submitter has its lines to itself meanwhile. Turns take 5 to 40 ns on different CPUs.
// (bench throughput: 100 to 400 ns make no difference; 0 makes a task cost three times as much.)
constexpr std::uint64_t look_ns = 150;

std::uint32_t measure_turns(machine& m) noexcept {
  constexpr std::uint32_t turns = 64;
  const std::uint64_t start = m.now_ns();
  for (std::uint32_t i = 0; i < turns; ++i) m.relax();
  const std::uint64_t turn_ns = larger<std::uint64_t>((m.now_ns() - start) / turns, 1);
  return static_cast<std::uint32_t>(larger<std::uint64_t>(look_ns / turn_ns, 1));
}

// Sets what the configuration alone decides.
std::unique_ptr<runtime_state> make_state(const config& given) {
  config settings = given;
  const machine_kind& kind = choose_machine(settings);
  std::shared_ptr<const void> settled;
  if (kind.settle != nullptr) settled = kind.settle(settings);
  settle_config(settings, kind.is_remote);
  auto c = std::make_unique<runtime_state>(settings);
  c->machine_name = kind.name;
  c->machine_owner.reset(kind.make(settings, settled.get()));
  c->machine = c->machine_owner.get();
  if (c->machine == nullptr) throw error(status::out_of_memory, -1, "no memory for the machine");
  c->caps = c->machine->capabilities();
  c->crew_owner = hire(*c);
  c->crew = c->crew_owner.get();
  c->workers = static_cast<std::uint32_t>(settings.workers);
  return c;
}

std::unique_ptr<runtime_state> build(const config& given) {
  const usual_floats numbers;  // of a simulated machine; its workers begin in the caller's mode
  std::unique_ptr<runtime_state> c = make_state(given);
  c->cores = available_cores();
  c->crew->plan();
  c->has_heavy_fence = real_env::asymmetric();
  c->is_straight = c->crew->can_do_closures() && !c->caps.virtual_time && !c->copies.all;
  if (c->is_straight && c->has_heavy_fence) c->straight_procedures = procedure_count_max + 1;
  const bool runs_plainly = c->is_straight && c->settings.trace_events == 0;
  c->runs_plainly.store(runs_plainly ? 1 : 0, memory_order_relaxed);
  if (!c->caps.virtual_time) c->turns_per_look = measure_turns(*c->machine);
  LEV_ASSERT(c->depth <= ahead_max && c->takers != 0 && c->first_actor < c->first_host);
  open_shared(*c);
  open_participants(*c);
  return c;
}

// Keeps the runtime in the list of open runtimes, unless opening fails after all.
class announced {
 public:
  explicit announced(runtime_state& c) : state_(&c) { announce_open(c); }
  ~announced() {
    if (state_ != nullptr) announce_close(*state_);
  }
  announced(announced&&) = delete;
  void keep() noexcept { state_ = nullptr; }

 private:
  runtime_state* state_;
};

// `code` is the errno of the step that failed, 0 if it set none.
[[noreturn]] void throw_not_started(const machine& m, int code) {
  const char* why = m.why_not();
  char message[240];
  if (why[0] != 0) {
    std::snprintf(message, sizeof message, "workers could not be started: %s", why);
  } else if (code != 0 && !is_shortage(code)) {  // fewer would not help
    std::snprintf(message, sizeof message, "the system refused to start a worker's thread: %s%s",
                  std::strerror(code), next_step(code));
    throw error(status::unavailable, -1, message);
  } else {
    std::snprintf(message, sizeof message,
                  "the system refused to start that many workers; ask for fewer (config.workers)");
  }
  throw error(m.why_status(), -1, message);
}

}  // namespace

runtime_state* open(const config& given) try {
  const uncancelled now;
  asymmetric_fences();  // decided here, not by a worker in the middle of a fork()
  // This is a static object of a program that was started again as a zygote. It is opened, as its
  // user expects, but has no workers: they would start the program again.
  if (role() == process_role::starting) {
    std::unique_ptr<runtime_state> absent = make_state(given);
    absent->why_absent = absent_in_zygote;
    return absent.release();
  }
  std::unique_ptr<runtime_state> c = build(given);
  announced in_list(*c);
  errno = 0;
  if (!c->crew->open() || !c->machine->start(c->workers, &run_worker, c.get())) {
    const int code = errno;
    c->stopping.store(1, memory_order_relaxed);
    for (std::uint32_t i = c->first_actor; i < c->first_host; ++i) unpark(*c, i);
    c->machine->join();
    throw_not_started(*c->machine, code);
  }
  c->is_started = true;
  if (!c->caps.many_hosts) here(*c);  // the thread that opens it is its host
  in_list.keep();
  return c.release();
} catch (const std::bad_alloc&) {
  char text[256];
  std::snprintf(text, sizeof text,
                "no memory for the runtime; lower config.tickets, host_threads or trace_events%s",
                raise_memory_limit(find_memory_limit()));
  throw error(status::out_of_memory, -1, text);
}

}  // namespace lev::detail
