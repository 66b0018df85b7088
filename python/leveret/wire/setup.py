"""The block of memory by which an executor tells its workers how to set themselves up."""

SETUP_MARKS = 4096  # bytes at its beginning: not 0 while an initializer runs in a process
