"""The report of `leveret repro`: the papers' results as Markdown, HTML and a picture."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .. import papers
from ..papers import Curves, Outcome
from ..records import PaperConstantDict

TITLES = {
    "prediction": "Predictions",
    "calibration": "Calibration",
    "exact": "Identities between printed numbers",
    "shape": "Shapes and orders",
    "conflict": "Conflicts",
}
_NOTES = {
    "prediction": "Their bands were set when answers of prototypes were known; none was moved. "
    "The constant eib.way, calibrated on T5.1, had its last digits chosen with T5.2 in view, "
    "and some steps of the papers' algorithms, where their texts leave a choice, were written "
    "anew after a first run: the order in which gcell takes letters, what TPC's caller counts, "
    "SLED's idle time, how much Jack Rabbit's ready buffer takes at once, when its scheduler "
    "passes, how long its workers turn before they look again, how many arguments CONV2D has, "
    "that TPC goes on while results are on their way, as its text says, and that they come before "
    "a task's end, that LU has four slots in blocks of 64 x 64 as well, that Barnes-Hut launches "
    "its tasks again and reads bodies line by line, that SLED's processes start together, "
    "that its crossover is where it is ahead from then on, that Jack Rabbit's workers load two "
    "tasks at a time, that its dicer goes through what cannot be diced and asks each task, that "
    "gcell's handler takes all letters that are there, over which blocks and work T4.10 goes, "
    "that gcell's SPEs get a job's descriptor, that LU's master factors the diagonal blocks, which "
    "phase of the FFT has twiddle factors, that Jack Rabbit's gates are built on its lock, and "
    "that its scheduler moves nothing while the caller posts. "
    "Forty-three of the rows are one table of Jack Rabbit, of which five other cells chose five "
    "constants, fifteen another, and thirteen are one table of gcell. What is out of its band "
    "stays out.",
    "calibration": "Constants were chosen with these rows in view: that they are met says nothing.",
    "exact": "Arithmetic on what the papers print; they check no model.",
    "shape": "Whether something holds, or an order: too little was printed for a number.",
    "conflict": "What the papers print here contradicts what they print elsewhere.",
}
_HEAD = ("row", "what", "configuration", "printed", "simulated", "Leveret", "deviation", "band", "")
NOT_PRICED = "not priced yet"
NOT_RUN = "not run"
SHARES_HEAD = ("constant", "predictions that read it", "in band with 20 % less", "with 20 % more")

Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # the head, and the lines
Sensitivities = Mapping[str, Sequence[papers.Move]]


def number(value: float | None) -> str:
    if value is None:
        return "not allowed"
    return "did not end" if math.isnan(value) else f"{value:.4g}"


def by_leveret(outcome: Outcome) -> str:
    """Leveret's value, its deviation from the printed one, and between which prices it lies."""
    answer = outcome.leveret
    if answer is None or answer["is_unpriced"]:
        return NOT_PRICED
    if answer["why_not"]:
        return NOT_RUN
    if outcome.row.unit == "holds":
        return "yes" if answer["value"] else "no"
    told = number(answer["value"])
    if outcome.row.printed:
        told += f" ({answer['value'] / outcome.row.printed - 1:+.1%})"
    ends = [number(value) for value in (answer["free"], answer["dear"])]
    return told if ends[0] == ends[1] else f"{told}; {ends[0]} to {ends[1]}"


def without_leveret(outcomes: Iterable[Outcome]) -> list[list[str]]:
    """(why, rows) of those for which Leveret has no number."""
    found: dict[str, list[str]] = {}
    for each in outcomes:
        if each.leveret is not None and each.leveret["why_not"]:
            found.setdefault(each.leveret["why_not"], []).append(each.row.id)
    return [[why, ", ".join(rows)] for why, rows in found.items()]


def cells(outcome: Outcome) -> list[str]:
    """What a line of a table says of a row."""
    row = outcome.row
    deviation = outcome.deviation
    if row.unit == "holds":
        ended = "did not end" if outcome.failure else "yes" if outcome.value else "no"
        told = ["yes" if row.printed else "no", ended]
        deviation, band = None, "yes"
    else:
        told = [f"{number(row.printed)} {row.unit}", number(outcome.value)]
        band = f"{number(row.low)} .. {number(row.high)}"
    return [
        row.id,
        row.what,
        row.configuration,
        *told,
        by_leveret(outcome),
        "" if deviation is None else f"{deviation:+.1%}",
        band,
        "in band" if outcome.in_band else "OUT",
    ]


def by_role(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {role: [] for role in TITLES}
    for each in outcomes:
        found[each.row.role].append(each)
    return {role: some for role, some in found.items() if some}


def share_in_band(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    """(predictions in their bands, predictions)."""
    predictions = [each for each in outcomes if each.row.role == "prediction"]
    return sum(each.in_band for each in predictions), len(predictions)


def share_of_tables(outcomes: Iterable[Outcome]) -> float | None:
    """The same share when the cells of a table count as one: the mean of their shares."""
    cells_of: dict[str, list[bool]] = {}
    for each in outcomes:
        if each.row.role == "prediction":
            cells_of.setdefault(each.row.id.split(" ")[0], []).append(each.in_band)
    shares = [sum(some) / len(some) for some in cells_of.values()]
    return sum(shares) / len(shares) if shares else None


def summary(outcomes: Sequence[Outcome]) -> str:
    good, count = share_in_band(outcomes)
    as_one = share_of_tables(outcomes)
    if as_one is None:
        return "no predictions"
    told = f"{good} of {count} predictions in band ({good / count:.0%})"
    return f"{told}; {as_one:.0%} when the cells of a table count as one"


def misses(outcomes: Iterable[Outcome]) -> list[list[str]]:
    """(row, why) of the predictions that are out of their bands, and of rows that did not end."""
    return [
        [each.row.id, each.failure or each.row.miss]
        for each in outcomes
        if each.failure or (each.row.role == "prediction" and not each.in_band)
    ]


def shares_by_constant(outcomes: Iterable[Outcome], moved: Sensitivities) -> list[list[str]]:
    """How many of all predictions are in band when one constant alone is lower or higher."""
    rows = {each.row.id: each for each in outcomes if each.row.role == "prediction"}
    gained: dict[str, list[int]] = {}
    for name, changes in moved.items():
        each = rows[name]
        for constant, low, high in changes:
            counts = gained.setdefault(constant, [0, 0, 0])
            counts[0] += 1
            for side, value in ((1, low), (2, high)):
                if value is not None:
                    counts[side] += each.row.holds(value) - each.in_band
    good = sum(each.in_band for each in rows.values())
    return [
        [constant, str(readers), str(good + less), str(good + more)]
        for constant, (readers, less, more) in sorted(gained.items())
    ]


def _farthest(row: papers.Outcome, *values: float | None) -> float:
    """The largest change of a row's value, relative; 0 where it was 0."""
    changes = [value / row.value - 1 for value in values if row.value and value is not None]
    return max((c for c in changes if not math.isnan(c)), key=abs, default=0.0)


def _crossed(
    rows: Mapping[str, Outcome], changed: Iterable[tuple[str, float | None]], into: bool
) -> str:
    """The rows whose changed value is in the band, or is not, and was not before, or was."""
    return ", ".join(
        name
        for name, value in changed
        if value is not None and rows[name].row.holds(value) == into and rows[name].in_band != into
    )


def _markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    first, *others = ("| " + " | ".join(line).replace("\n", "; ") + " |" for line in (head, *body))
    return [first, "|" + "---|" * len(head), *others]


def sensitivity_page(outcomes: Sequence[Outcome], moved: Sensitivities) -> str:
    """Which constants move which predictions: a Markdown page."""
    rows = {each.row.id: each for each in outcomes}
    readers: dict[str, list[tuple[str, float | None, float | None]]] = {}
    for row, changes in moved.items():
        for name, low, high in changes:
            readers.setdefault(name, []).append((row, low, high))
    lines = [
        "# Which constants move which predictions",
        "",
        "Each calibrated or assumed constant alone, 20 % lower and higher (whole numbers rounded): "
        "`leveret repro --sensitivity --out FOLDER`.",
        "Nothing here was used to choose a constant. Calibration is not done anew, so constants "
        "that were solved for move what they were solved for.",
        f"As it is: {summary(outcomes)}. Constants: {papers.constants_hash()}.",
        "",
        *_markdown_table(SHARES_HEAD, shares_by_constant(outcomes, moved)),
    ]
    for name, changes in sorted(readers.items()):
        farthest = max(changes, key=lambda c: abs(_farthest(rows[c[0]], c[1], c[2])))
        most = _farthest(rows[farthest[0]], farthest[1], farthest[2])
        told = [f"moves {farthest[0]} most: {most:+.0%}"] if abs(most) >= 0.005 else ["moves none"]
        lower = [(row, low) for row, low, _ in changes]
        higher = [(row, high) for row, _, high in changes]
        for changed, word in ((lower, "less"), (higher, "more")):
            for into, way in ((False, "out of band"), (True, "into band")):
                crossed = _crossed(rows, changed, into)
                told += [f"20 % {word}, {way}: {crossed}"] if crossed else []
        lines += ["", f"## {name}", "", "; ".join(told) + "."]
    return "\n".join(lines) + "\n"


def changed_note() -> str:
    """What to say when the constants are not those that were frozen; empty when they are."""
    if papers.constants_hash() == papers.FROZEN:
        return ""
    return (
        f"The constants were changed since they were frozen ({papers.constants_hash()}, not "
        f"{papers.FROZEN}): these results are not those of the papers' page."
    )


def constants_of(outcomes: Iterable[Outcome]) -> list[PaperConstantDict]:
    """The constants that were read, once each."""
    read = {name for each in outcomes for name in each.read}
    found: dict[str, PaperConstantDict] = {}
    for each in papers.constants():
        if each["name"] in read:
            found.setdefault(each["name"], each)
    return list(found.values())


def _sections(outcomes: Sequence[Outcome], moved: Sensitivities) -> list[tuple[str, str, Table]]:
    """(title, note, table) of each part of the report; a table is its head and its lines."""
    parts: list[tuple[str, str, Table]] = []
    for role, some in by_role(outcomes).items():
        parts.append((TITLES[role], _NOTES[role], (_HEAD, [cells(each) for each in some])))
    if misses(outcomes):
        parts.append(("Why predictions miss", "", (("row", "why"), misses(outcomes))))
    if without_leveret(outcomes):
        lines = without_leveret(outcomes)
        parts.append(("Rows without a number of Leveret's", "", (("why", "rows"), lines)))
    if moved:
        lines = [
            [row, name, number(low), number(high)]
            for row, changes in moved.items()
            for name, low, high in changes
        ]
        words = ("row", "constant", "simulated with 20 % less", "with 20 % more")
        shares = (SHARES_HEAD, shares_by_constant(outcomes, moved))
        parts.append(("Predictions in band, by constant", "One constant alone changed.", shares))
        parts.append(("Sensitivity", "Calibrated and assumed constants alone.", (words, lines)))
    read = [
        [
            each["name"],
            f"{each['value']:.6g}",
            each["unit"],
            each["source"] + (f", on {each['calibrated_on']}" if each["calibrated_on"] else ""),
            each["origin"],
        ]
        for each in constants_of(outcomes)
    ]
    head = ("constant", "value", "unit", "source", "from")
    parts.append(("Constants that were read", "", (head, read)))
    basis = [[each.row.id, ", ".join(each.read)] for each in outcomes if each.read]
    parts.append(("What each row rests on", "", (("row", "constants"), basis)))
    return parts


def _opening(outcomes: Sequence[Outcome]) -> list[str]:
    opening = [
        f"{summary(outcomes)}.",
        "Printed: by the paper. Simulated: the paper's own algorithm, written from its text, on a "
        "simulated Cell. Leveret: its own pipeline on the machine `sim` with the same hardware: "
        "the same tasks with their bodies, arguments and results and nothing of the paper's. "
        "In brackets the deviation from what was printed, then the values with its own work for "
        "nothing and at twice the price: what it does beside copies, polls and wake-ups is priced "
        "by assumption (leveret in costs.toml). Where one of them is over a quarter away, or "
        "tasks take under 5 us, that work decides, and the row is not priced yet. No band applies.",
    ]
    note = changed_note()
    return [*opening, note] if note else opening


def markdown(outcomes: Sequence[Outcome], moved: Sensitivities) -> str:
    lines = ["# The papers' results", ""]
    for text in _opening(outcomes):
        lines += [text, ""]
    for title, note, table in _sections(outcomes, moved):
        lines += [f"## {title}", ""]
        lines += [note, ""] if note else []
        lines += [*_markdown_table(*table), ""]
    return "\n".join(lines)


_STYLE = """body{font:15px/1.45 sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}td,th{border-bottom:1px solid #ccc;padding:.25em .6em;
text-align:left;vertical-align:top}.out{color:#b00020;font-weight:bold}"""


def page(
    outcomes: Sequence[Outcome],
    moved: Sensitivities,
    picture: str,
    drawn: Sequence[tuple[Curves, str]] = (),
) -> str:
    """The same as one HTML page."""
    parts = ["<!doctype html><meta charset=utf-8><title>The papers' results</title>"]
    parts.append(f"<style>{_STYLE}</style><h1>The papers' results</h1>")
    parts += [f"<p>{html.escape(text)}</p>" for text in _opening(outcomes)]
    if picture:
        parts.append(f'<img src="{picture}" alt="simulated over printed, with bands" width="900">')
    for title, note, table in _sections(outcomes, moved):
        head, body = table
        parts.append(f"<h2>{html.escape(title)}</h2><p>{html.escape(note)}</p><table><tr>")
        parts += [f"<th>{html.escape(word)}</th>" for word in head]
        for line in body:
            mark = ' class="out"' if line[-1] == "OUT" else ""
            inside = "".join(f"<td>{html.escape(word)}</td>" for word in line)
            parts.append(f"<tr{mark}>{inside}")
        parts.append("</table>")
    if drawn:
        parts.append("<h2>Figures like the papers'</h2>")
    for curves, name in drawn:
        text = html.escape(f"{curves.id}: {curves.title}", quote=True)
        parts.append(f'<img src="{name}" alt="{text}" width="640">')
    return "\n".join(parts) + "\n"


def write(
    outcomes: Sequence[Outcome],
    moved: Sensitivities,
    folder: Path,
    draws: bool,
    figures: Sequence[Curves] = (),
) -> None:
    """results.md, results.html, the figures' points, and pictures when they can be drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(markdown(outcomes, moved), encoding="utf-8")
    if moved:
        text = sensitivity_page(outcomes, moved)
        (folder / "sensitivity.md").write_text(text, encoding="utf-8")
    points = {each.id: dict(each.lines) for each in figures}
    (folder / "figures.json").write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
    picture = ""
    drawn = []
    if draws:
        from .plots import save_bands, save_curves

        picture = "results.png"
        save_bands(outcomes, folder / picture)
        for each in figures:
            name = each.id.replace(" ", "-").replace(".", "-") + ".png"
            save_curves(each, folder / name)
            drawn.append((each, name))
    (folder / "results.html").write_text(page(outcomes, moved, picture, drawn), encoding="utf-8")
