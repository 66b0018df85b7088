"""How calls and results travel between the host and its worker processes.

Messages
    pickling     calls as bytes; its picklers ask the modules below about what they meet
    chunks       the calls of a chunk of map()
    replies      what workers answer: errors (exceptions in it), notes (what was logged), plain
                 (whether nobody's code runs when it is read)
    setup        what workers are told once; settings: of the interpreter
    page         what a worker leaves when it dies
    files        memory files, and their numbers

What workers cannot import goes by value
    absent       which modules they cannot import
    modules      what code asks for of its module
    by_value     functions and classes; what cloudpickle leaves out of them: classes, class_steps
                 (their order), own (locks), entries (what a decorator has noted), singletons
    spaces       globals: a namespace for each module in a worker
    tables       globals on their way, in front of what needs them

What stays the same is not made again for each call
    functions    those that workers keep; watch: whether they are what they were
    beside       classes; class_watch: the same of them
    unchanged    globals of plain values
    stored       large parts, in memory files

Objects with a way of their own
    arrays       in shared memory; tensors of torch; described: plain ones, quickly
    foreign      types and libraries of ctypes
    originals    os.environ, and generators of random numbers
    sharing      locks and queues of multiprocessing

    instead      what stands for something else in a pickle
    blame        which part could not be pickled
"""
