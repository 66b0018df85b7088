// How a runtime is opened. Every field has a default that suits most programs; zero means "choose
// for me" where it says so.
#ifndef LEVERET_CONFIG_HPP
#define LEVERET_CONFIG_HPP

#include <leveret/version.hpp>

#include <cstddef>
#include <cstdint>

namespace lev {

// Where a task finds its memory arguments.
enum class staging : std::uint8_t {
  automatic,  // in place where the machine can and the argument is contiguous, else copied
  in_place,   // in place; strided arguments are packed into the local store
  copy,  // always a private copy in the local store: outputs appear only when the task completed
};

// What a host thread does while it waits. A choice of the runtime (config::wait), or of one wait.
enum class wait_policy : std::uint8_t {
  help,        // spin shortly, run other tasks, then sleep (default)
  park,        // spin shortly, then sleep; never runs a task
  spin,        // burn the core: lowest latency, for a host with a core of its own
  yield,       // offer the core to others between two polls; never runs a task, never sleeps
  directed,    // one host of a core polls, and hands over to the host whose task is complete
  of_runtime,  // the policy of config::wait, where it is not allowed. The default of each wait
};

// What submit does when all tickets are in use. Inside a task a post needs no ticket, except with
// `fail`.
enum class when_full : std::uint8_t {
  help,  // run a task here, a waiting one or the one posted; or sleep until a ticket is free
         // (default)
  wait,  // sleep until a ticket is free
  fail,  // return status::would_block
};

// What a worker process may do apart from running its tasks (`processes` only).
enum class isolation : std::uint8_t {
  crash,     // anything a program may: its faults end it and nothing else (default)
  confined,  // no files, no network, no other processes: for untrusted code
};

// How a program hears of the deaths of its worker processes.
struct death_hook {
  // Called on a thread of the runtime for each process that has ended, for whatever reason. The
  // last end that the process has reported was seen before; its successor starts, and its task gets
  // an outcome, afterwards. `how` is waitpid()'s status, -1 when that is not known. It must not use
  // the runtime, nor wait for a thread that does. An exception of it is a failure without a ticket,
  // which runtime::wait_for_completion() reports.
  void (*call)(void* context, int worker, int how) = nullptr;
  void* context = nullptr;
};

constexpr std::uint64_t no_time_limit = ~std::uint64_t{0};  // options::task_ns_max()

// For workers that are processes: the fields of `config::processes`. Other machines ignore them.
struct processes_config {
  lev::isolation isolation = lev::isolation::crash;
  std::uint32_t max_attempts = 3;  // a task whose worker dies this often is poison (status::poison)
  // When more workers than this have died in a row without having taken a task, the pool is down.
  std::uint32_t restarts_max = 8;
  std::uint64_t task_ns_max = 0;  // a task that runs longer is killed (status::overran); 0: never
  std::size_t worker_bytes_max = 0;          // private memory of a worker; 0: not limited
  std::uint32_t worker_cpu_seconds_max = 0;  // CPU time of a worker; 0: not limited
  // For tests of programs: a worker kills itself at one in `chaos` steps between and around tasks
  // (status::poison stays as likely as max_attempts makes it). 0: never.
  std::uint32_t chaos = 0;
  // The program from which workers are started, with its arguments and a null at the end; it must
  // call run_worker_program() (worker_program.hpp). Null: this program, started again: its
  // constructors run, but not main().
  const char* const* worker_command = nullptr;
  // Host processes of one user that name the same pool share its worker processes: 1 to 60 letters,
  // digits, '.', '-' or '_'. They run the same program at the same isolation. Null: workers of
  // its own. Read when the runtime opens.
  const char* pool = nullptr;
  lev::death_hook on_death = {};  // none by default
};

struct config {
  const char* machine = "threads";  // a name listed by lev::machine_name()
  // 0: one less than the cores this process may use, at least 1; on `processes` as many as there
  // are cores.
  int workers = 0;
  lev::staging staging = lev::staging::automatic;
  lev::wait_policy wait = lev::wait_policy::help;
  lev::when_full full = lev::when_full::help;
  bool pin = false;  // bind each worker to a core
  // How many tasks a worker looks ahead (multi-buffering); on `processes`, how many are posted to
  // it. 0: 4 on `threads`, 2 on `sim`, 8 on `processes`; 1: none.
  std::uint32_t depth = 0;
  std::size_t local_store_bytes = 256 << 10;  // per worker; rounded up to pages
  std::uint32_t tickets = 4096;  // tasks in flight at most; rounded up to a power of two
  // Dice until this many tasks per worker wait (Jack Rabbit section 4.4).
  std::uint32_t dice_threshold = 16;
  std::uint32_t host_threads = 64;  // threads that may ever call into this runtime at the same time
  // How many tasks may run on top of each other on one stack. A task that waits runs only its own
  // children there, so this bounds how deep a program recurses (status::too_deep).
  std::uint32_t nest_max = 256;
  // How many tasks of a worker take turns when they get data or yield (this_task()): 1 to 16; 0:
  // chosen by the size of what they get. Tasks that wait for others are not counted: they may use
  // all 16 contexts.
  std::uint32_t contexts = 0;
  // The stack of each context but the first; committed as it is used.
  std::size_t context_stack_bytes = 8 << 20;
  // How long an idle worker or waiting host polls before it sleeps; less where it would take a core
  // from others (docs/how-to/wait.md).
  std::uint32_t spin_ns = 50'000;
  std::uint32_t trace_events = 0;  // events kept per worker; 0: no trace
  std::uint64_t seed = 1;          // of every random choice; on `sim` it picks the schedule
  // For `sim`; other machines ignore it. The simulated machine: cell-ps3, cell-qs20, cell-qs21, or
  // the path of a machine file (cell_file.hpp). It gives the prices of all steps, the number of
  // workers if `workers` is 0, and the largest local store; if its ppe.runs_tasks is 0, waiting
  // hosts run no tasks. Null: the prices of cell-ps3, and nothing else of it. Read when the runtime
  // opens.
  const char* sim_machine = nullptr;

  processes_config processes{};
};

// machine_name() returns the i-th machine built into this library, or null when there is none;
// machine_unavailable() says why a machine does not work here, or null when it does. Thread safe.
const char* machine_name(unsigned index) noexcept;
const char* machine_unavailable(const char* name) noexcept;

// available_cores() counts the cores this process may use: the affinity mask, limited by the
// cgroup's CPU quota.
unsigned available_cores() noexcept;

}  // namespace lev

#endif
