/*
 * claim: one lane of the machine `processes`: post, claim, outcome, collect, and what happens to
 * the tasks of a worker that is killed at any step.
 *
 * Models
 *   records, ends (here: outcomes), claimed     src/machines/processes/lane.hpp
 *   post, collect, was_begun, start_worker      src/machines/processes/machine.cpp, pool.cpp
 *   the worker's loop                           src/machines/processes/serve.cpp
 *   collect_ends, fill_line, turn               src/remote/collect.cpp, post.cpp, tend.cpp
 *   bury, judge (here: reap)                    src/remote/bury.cpp
 *
 * Checks, for every order of steps and every place of every kill:
 *   a task reports exactly one outcome; nothing writes to a task's memory after it;
 *   what the caller gets was written by one whole attempt, from the caller's own inputs;
 *   attempts that were counted == workers that were killed between claim and outcome,
 *   re-runs == those less the poisoned tasks, and no task is begun more often than `attempts_max`;
 *   a body is not run twice at once; everything ends.
 *
 * Task t's memory is two words, both t + 1 at first. The attempt that was posted under number n
 * adds 10 n to each, so torn, stale, mixed and repeated results all have other values than
 * t + 1 + 10 n. By default outputs are private: they are written to the store of the attempt and
 * copied at collect. With SHARED_OUT they are written to the caller's memory by the body itself.
 *
 * Left out: sleeping and waking (bell.pml), the pool and the end (shutdown.pml). One lane: lanes
 * share nothing but the ready queue, which is under no lane's turn and whose pops are atomic.
 */
#ifndef TASKS
#define TASKS 2
#endif
#define PLACES 2
#define ATTEMPTS_MAX 2

#ifdef TIME_OUT /* one worker is taken for dead that is only slow; no worker dies */
#define WORKERS 2
#define KILLS 0
#else
#define WORKERS 1
#ifndef KILLS
#define KILLS 3
#endif
#endif

#ifdef FRESH_LANE /* the next worker gets other memory */
#define LANES WORKERS
#define OWN_LANE _pid
#else
#define LANES 1
#define OWN_LANE 0
#endif

/* Shared memory of the lane. Numbers are never used twice, and 0 is none. */
byte record_number[PLACES * LANES];
byte record_task[PLACES * LANES];
byte outcome_number[PLACES * LANES];
byte store_a[PLACES * LANES];
byte store_b[PLACES * LANES];
byte claimed[LANES];

/* The host's own, changed by the holder of `turn` alone. */
bool turn;
byte lane;
byte posted;
byte collected;
byte flight[PLACES];

/* The host's own, atomic by itself. */
chan ready = [TASKS] of { byte };
byte caller_a[TASKS];
byte caller_b[TASKS];

/* Zygote: what it was asked to start, what the kernel told it. */
byte start[WORKERS];
bool dead;

/* For the checks. */
byte attempts[TASKS];
byte begun[TASKS];
byte reports[TASKS];
byte is_running;
byte kills;
byte kills_in_window;
byte counted;
byte reruns;
byte poisoned;
byte reported;

#define place_of(n) ((n) % PLACES + PLACES * lane)
#define expected(t, n) ((t) + 1 + 10 * (n))
#define is_over (reported == TASKS)
#ifdef NO_NUMBER
#define has_outcome(n) (outcome_number[place_of(n)] != 0)
#else
#define has_outcome(n) (outcome_number[place_of(n)] == (n))
#endif
#define can_collect (collected < posted && has_outcome(collected + 1))
#define can_post (posted - collected < PLACES && nempty(ready))

/* One step of a worker; or it is killed before that step. */
#define STEP(action)                                          \
  if                                                          \
  :: atomic { action }                                        \
  :: atomic { kills < KILLS -> kills++; goto killed }         \
  fi

#ifdef TIME_OUT
#define BEGIN(task) begun[task]++
#else
#define BEGIN(task) begun[task]++; is_running++; assert(is_running == 1)
#endif
#define own_place(n) ((n) % PLACES + PLACES * OWN_LANE)

active [WORKERS] proctype worker() {
  byte next, place, task, input;
  bool in_window;

unborn:
  atomic {
    if
    :: start[_pid] != 0 -> next = start[_pid]; start[_pid] = 0
    :: is_over -> goto gone
    fi
  }
poll:
  if
  :: atomic { record_number[own_place(next)] == next -> place = own_place(next) }
  :: atomic { kills < KILLS -> kills++; goto killed }
  :: is_over -> goto gone
  fi;
#ifndef CLAIM_LATE
  STEP(claimed[OWN_LANE] = next; in_window = true);
#endif
  STEP(task = record_task[place]; input = store_a[place]; in_window = true; BEGIN(task));
#ifdef PUBLISH_EARLY
  STEP(outcome_number[place] = next; in_window = false);
#endif
#ifdef SHARED_OUT
  STEP(assert(reports[task] == 0); caller_a[task] = input + 10 * next);
  STEP(assert(reports[task] == 0); caller_b[task] = input + 10 * next; is_running--);
#else
  STEP(store_a[place] = input + 10 * next);
  STEP(store_b[place] = store_b[place] + 10 * next; is_running--);
#endif
#ifdef CLAIM_LATE
  STEP(claimed[OWN_LANE] = next);
#endif
#ifndef PUBLISH_EARLY
  STEP(outcome_number[place] = next; in_window = false);
#endif
  atomic { next++; task = 0; input = 0; place = 0; goto poll };

killed:
  atomic {
    kills_in_window = kills_in_window + in_window;
    in_window = false;
    is_running = 0;
    next = 0; task = 0; input = 0; place = 0;
    dead = true;
    goto unborn
  }
gone: skip
}

/* Under turn: the oldest outstanding task has an outcome. */
inline collect() {
  atomic { p = place_of(collected + 1); t = flight[p % PLACES] };
#ifndef SHARED_OUT
  caller_a[t] = store_a[p];
  caller_b[t] = store_b[p];
#endif
  atomic {
    collected++;
    assert(reports[t] == 0);
    reports[t]++;
    reported++;
    assert(caller_a[t] == expected(t, collected));
    assert(caller_b[t] == expected(t, collected));
    p = 0; t = 0
  }
}

/* Under turn: there is room, and a task. */
inline post() {
  atomic {
    p = place_of(posted + 1);
    ready?t;
#ifdef NO_REFETCH
    if
    :: attempts[t] == 0 -> store_a[p] = caller_a[t]; store_b[p] = caller_b[t]
    :: else
    fi;
#elif defined(SHARED_OUT)
    store_a[p] = t + 1;
#else
    store_a[p] = caller_a[t];
    store_b[p] = caller_b[t];
#endif
    record_task[p] = t;
    flight[p % PLACES] = t
  };
  atomic { posted++; record_number[p] = posted; p = 0; t = 0 }
}

/* Under turn, after all published outcomes were collected: whose task was it? */
inline reap() {
  n = collected + 1;
  do
  :: n <= posted ->
     t = flight[n % PLACES];
     if
#ifdef BLAME_ALL
     :: true ->
#else
     :: n == claimed[lane] ->
#endif
#ifndef VICTIM_NOT_COUNTED
        attempts[t]++;
        counted++;
#endif
        if
        :: attempts[t] == ATTEMPTS_MAX ->
           assert(reports[t] == 0);
           reports[t]++; reported++; poisoned++;
#if !defined(SHARED_OUT) || defined(KEEP_ON_POISON)
           assert(caller_a[t] == t + 1 && caller_b[t] == t + 1)
#endif
        :: else -> ready!t; reruns++
        fi
#ifndef BLAME_ALL
     :: else -> ready!t
#endif
     fi;
     n++
  :: else -> break
  od;
  n = 0; t = 0;
#ifdef NUMBERS_RESTART
  posted = collected;
#else
  collected = posted;
#endif
#ifndef TIME_OUT
  assert(counted == kills_in_window);
  assert(reruns + poisoned == kills_in_window);
#endif
}

/* Any thread of the host that tends the lane. */
active proctype host() {
  byte p, t;
  do
  :: atomic { !turn && can_collect -> turn = true }; collect(); turn = false
  :: atomic { !turn && can_post -> turn = true }; post(); turn = false
  :: is_over -> break
  od
}

/* The service thread, on a death that the zygote reports; with TIME_OUT, when it lost patience. */
active proctype service() {
  byte p, t, n;
#ifdef TIME_OUT
  bool lost_patience;
#endif
  atomic {
    do
    :: t < TASKS -> caller_a[t] = t + 1; caller_b[t] = t + 1; ready!t; t++
    :: else -> break
    od;
    t = 0;
    start[0] = 1
  };
  do
#ifdef REAP_WITHOUT_TURN
  :: atomic { dead -> dead = false };
#elif defined(TIME_OUT)
  :: atomic { !turn && !lost_patience && collected < posted -> turn = true };
#else
  :: atomic { dead && !turn -> turn = true; dead = false };
#endif
#ifndef NO_LOOK
     do
     :: can_collect -> collect()
     :: else -> break
     od;
#endif
#ifdef START_LATE
     atomic { reap(); turn = false };
     start[0] = posted + 1
#elif defined(TIME_OUT)
     atomic {
       reap(); lost_patience = true; start[1] = posted + 1; turn = false;
#ifdef FRESH_LANE
       lane = 1
#endif
     }
#elif defined(REAP_WITHOUT_TURN)
     atomic { reap(); start[0] = posted + 1 }
#else
     atomic { reap(); start[0] = posted + 1; turn = false }
#endif
  :: is_over -> break
  od;
  atomic {
    t = 0;
    do
    :: t < TASKS ->
       assert(reports[t] == 1);
#ifndef TIME_OUT
       assert(begun[t] <= ATTEMPTS_MAX);
#endif
       t++
    :: else -> break
    od
  }
}
