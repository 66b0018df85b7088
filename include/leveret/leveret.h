/* The C API: opaque handles, status codes, procedures by name. For C, Fortran, Rust, Julia and the
 * Python binding.
 *
 * Every function that can fail returns a status (0 is success); lev_last_message() then says what
 * to do, for the calling thread. Structs are plain data with the same layout as their C++ twins in
 * task.hpp.
 *
 * Thread safety: any function from any thread, but for lev_close(): when it is called, no other
 * thread may be in a call of that runtime, or make one later.
 */
#ifndef LEVERET_LEVERET_H
#define LEVERET_LEVERET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEV_ARGUMENTS_MAX 18
#define LEV_NO_TIMEOUT (-1)

typedef enum lev_status {
  LEV_OK = 0,
  LEV_PENDING = 1,
  LEV_WOULD_BLOCK = 2,
  LEV_TIMED_OUT = 3,
  LEV_CANCELLED = 4,
  LEV_TASK_FAILED = 5,
  LEV_DEPENDENCY_FAILED = 6,
  LEV_BAD_PROCEDURE = 7,
  LEV_BAD_ARGUMENT = 8,
  LEV_BAD_ARGUMENT_COUNT = 9,
  LEV_TOO_BIG = 10,
  LEV_BAD_ADDRESS = 11,
  LEV_BAD_RANGE = 12,
  LEV_OVERLAP = 13,
  LEV_STALE_TICKET = 14,
  LEV_BAD_TICKET = 15,
  LEV_CLOSED = 16,
  LEV_WOULD_DEADLOCK = 17,
  LEV_DICE_LOOP = 18,
  LEV_UNAVAILABLE = 19,
  LEV_EXISTS = 20,
  LEV_BAD_CONFIG = 21,
  LEV_OUT_OF_MEMORY = 22,
  LEV_TOO_DEEP = 23,
  LEV_NOT_SUPPORTED = 24,
  LEV_BAD_FILTER = 25,
  LEV_POISON = 26,
  LEV_WORKER_DIED = 27,
  LEV_OVERRAN = 28,
  LEV_POOL_DOWN = 29,
  LEV_NOT_IN_TASK = 30,
  LEV_TOO_MANY_CONTEXTS = 31,
  LEV_TOO_LATE = 32
} lev_status;

typedef enum lev_kind {
  LEV_VALUE = 1,
  LEV_RESULT = 2,
  LEV_IN = 3,
  LEV_OUT = 4,
  LEV_INOUT = 5,
  LEV_RANGE = 6
} lev_kind;

#define LEV_SLICED 1 /* argument flags, see task.hpp */
#define LEV_ROWS 2
#define LEV_FAR 4
#define LEV_ALIGN_128 8 /* elements of that alignment; up to 64 needs no flag */
#define LEV_ALIGN_256 16
#define LEV_ALIGN_512 24
#define LEV_ALIGN_1024 32
#define LEV_ALIGN_2048 40
#define LEV_ALIGN_4096 48
#define LEV_PACKED 64 /* memory that always goes through the local store: not aligned, say */
#define LEV_EACH 128  /* a column of a bulk: lev_each */

typedef struct lev_runtime lev_runtime;
typedef uint64_t lev_ticket; /* 0 is no ticket */
typedef uint16_t lev_procedure_id;

/* One argument; see struct argument in task.hpp for the meaning of each field per kind. */
typedef struct lev_argument {
  uint64_t address;
  uint64_t row_bytes;
  int64_t stride_bytes;
  uint32_t rows;
  uint16_t unit_bytes;
  uint8_t what; /* lev_kind */
  uint8_t flags;
} lev_argument;

typedef struct lev_call {
  const lev_argument* arguments; /* local views */
  unsigned argument_count;
  void* context;
} lev_call;

/* A procedure's body: 0 on success, any other value fails the task. */
typedef int (*lev_body)(const lev_call* call);

/* As in config.hpp; 0 is the default. */
typedef enum lev_staging {
  LEV_STAGING_AUTOMATIC = 0,
  LEV_STAGING_IN_PLACE = 1,
  LEV_STAGING_COPY = 2
} lev_staging;
typedef enum lev_wait_policy {
  LEV_WAIT_HELP = 0,
  LEV_WAIT_PARK = 1,
  LEV_WAIT_SPIN = 2,
  LEV_WAIT_YIELD = 3,
  LEV_WAIT_DIRECTED = 4,
  LEV_WAIT_OF_RUNTIME = 5 /* for one wait: what lev_options.wait says */
} lev_wait_policy;
typedef enum lev_when_full {
  LEV_FULL_HELP = 0,
  LEV_FULL_WAIT = 1,
  LEV_FULL_FAIL = 2
} lev_when_full;
typedef enum lev_isolation { LEV_ISOLATION_CRASH = 0, LEV_ISOLATION_CONFINED = 1 } lev_isolation;

/* Zero-initialise, then set the fields that differ from the default. */
typedef struct lev_options {
  const char* machine; /* NULL: "threads" */
  int workers;         /* 0: one less than the cores, at least 1 */
  uint32_t tickets;    /* 0: default */
  uint32_t trace_events;
  uint64_t local_store_bytes; /* 0: default */
  uint64_t seed;
  lev_staging staging;
  lev_wait_policy wait;
  lev_when_full full;
  /* For machine "processes"; others ignore them. */
  lev_isolation isolation;
  uint32_t max_attempts;           /* 0: default */
  uint32_t restarts_max;           /* 0: default */
  uint32_t worker_cpu_seconds_max; /* 0: not limited */
  uint64_t task_ns_max;            /* 0: never killed */
  uint64_t worker_bytes_max;       /* 0: not limited */
  /* For tasks that give way when they wait. */
  uint32_t contexts;            /* 0: default */
  uint64_t context_stack_bytes; /* 0: default */
  /* For machine "processes": host processes that name the same pool share its workers. NULL:
   * workers of its own. Read when the runtime opens. */
  const char* pool;
  /* For machine "sim": cell-ps3, cell-qs20, cell-qs21 or the path of a machine file; see
   * config.hpp. NULL: the prices of cell-ps3. Read when the runtime opens. */
  const char* sim_machine;
} lev_options;

/* Events since lev_open; see struct counters in counters.hpp. */
typedef struct lev_counters {
  uint64_t submitted;
  uint64_t completed;
  uint64_t failed;
  uint64_t direct;
  uint64_t stolen;
  uint64_t diced;
  uint64_t passes;
  uint64_t parks;
  uint64_t staged_bytes;
  uint64_t bad_filters;
  uint64_t helped;
  uint64_t deaths;
  uint64_t reruns;
} lev_counters;

typedef struct lev_outcome {
  lev_status code;
  int task_code; /* what the body returned */
  uint32_t failures;
  char message[256]; /* what() of the exception it threw, if any */
} lev_outcome;

const char* lev_version(void);
const char* lev_status_name(lev_status code);
/* The message of this thread's last failed call; "" if none failed. Valid until this thread's
 * next call. */
const char* lev_last_message(void);

/* Argument makers. */
lev_argument lev_value(const void* bytes, size_t size); /* size <= 16, else the submit is refused */
lev_argument lev_memory(lev_kind kind, const void* address, size_t element_bytes, size_t count);
lev_argument lev_strided(lev_kind kind, const void* address, size_t element_bytes, size_t rows,
                         size_t row_count, ptrdiff_t stride_bytes);

/* A column of a bulk (lev_submit_bulk): task i gets the `count` elements at
 * address + i * stride_bytes; of a LEV_VALUE or LEV_RESULT one, of at most 16 bytes. */
lev_argument lev_each(lev_kind kind, const void* address, size_t element_bytes, size_t count,
                      ptrdiff_t stride_bytes);

/* Machine "processes" finds `body` by its place in the program or library; `context` must be NULL
 * there, or in shared memory. */
lev_status lev_register(const char* name, lev_body body, void* context, const lev_kind* kinds,
                        unsigned count, lev_procedure_id* id);
lev_procedure_id lev_lookup(const char* name); /* 0: none */

lev_status lev_open(const lev_options* options, lev_runtime** runtime); /* options may be NULL */
/* lev_close() waits for all tasks, and frees the runtime. NULL is accepted. */
lev_status lev_close(lev_runtime* runtime);

lev_status lev_submit(lev_runtime* runtime, lev_procedure_id procedure,
                      const lev_argument* arguments, unsigned count, lev_ticket* ticket);
/* Like lev_submit, started only after all tasks of after[0..after_count) completed with LEV_OK. If
   another thread waits for one of the tickets, or releases it, before this returns, the call may
   answer LEV_STALE_TICKET; then nothing was submitted. */
lev_status lev_submit_after(lev_runtime* runtime, lev_procedure_id procedure,
                            const lev_argument* arguments, unsigned count, const lev_ticket* after,
                            unsigned after_count, lev_ticket* ticket);
/* lev_submit without a ticket, for tasks that only lev_wait_for_completion waits for. Cheaper, and
   inside a task not refused for lack of tickets. */
lev_status lev_post(lev_runtime* runtime, lev_procedure_id procedure, const lev_argument* arguments,
                    unsigned count);

/* Submits `tasks` tasks of one procedure behind one ticket. Arguments made by lev_each are columns,
 * of which each task gets its own part; all tasks share the other arguments, which are no outputs.
 * Task i that fails keeps no other from running: the outcome has their number, and its message
 * names the first. See runtime::submit_bulk. The columns must stay as they are until the ticket is
 * done. A few dozen instructions a task. */
lev_status lev_submit_bulk(lev_runtime* runtime, size_t tasks, lev_procedure_id procedure,
                           const lev_argument* arguments, unsigned count, lev_ticket* ticket);

/* What a task may ask for beyond its arguments: see class options in options.hpp. Zero-initialise,
 * then set what differs from the default. */
typedef struct lev_task_options {
  const lev_ticket* after; /* as in lev_submit_after */
  unsigned after_count;
  int32_t priority;
  uint32_t key;
  uint32_t grain;
  uint32_t max_attempts; /* 0: as lev_options says */
  uint64_t task_ns_max;  /* 0: as lev_options says; LEV_NO_TIME_LIMIT: never killed */
} lev_task_options;
#define LEV_NO_TIME_LIMIT UINT64_MAX
/* Like lev_submit; options may be NULL. LEV_NOT_SUPPORTED: a time limit where there are no worker
 * processes, which alone can be killed. */
lev_status lev_submit_with(lev_runtime* runtime, lev_procedure_id procedure,
                           const lev_argument* arguments, unsigned count,
                           const lev_task_options* options, lev_ticket* ticket);

/* Waits consume the ticket unless they time out. outcome may be NULL. Returns the task's outcome
 * code. */
lev_status lev_wait(lev_runtime* runtime, lev_ticket ticket, int64_t timeout_ns,
                    lev_outcome* outcome);
lev_status lev_wait_any(lev_runtime* runtime, lev_ticket* tickets, size_t count, int64_t timeout_ns,
                        size_t* index, lev_outcome* outcome); /* sets tickets[*index] to 0 */
/* The same, by another policy than the runtime's. LEV_BAD_ARGUMENT when there is no such policy. */
lev_status lev_wait_by(lev_runtime* runtime, lev_ticket ticket, int64_t timeout_ns,
                       lev_wait_policy how, lev_outcome* outcome);
lev_status lev_wait_any_by(lev_runtime* runtime, lev_ticket* tickets, size_t count,
                           int64_t timeout_ns, lev_wait_policy how, size_t* index,
                           lev_outcome* outcome);
lev_status lev_wait_for_completion(lev_runtime* runtime, int64_t timeout_ns);
lev_status lev_poll(lev_runtime* runtime,
                    lev_ticket ticket); /* LEV_PENDING, or the outcome's code; does not consume */
lev_status lev_cancel(lev_runtime* runtime, lev_ticket ticket);
/* Like lev_cancel, but a task that runs in a worker process is ended with it. LEV_TOO_LATE:
 * it had its outcome; LEV_NOT_SUPPORTED: a running task goes on. See ticket::end(). */
lev_status lev_end(lev_runtime* runtime, lev_ticket ticket);
void lev_release(lev_runtime* runtime, lev_ticket ticket);

/* Tasks whose order follows from the memory that they declare: lev::ordered (ordered.hpp has rules
 * and cost). A scope is closed before its runtime. Any may fail with LEV_BAD_ARGUMENT, for a NULL,
 * LEV_OUT_OF_MEMORY, and LEV_WOULD_BLOCK while another call of the scope is under way.
 *
 * lev_ordered_submit fails as lev_submit_with does, and has then submitted nothing; options may be
 * NULL, and so may ticket. What it sets is the scope's: for lev_poll, lev_cancel and lev_end, which
 * answer LEV_STALE_TICKET when the scope has done with it, never to be waited for or released; 0 if
 * the task comes after one that failed, and so does not run. lev_ordered_wait waits for all so far:
 * returns LEV_OK or what became of the first, in their order, that failed; failures is how many.
 * Tasks stay after LEV_TIMED_OUT, LEV_WOULD_DEADLOCK and the like. lev_ordered_close waits for all
 * and frees the scope; failures that no wait has told go to lev_wait_for_completion. */
typedef struct lev_ordered lev_ordered;
lev_status lev_ordered_open(lev_runtime* runtime, lev_ordered** scope);
lev_status lev_ordered_submit(lev_ordered* scope, lev_procedure_id procedure,
                              const lev_argument* arguments, unsigned count,
                              const lev_task_options* options, lev_ticket* ticket);
lev_status lev_ordered_wait(lev_ordered* scope, int64_t timeout_ns, lev_outcome* outcome);
void lev_ordered_close(lev_ordered* scope); /* NULL does nothing */

lev_status lev_count(const lev_runtime* runtime, lev_counters* counters);
/* Writes the trace as Chrome/Perfetto JSON; lev_options.trace_events must not have been 0. */
lev_status lev_write_trace(const lev_runtime* runtime, const char* path);

/* Inside a task: data found on the way, waiting without idling, threads of its own; see
 * leveret/this_task.hpp. To be called by a procedure's body on the thread it was called on, or by a
 * thread it spawned; else LEV_NOT_IN_TASK, as on machine "processes". All but lev_task_get and
 * lev_task_id, lev_task_stack_left and lev_task_pass_time may let other tasks of the worker run.
 *
 * Far memory is an argument of one row with the flag LEV_FAR (lev_memory, then set flags): it is
 * declared, not staged. `far` is that argument as the body sees it, call->arguments + i; `first`
 * and `count` are in its elements. */
#define LEV_TASK_TAGS 16

/* Starts the transfer of `count` elements, and sets *data to where they will be when
 * lev_task_wait(tag) has returned: the caller's memory itself where tasks work in place, else a
 * buffer that stays until the next get under that tag, or the task's end. Write there only what is
 * LEV_INOUT. LEV_BAD_RANGE: not all of it was declared; LEV_BAD_ARGUMENT: `far` is not far memory
 * to read, or the tag is 16 or more; LEV_OUT_OF_MEMORY. */
lev_status lev_task_get(const lev_argument* far, size_t first, size_t count, unsigned tag,
                        void** data);
/* Starts the way back from `values`, which a get returned or which lie anywhere in the task; they
 * must stay as they are until lev_task_wait(tag) has returned. Fails as lev_task_get does. */
lev_status lev_task_put(const lev_argument* far, size_t first, size_t count, const void* values,
                        unsigned tag);
/* Returns when everything under the tag, or under each tag whose bit is set, has arrived. */
lev_status lev_task_wait(unsigned tag);
lev_status lev_task_wait_all(uint32_t tags);
/* Lets the worker's other tasks run until they wait. */
lev_status lev_task_yield(void);
/* A computation's time on a machine with virtual time, in cycles; nothing elsewhere. */
lev_status lev_task_pass_time(uint64_t cycles);

typedef struct lev_thread lev_thread;
typedef void (*lev_thread_body)(void* argument);
/* Starts body(argument) on another context of this worker, inside this task: it runs when this flow
 * of control waits, yields or joins. Every thread must be joined, by the flow that spawned it,
 * before the body returns. LEV_TOO_MANY_CONTEXTS: all are in use; LEV_OUT_OF_MEMORY. */
lev_status lev_task_spawn(lev_thread_body body, void* argument, lev_thread** thread);
/* Returns when the thread's body has returned, and frees the thread. NULL is accepted.
 * LEV_TASK_FAILED: the body was written in C++ and threw; lev_last_message() says what. */
lev_status lev_task_join(lev_thread* thread);

/* The number of the context this runs on: 0 is the worker's own stack. */
lev_status lev_task_id(unsigned* id);
/* Bytes of this context's stack that are free below the caller; 0: not known (the worker's own). */
lev_status lev_task_stack_left(size_t* bytes);

/* All of the above by pointers, for a library that is not linked with Leveret: the parameter `task`
 * of a function that leveret.load() of the Python package has loaded. */
typedef struct lev_task_calls {
  lev_status (*get)(const lev_argument* far, size_t first, size_t count, unsigned tag, void** data);
  lev_status (*put)(const lev_argument* far, size_t first, size_t count, const void* values,
                    unsigned tag);
  lev_status (*wait)(unsigned tag);
  lev_status (*wait_all)(uint32_t tags);
  lev_status (*yield)(void);
  lev_status (*pass_time)(uint64_t cycles);
  lev_status (*spawn)(lev_thread_body body, void* argument, lev_thread** thread);
  lev_status (*join)(lev_thread* thread);
  lev_status (*id)(unsigned* id);
  lev_status (*stack_left)(size_t* bytes);
} lev_task_calls;
/* The calls of this library. Valid for ever; thread safe. */
const lev_task_calls* lev_task_table(void);

/* Shared memory has the same address in worker processes and the host, so that tasks use it in
 * place; on other machines memory like any other. Thread safe.
 *
 * lev_shared_allocate returns `bytes` zeroed bytes aligned to 128, NULL when there are none left or
 * `bytes` is 0; about a microsecond, more among thousands freed, and the time to clear them.
 * lev_shared_free gives back what it returned, which no task may use any more; NULL does nothing.
 * lev_is_shared is 1 if all of [data, data + bytes) is shared memory, else 0. */
void* lev_shared_allocate(size_t bytes);
void lev_shared_free(void* block);
int lev_is_shared(const void* data, size_t bytes);

/* Hiding memory latency; see interleave.hpp and docs/how-to/hide-memory-latency.md. */

/* One item in flight. Filled in by the library; its fields are for the functions below only. */
typedef struct lev_strand {
  void* stack_pointer;
  void (*give_way)(struct lev_strand* self);
} lev_strand;

/* strand is NULL while items run one after another. */
typedef void (*lev_item)(size_t index, lev_strand* strand, void* argument);

#define LEV_STRANDS_AUTOMATIC 0

/* Calls item(i, strand, argument) for each i in [0, count), n of them in flight, on this thread. n:
 * LEV_STRANDS_AUTOMATIC, or 1 to 64 (else LEV_TOO_BIG). LEV_OUT_OF_MEMORY: no stacks for n items;
 * none was started. After an exception of a C++ item no further one starts: LEV_TASK_FAILED.
 */
lev_status lev_interleave(unsigned n, size_t count, lev_item item, void* argument);

/* Lets the other items in flight go on. These two are inline, so that a library with items need not
 * be linked with Leveret. */
static inline void lev_strand_yield(lev_strand* strand) {
  if (strand != NULL) strand->give_way(strand);
}

/* Asks for the line of memory at p, lets the others go on meanwhile, returns p. */
static inline const void* lev_strand_fetch(lev_strand* strand, const void* p) {
  if (strand != NULL) {
    __builtin_prefetch(p);
    strand->give_way(strand);
  }
  return p;
}

#ifdef __cplusplus
}
#endif

#endif
