"""What runs in worker processes.

program        what they are forked from
calls          reads a call, runs it, and writes the reply; large_replies: in a file
functions      what is kept of functions from call to call; classes: of classes
hosts          the executors whose calls it runs; programs: what each has there of its own
own_page       marks for the host, should the worker die; notes: logs, warnings and output
tracebacks     of calls that failed
ending         the end of a worker
memory         limits of calls
seeding        random numbers
multiprocess   what multiprocessing takes the process for
imports        modules that are changed when something imports them
batches        calls of joblib
"""
