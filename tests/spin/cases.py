"""What is checked: every model as it is, in one or more sizes, and with each fault planted.

A case that holds is explored to the end and must be without error. A fault must be found, and show
itself as it should: a fault that trips over something else says nothing about its own check.
"""

from dataclasses import dataclass

SLEEPS = "invalid end state"  # somebody waits for ever
TWICE = r"assertion violated .*reports\[t\]==0"  # a second outcome
AFTER = r"assertion violated \(reports\[task\]==0\)"  # a write to a task that was reported
BYTES = r"assertion violated \(caller_[ab]\[t\]=="  # torn, mixed, stale or repeated outputs
COUNT = r"assertion violated \(counted==kills_in_window\)"  # attempts and kills do not agree
BEGUN = r"assertion violated \(begun\[t\]<="  # more attempts than there may be
CHANGED = r"assertion violated \(\(caller_a\[t\]==\(t\+1\)\)"  # poison, and outputs were written
LEFT = r"assertion violated .*ready==0"  # close() returns, and not all is over


@dataclass(frozen=True)
class Case:
    """One exploration: a model, its macros, and the error that must be found, if any."""

    model: str
    macros: str
    says: str
    error: str = ""  # a pattern of pan's message; empty: the model holds
    is_large: bool = False  # worth the time an optimizing compiler takes

    @property
    def name(self):
        return f"{self.model} {self.macros}".strip()


SMALL = [
    ("claim", "TIME_OUT FRESH_LANE", "what death by time-out would need: other memory"),
    ("bell", "HOSTS=1 DEATHS=0 LONG_BODY", "an end before a long body"),
]
LARGE = [
    ("claim", "TASKS=3 KILLS=4", "outputs private to the attempt"),
    ("claim", "TASKS=3 KILLS=4 SHARED_OUT", "outputs in shared memory"),
    ("bell", "HOSTS=1 TASKS=2 DEATHS=2", "one host, two deaths"),
    ("bell", "HOSTS=1 ASYNC DEPTH=1", "nobody waits; a death; one task on the lane at a time"),
    ("bell", "TASKS=2 DEATHS=0 COARSE", "two hosts wait"),
    ("bell", "TASKS=2 DEATHS=0 DEPTH=1 APART ASYNC", "two hosts submit, nobody waits"),
    ("bell", "HOSTS=1 TASKS=2 ASYNC STRAIGHT", "straight to the worker; nobody waits; a death"),
    ("bell", "TASKS=2 DEATHS=0 DEPTH=1 APART ASYNC STRAIGHT", "the same, two hosts"),
    ("shutdown", "", "one slot, two submitters, a death"),
    ("shutdown", "SLOTS=2 PLACES=2", "two slots and places"),
    ("shutdown", "FIRST_SUBMITS=2 DEATHS=0", "a submitter comes back while another waits"),
]

CLAIM_FAULTS = [
    ("TIME_OUT SHARED_OUT", AFTER, "death by time-out, outputs in shared memory"),
    ("TIME_OUT SHARED_OUT FRESH_LANE", AFTER, "the same, though the lane is another"),
    ("TIME_OUT", BYTES, "death by time-out, private outputs, the same lane"),
    ("TIME_OUT NO_NUMBER", BYTES, "the same, and collect does not compare numbers"),
    ("NO_NUMBER", BYTES, "collect takes any outcome for the one it waits for"),
    ("NO_LOOK", COUNT, "reap requeues without looking at the outcomes"),
    ("VICTIM_NOT_COUNTED", COUNT, "the victim's attempt is not counted"),
    ("BLAME_ALL", COUNT, "all posted tasks are counted as victims"),
    ("CLAIM_LATE", COUNT, "claimed is stored behind the body"),
    ("REAP_WITHOUT_TURN", TWICE, "reap does not wait for the turn"),
    ("NO_REFETCH", BYTES, "inputs are not copied again for the next attempt"),
    ("PUBLISH_EARLY", BYTES, "the outcome is published before the outputs are written"),
    ("NUMBERS_RESTART", BEGUN, "numbers are used again after a death"),
    ("START_LATE", SLEEPS, "the next worker's first number is read after the turn"),
    ("SHARED_OUT KEEP_ON_POISON", CHANGED, "a limit: poison after writes to shared memory"),
]
BELL_FAULTS = [
    ("WORKER_NO_LOOK", "the worker does not look again when it has said asleep"),
    ("WAKE_KEEPS_ASLEEP", "a post wakes without taking back `asleep`"),
    ("SLEEP_UNRUNG", "the worker sleeps before its patience is over, and has not rung"),
    ("HOST_NO_LOOK", "a host that goes to sleep does not look again"),
    ("LEAVE_NO_LOOK", "a host that has its ticket and returns does not look again"),
    ("HELPS_NOT", "a host that does not tend is counted as a watcher"),
    ("ASYNC DEPTH=1 TEND_ONCE", "a host that submits tends once"),
    ("ASYNC STRAIGHT LOAD_LATE", "a line's load is raised behind the record"),
    ("SERVICE_NO_LOOK", "the service does not look again when it watches no more"),
    ("WRITE_THEN_FLAG", "the eventfd is written before rung is set"),
    ("CLEAR_THEN_DRAIN", "rung is cleared before the eventfd is drained"),
    ("DEATH_KEEPS_RUNG", "the next worker finds rung as the one before left it"),
    ("LONG_BODY ENDS_NOT_TOLD", "nobody rings for an end before a long body"),
]
SHUTDOWN_FAULTS = [
    ("SLOT_NOT_TOLD", SLEEPS, "a slot is freed without looking at space_wanted"),
    ("SPACE_NO_LOOK", SLEEPS, "a submitter does not look again when it has counted itself"),
    ("BARRIER_NO_LOOK", SLEEPS, "the drain does not look again when it has counted itself"),
    ("CLOSING_NOT_SEEN", LEFT, "a submit that waited does not look at closing again"),
    ("TAKEN_BACK_NOT_TOLD", SLEEPS, "a submit takes itself back and does not tell the drain"),
    ("NO_RESPAWN_WHEN_CLOSING", SLEEPS, "no worker is started any more while closing"),
    ("STOP_EARLY", SLEEPS, "workers are told to stop while the service may still start one"),
    ("STOP_NOT_TOLD", SLEEPS, "stop is set and nobody woken"),
    ("NO_LOOK_AT_STOP", SLEEPS, "a worker that goes to sleep looks for records only"),
]

CASES = [
    *(Case(*case) for case in SMALL),
    *(Case(*case, is_large=True) for case in LARGE),
    *(Case("claim", macros, says, error) for macros, error, says in CLAIM_FAULTS),
    *(Case("bell", f"HOSTS=1 {macros}", says, SLEEPS) for macros, says in BELL_FAULTS),
    *(Case("shutdown", macros, says, error) for macros, error, says in SHUTDOWN_FAULTS),
]
