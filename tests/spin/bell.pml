/*
 * bell: who sleeps and who wakes whom: workers for a record, hosts for a ticket, the service for
 * the bell; with workers that die at any step, also with a hand on the bell.
 *
 * Models
 *   post, finish, asleep, rung           src/machines/processes/lane.hpp
 *   await, notify_if_unwatched, sleep    src/machines/processes/serve.cpp
 *   the bell, a death, replace           src/machines/processes/pool.cpp
 *   tend, tend_line                      src/remote/tend.cpp
 *   fill_line, send_straight             src/remote/post.cpp
 *   bury                                 src/remote/bury.cpp
 *   serve_until; sleep                   src/worker/serve.cpp; src/remote/idle.cpp
 *   turn                                 src/sync/pass_lock.hpp
 *
 * Checks: no lost wake-up. Every task is completed and every host returns, for every order of
 * steps; otherwise somebody sleeps for ever, which is an invalid end state.
 *
 * The rules that nobody sleeps on
 *   worker  says asleep, looks for a record, sleeps while it says so; a post takes that word back
 *           before it wakes, or the wake-up comes before the sleep and is lost. It rings before it
 *           sleeps, and when hosts want ends also while there are more records
 *   host    tends as long as it is counted as a watcher. When it does not watch any more, to sleep
 *           or to return, it takes itself from the watchers and then looks at every lane: the ends
 *           of others were left to it
 *   tend    takes one end in a turn, and posts none in that turn: so again, until there was nothing
 *           to do, also for a host that only submits, unless it has sent its task straight to the
 *           worker (STRAIGHT), which rings when it has nothing more to do
 *   load    is raised before the worker can end the task: who does not see it looks for no end
 *   turn    who finds it taken asks, and the holder goes round again
 *   ring    the flag first, then the eventfd
 *   service drains the eventfd, then clears the flags, then looks; a dead worker's flag is cleared
 *           before the next one starts, as it may have died between flag and eventfd
 *
 * Records and ends are published in order, so that counts stand for their numbers (claim.pml has
 * the numbers). Patience may end at any moment. There is one lane: lanes have the bell, the
 * watchers and the ready queue in common, and no more.
 *
 * Host 0 submits all tasks and waits for task 0, host 1 waits for task 1. With APART, host 0
 * submits task 0, and host 1 the others. With ASYNC, who has submitted waits for nothing. Tasks
 * nobody waits for are completed all the same.
 */
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef TASKS
#define TASKS 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef HOSTS
#define HOSTS 2
#endif

/* Shared memory: the lanes and the board. */
byte records;
byte ends;
byte collected;
bool asleep;
bool rung;
byte watchers;
byte ends_wanted;

/* The kernel: a worker that sleeps in futex_wait, the eventfd, the zygote's socket, the parkers. */
bool in_futex;
bool bell;
bool died;
bool born;
bool token[HOSTS];

/* The host's own. */
mtype = { idle, busy, asked };
mtype turn = idle;
byte load;
bool is_down;
chan line = [DEPTH] of { byte };
chan ready = [TASKS] of { byte };
bool done[TASKS];
byte waiter[TASKS];

#ifdef LONG_BODY /* the body of task 1 ends only when task 0 was reported; no death */
byte order[TASKS];
#define BODY (order[ends] != 1 || done[0])
#define NOTE_ORDER order[records] = task
#else
#define BODY true
#define NOTE_ORDER
#endif
byte deaths;
byte completed;
byte hosts_left = HOSTS;

#define is_over (completed == TASKS && hosts_left == 0)
#define has_end (ends != collected)
#define has_room (load < DEPTH && load < 1 + len(ready))
#define has_work ((load != 0 && has_end) || (len(ready) != 0 && has_room))

/* One step of a worker; or it is killed before that step. */
#define STEP(action)                                          \
  if                                                          \
  :: atomic { action }                                        \
  :: atomic { deaths < DEATHS -> deaths++; goto killed }      \
  fi

inline notify_if_unwatched() {
  if
  :: watchers != 0
  :: else ->
#ifdef WRITE_THEN_FLAG
     if
     :: !rung -> bell = true; rung = true
     :: else
     fi
#else
     if
     :: atomic { !rung -> rung = true }; STEP(bell = true)
     :: else
     fi
#endif
  fi
}

active proctype worker() {
  bool has_rung;

await:
  do
  :: records != ends -> break
  :: else ->
     if
     :: !has_rung -> has_rung = true; notify_if_unwatched()
#ifdef SLEEP_UNRUNG
     :: true
#endif
     :: has_rung
     fi;
     STEP(asleep = true);
#ifndef WORKER_NO_LOOK
     if
     :: records != ends -> asleep = false; break
     :: else
     fi;
#endif
     STEP(in_futex = asleep);
     if
     :: !in_futex
     :: atomic { in_futex && deaths < DEATHS -> deaths++; goto killed }
     :: is_over -> goto gone
     fi;
     asleep = false
  od;
  has_rung = false;
  do
  :: BODY; STEP(ends++);
     if
     :: records == ends -> goto await
     :: else
     fi;
#ifndef ENDS_NOT_TOLD
     if
     :: ends_wanted != 0 -> notify_if_unwatched()
     :: else
     fi
#endif
  od;
killed:
  atomic { in_futex = false; has_rung = false; died = true };
  if
  :: atomic { born -> born = false; goto await }
  :: is_over
  fi;
gone: skip
}

/* Between steps of the holder of a turn; not with COARSE, where they are one. */
#ifdef COARSE
#define CUT ;
#else
#define CUT }; atomic {
#endif

/* Lets go of the turn, unless somebody has asked meanwhile. */
#define LET_GO                                             \
  if                                                          \
  :: atomic { turn == busy -> turn = idle }; break      \
  :: atomic { turn == asked -> turn = busy }            \
  fi

/* In the turn: one end is taken, if there is one, and the line is filled if there is none. */
inline round() {
  if
  :: atomic { !over && has_end -> line?task; collected++; over = true CUT load-- }
  :: else
  fi;
  do
  :: atomic {
       !over && !is_down && len(ready) != 0 && has_room ->
       ready?task; line!task; NOTE_ORDER;
       task = 0;
       worked = true;
       load++
       CUT records++
     };
     if
#ifdef WAKE_KEEPS_ASLEEP
     :: asleep -> in_futex = false
#else
     :: atomic { asleep -> asleep = false CUT in_futex = false }
#endif
     :: else
     fi
  :: else -> break
  od
}

inline tend() {
  if
  :: atomic { has_work && turn == idle -> turn = busy };
     do
     :: round(); LET_GO
     od;
     if
     :: atomic {
          over ->
          over = false;
          worked = true;
          done[task] = true;
          completed++;
          if
          :: waiter[task] != 0 -> token[waiter[task] - 1] = true
          :: else
          fi;
          task = 0
        }
     :: else
     fi
  :: atomic { has_work && turn == busy -> turn = asked }
  :: else
  fi
}

/* A submit posts the task itself, in the turn, if it can, and looks at no end. */
inline send_straight(sent) {
  if
  :: atomic { len(ready) == 0 && load < DEPTH && !is_down && turn == idle -> turn = busy };
#ifdef LOAD_LATE
     atomic { line!next CUT records++ CUT load++ };
#else
     atomic { line!next; load++ CUT records++ };
#endif
     if
     :: atomic { asleep -> asleep = false CUT in_futex = false }
     :: else
     fi;
     if
     :: atomic { turn == busy -> turn = idle; sent = true }
     :: atomic { turn == asked -> turn = idle }
     fi
  :: atomic { else -> ready!next }
  fi
}

#define me (_pid - 1) /* the worker is process 0 */

active [HOSTS] proctype host() {
  byte task, mine, next, last;
  bool over, worked, is_waiting, is_leaving, sent;

  last = TASKS - 1;
  if
#ifdef APART
  :: me == 0 -> last = 0
  :: me == 1 -> mine = 1; next = 1
#else
  :: me == 0
  :: me == 1 -> mine = 1; goto wait
#endif
  fi;
submit:
#ifdef STRAIGHT
  send_straight(sent);
  if
  :: sent -> sent = false; goto submitted
  :: else
  fi;
#else
  ready!next;
#endif
tending:
  if
  :: is_waiting && done[mine] -> goto leave
  :: else
  fi;
#ifdef HELPS_NOT
  if
  :: is_waiting -> !has_work || done[mine]
  :: else -> tend()
  fi;
#else
  tend();
#endif
  if
#ifdef TEND_ONCE
  :: worked && (is_waiting || is_leaving) -> worked = false; goto tending
#else
  :: worked -> worked = false; goto tending
#endif
  :: else -> worked = false
  fi;
submitted:
  if
  :: is_leaving -> goto left
  :: !is_waiting && !is_leaving && next < last -> next++; goto submit
  :: !is_waiting && !is_leaving && next == last ->
#ifdef ASYNC
     goto left
#else
     goto wait
#endif
  :: is_waiting && (done[mine] || has_work) -> goto tending
  :: else /* until the end of its patience */
  fi;
  atomic { ends_wanted++; watchers-- };
  if
  :: done[mine] -> goto awake
  :: atomic { !done[mine] -> waiter[mine] = me + 1 }
  fi;
#ifndef HOST_NO_LOOK
  if
  :: has_work -> goto awake
  :: else
  fi;
#endif
  atomic { token[me] -> token[me] = false };
awake:
  atomic { watchers++; ends_wanted--; goto tending };
wait:
  atomic { watchers++; is_waiting = true; goto tending };
leave:
  atomic { watchers--; is_waiting = false; is_leaving = true };
#ifndef LEAVE_NO_LOOK
  goto tending;
#endif
left:
  atomic { hosts_left--; task = 0; mine = 0; next = 0; last = 0; is_leaving = false }
}

/* Nobody posts any more; what was finished is collected; the rest is for others, and a worker. */
inline bury() {
  if
  :: atomic { died -> died = false };
     atomic { turn == idle -> is_down = true };
     do
     :: load != 0 && has_end -> tend()
     :: else -> break
     od;
     worked = true;
     atomic {
       turn == idle ->
       do
       :: len(line) != 0 -> line?task; ready!task
       :: len(line) == 0 -> break
       od;
       task = 0;
       load = 0;
       records = ends;
       asleep = false;
#ifndef DEATH_KEEPS_RUNG
       rung = false;
#endif
       is_down = false;
       born = true
     }
  :: else
  fi
}

active proctype service() {
  byte task;
  bool over, worked;

  watchers++;
  do
  :: bury();
     tend();
     if
     :: worked -> worked = false
     :: else ->
        watchers--;
        if
#ifdef SERVICE_NO_LOOK
        :: false
#else
        :: has_work
#endif
        :: else ->
           if
#ifdef CLEAR_THEN_DRAIN
           :: bell -> rung = false; bell = false
#else
           :: bell -> bell = false; rung = false
#endif
           :: died
           :: is_over -> break
           fi
        fi;
        watchers++
     fi
  od
}
