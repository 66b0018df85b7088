/*
 * shutdown: submitters that wait for one of few slots, a worker that dies, and close(): drain,
 * stop, join.
 *
 * Models
 *   slots, space_wanted                  src/worker/wake.hpp, src/runtime/awaits.hpp
 *   admit: closing                       src/runtime/admit.hpp
 *   the drain, stop                      src/runtime/close.cpp
 *   join, orders, a worker's start       src/machines/processes/machine.cpp, pool.cpp
 *   the worker's end                     src/machines/processes/serve.cpp
 *   bury                                 src/remote/bury.cpp
 *
 * Checks: everything ends: every submit returns, accepted or refused; every accepted task is
 * completed, though the worker dies at any step, also while closing; the service leaves, then the
 * worker by itself, then close() returns. Otherwise somebody waits for ever, which is an invalid
 * end state.
 *
 * A submit is counted as accepted before it looks at `closing` again; if it sees it then, it takes
 * itself back and tells the drain. A worker that is about to sleep looks for records and for
 * orders. It is told to stop when the service, which starts workers, has left.
 *
 * There is one lane. A slot is free again when its task is completed. The bell is perfect here: the
 * service sees whatever there is to do (bell.pml has the real one). close() may come at any moment.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef PLACES
#define PLACES 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define SUBMITTERS 2
#ifndef FIRST_SUBMITS
#define FIRST_SUBMITS 1
#endif
#define CLOSER SUBMITTERS

/* Shared memory: the lane. */
byte records;
byte outcomes;
bool asleep;
bool stop;

/* The kernel: futex, the zygote's socket, parkers. */
bool in_futex;
bool died;
bool born;
bool token[SUBMITTERS + 1];

/* The host's own. */
bool turn;
byte collected;
byte ready;
byte slots = SLOTS;
byte space_wanted;
bool wants_space[SUBMITTERS];
bool closing;
byte barrier_wanted;
byte accepted;
byte completed;
bool stopping;
bool is_service_gone;
bool is_closed;

byte deaths;

#define has_outcome (outcomes != collected)
#define has_room (records - collected < PLACES)
#define has_job (has_outcome || (has_room && ready > 0))

/* One step of a worker; or it is killed before that step. */
#define STEP(action)                                          \
  if                                                          \
  :: atomic { action }                                        \
  :: atomic { deaths < DEATHS -> deaths++; goto ended }       \
  fi

active proctype worker() {
begin:
  if
  :: records != outcomes -> STEP(outcomes++); goto begin
  :: else
  fi;
  if
  :: stop -> goto ended
  :: else
  fi;
  STEP(asleep = true);
  if
#ifdef NO_LOOK_AT_STOP
  :: records != outcomes -> asleep = false; goto begin
#else
  :: records != outcomes || stop -> asleep = false; goto begin
#endif
  :: else
  fi;
  STEP(in_futex = asleep);
  if
  :: !in_futex
  :: atomic { in_futex && deaths < DEATHS -> deaths++; goto ended }
  fi;
  asleep = false;
  goto begin;
ended:
  /* By itself or killed; the kernel tells the zygote, and that one the service. */
  atomic { in_futex = false; died = true };
  if
  :: atomic { born -> born = false; goto begin }
  :: is_closed
  fi
}

inline wake_worker() {
  atomic {
    if
    :: asleep -> asleep = false; in_futex = false
    :: else
    fi
  }
}

/* A slot is free again. */
inline give_slot() {
  slots++;
#ifndef SLOT_NOT_TOLD
  atomic {
    if
    :: space_wanted != 0 ->
       token[0] = token[0] || wants_space[0];
       token[1] = token[1] || wants_space[1]
    :: else
    fi
  }
#endif
}

/* A task is over, or a submit was taken back. */
inline count_completion() {
  completed++;
  atomic {
    if
    :: barrier_wanted != 0 -> token[CLOSER] = true
    :: else
    fi
  }
}

/* Under turn: collect what there is, post what there is room for. */
inline job() {
  do
  :: atomic { has_outcome -> collected++ };
     give_slot();
     count_completion()
  :: atomic { has_room && ready > 0 -> ready--; records++ }; wake_worker()
  :: atomic { !has_outcome && !(has_room && ready > 0) -> turn = false }; break
  od
}

proctype submitter(byte me) {
  byte left;
  left = (me == 0 -> FIRST_SUBMITS : 1);
  do
  :: left == 0 || closing -> break
  :: else ->
take:
     if
     :: atomic { slots > 0 -> slots-- }
     :: atomic { slots == 0 -> wants_space[me] = true };
        space_wanted++;
#ifndef SPACE_NO_LOOK
        if
        :: slots > 0 || closing
        :: else ->
#endif
           if
           :: atomic { token[me] -> token[me] = false }
           :: atomic { !turn && has_job -> turn = true }; job() /* while it polls */
           fi
#ifndef SPACE_NO_LOOK
        fi
#endif
        ;
        atomic { space_wanted--; wants_space[me] = false };
        if
        :: closing -> break
        :: else -> goto take
        fi
     fi;
     accepted++;
#ifndef CLOSING_NOT_SEEN
     if
     :: closing ->
        give_slot();
#ifdef TAKEN_BACK_NOT_TOLD
        completed++;
#else
        count_completion();
#endif
        break
     :: else
     fi;
#endif
     atomic { assert(!stop); ready++ };
     if
     :: atomic { !turn && has_job -> turn = true }; job()
     :: else
     fi;
     left--
  od;
  left = 0
}

active proctype closer() {
  byte seen;
  closing = true;
  do
  :: seen = completed;
     if
     :: seen == accepted -> break
     :: else
     fi;
     barrier_wanted++;
#ifndef BARRIER_NO_LOOK
     seen = completed;
     if
     :: seen == accepted
     :: else -> atomic { token[CLOSER] -> token[CLOSER] = false }
     fi;
#else
     atomic { token[CLOSER] -> token[CLOSER] = false };
#endif
     barrier_wanted--
  od;
  seen = 0;
  stopping = true;
#ifndef STOP_EARLY
  is_service_gone;
#endif
  stop = true;
#ifndef STOP_NOT_TOLD
  wake_worker();
#endif
  is_service_gone && died;
  assert(ready == 0 && !has_outcome && records == outcomes);
  is_closed = true
}

active proctype service() {
  run submitter(0);
  run submitter(1);
  do
  :: atomic { !turn && has_job -> turn = true }; job()
  :: atomic { !turn && died && !stopping -> turn = true; died = false };
#ifdef NO_RESPAWN_WHEN_CLOSING
     if
     :: closing -> turn = false; break
     :: else
     fi;
#endif
     stop = false; /* the worker's orders are to wait, then to work */
     asleep = false;
     born = true;
     job()
  :: stopping -> break
  od;
  is_service_gone = true
}
