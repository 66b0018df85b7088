"""A Python function crashes its process: the other calls are done, and the culprit is named."""

import ctypes
import faulthandler

import leveret


def parse(document: str) -> int:
    """Stands for native code with a bug in it."""
    faulthandler.disable()
    if "nested" in document:
        ctypes.string_at(0)  # reads address 0
    return len(document)


documents = ["one", "two", "a nested one", "four"]

with leveret.ProcessExecutor(2) as executor:
    futures = [executor.submit(parse, each) for each in documents]

for document, future in zip(documents, futures):
    error = future.exception()
    print(f"{document}: {future.result() if error is None else error}")

assert [f.exception() is None for f in futures] == [True, True, False, True]
assert isinstance(futures[2].exception(), leveret.Poison)
