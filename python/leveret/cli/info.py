"""leveret info: what this installation can do here."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any, Optional

import typer
from rich.table import Table

from .. import __version__, _core, available_cores, machines
from .common import print_json, reporting, tables

_SYSTEM = Path("/sys/devices/system/cpu")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def read_caches(cpu: Path = _SYSTEM / "cpu0") -> list[dict[str, str]]:
    """The caches of the first core, as sysfs describes them; empty where it does not."""
    caches = []
    for folder in sorted(cpu.glob("cache/index*")):
        cache = {
            key: _read(folder / key) for key in ("level", "type", "size", "coherency_line_size")
        }
        cache["shared_by"] = _read(folder / "shared_cpu_list")
        if cache["size"]:
            caches.append(cache)
    return caches


def cpu_name() -> str:
    """The processor's own name, or its architecture."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def collect() -> dict[str, Any]:
    return {
        "version": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": cpu_name(),
        "cores": available_cores(),
        "caches": read_caches(),
        "machines": [
            {"name": m.name, "works": m.unavailable is None, "why_not": m.unavailable}
            for m in machines()
        ],
        "package": str(Path(__file__).parent.parent),
        "executable": sys.executable,
    }


@reporting
def info(
    machine_file: Optional[str] = typer.Option(
        None, "--machine-file", help="Print a machine file of `sim`, as cell-ps3, to be changed."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Show the version, machines, cores and caches."""
    if machine_file is not None:
        typer.echo(_core.machine_file_text(machine_file), nl=False)
        return
    facts = collect()
    if as_json:
        print_json(facts)
        return
    out = tables()
    out.print(
        f"Leveret {facts['version']}, Python {facts['python']}, {facts['system']}", highlight=True
    )
    out.print(f"{facts['cpu']}, {facts['cores']} cores usable")
    table = Table("machine", "works here", "why not")
    for machine in facts["machines"]:
        table.add_row(
            machine["name"], "yes" if machine["works"] else "no", machine["why_not"] or ""
        )
    out.print(table)
    caches = Table("cache", "size", "line", "shared by cores")
    for cache in facts["caches"]:
        name = f"L{cache['level']} {cache['type'].lower()}"
        caches.add_row(name, cache["size"], cache["coherency_line_size"], cache["shared_by"])
    out.print(caches if facts["caches"] else "caches: this system does not tell")
