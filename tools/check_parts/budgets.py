"""budgets: counts the instructions of a task, and compares them with bench/budgets.toml.

    budgets.py PROGRAM [BUDGETS]

PROGRAM is leveret-counted. The last line is "N passed, N failed", and the exit code is 1 when a
count is above its budget and the slack. A count that is not to be had here (no valgrind), or that
another compiler than the budgets' made, is told and not judged.
"""

import json
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

BUDGETS = Path(__file__).resolve().parents[2] / "bench" / "budgets.toml"


def judge(report, budgets, processor):
    """Pairs (good, sentence), one for each budget; good is None where nothing is to be judged."""
    machine = report["machine"]
    made_by = (machine["compiler"], processor)
    is_other = made_by != (budgets["compiler"], budgets["processor"])
    slack = budgets["slack"]
    judged = []
    for name, budget in budgets["instructions"].items():
        figure = report["figures"].get(name)
        if figure is None:
            judged.append((False, f"{name}: has a budget, and is not counted any more"))
            continue
        count = figure["value"]
        if count is None:
            judged.append((None, f"{name}: not counted: {figure['rival']}"))
            continue
        said = f"{name}: {count:g} instructions, budget {budget:g}"
        if is_other:
            other = " on ".join(made_by)
            judged.append((None, f"{said}, not judged: it is another compiler's, {other}"))
        elif count > budget * (1 + slack):
            judged.append((False, f"{said}: {count / budget - 1:.1%} above"))
        elif count < budget * (1 - slack):
            judged.append((True, f"{said}: lower it"))
        else:
            judged.append((True, said))
    judged += [
        (False, f"{name}: is counted and has no budget")
        for name in report["figures"]
        if name not in budgets["instructions"]
    ]
    return judged


def main(program, path=BUDGETS):
    """Prints what judge() says; returns the exit code."""
    budgets = tomllib.loads(Path(path).read_text())
    done = subprocess.run([program, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"{program} did not count\n0 passed, 1 failed")
        return 1
    judged = judge(json.loads(done.stdout), budgets, platform.machine())
    print("\n".join(said for _, said in judged))
    failed = sum(good is False for good, _ in judged)
    print(f"{len(judged) - failed} passed, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
