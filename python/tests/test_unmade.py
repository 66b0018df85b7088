"""Objects that `__new__()` alone has made: nothing is in them, and every use is refused."""

import subprocess
import sys

# Each public function and method of the extension, with such objects in each place.
PROGRAM = """
import gc, inspect
import leveret
from leveret import _core

CLASSES = [c for _, c in inspect.getmembers(_core, inspect.isclass)
           if c.__module__.startswith("leveret") and not issubclass(c, BaseException)]
LEFT_OUT = {"run_worker_program"}  # it waits for a host
unmade = [c.__new__(c) for c in CLASSES]
uses = refused = 0

def use(called, *arguments):
    global uses, refused
    uses += 1
    try:
        called(*arguments)
    except Exception:
        refused += 1

with leveret.Runtime(workers=1) as runtime:
    nothing = leveret.builtin("null")
    for one in unmade:
        for name, called in inspect.getmembers(_core, callable):
            if name in LEFT_OUT or name.startswith("_") or inspect.isclass(called):
                continue
            for arguments in ((one,), ([one],), (one, one), ([one, one],), (one, one, one)):
                use(called, *arguments)
        for owner in (runtime, one):
            for name in dir(owner):
                if name.startswith("_") or name in ("close", "wait_for_completion"):
                    continue
                called = getattr(type(owner), name, None)
                if callable(called):
                    for arguments in ((one,), (one, one), ([one],)):
                        use(called, owner, *arguments)
                    use(called, one)
        use(memoryview, one)
        use(iter, one)
        use(len, one)
        use(runtime.submit, nothing, one)
        use(leveret.wait_all, [one, one])
        use(leveret.wait_any, [one])
        use(repr, one)
        use(hash, one)
del one, unmade
gc.collect()
print(uses, refused)
"""


def test_what_new_alone_has_made_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    uses, refused = map(int, done.stdout.split())
    assert uses > 500
    assert refused > 0.9 * uses
