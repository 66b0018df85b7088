"""leveret repro: rows, tables, reports, and what it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli_runner import invoke, invoke_json, runner

from leveret import _core, papers
from leveret.cli.commands import app
from leveret.report import repro

DOCS = Path(__file__).resolve().parents[2] / "docs" / "papers"


def refusal(*arguments: str, code: int) -> str:
    result = runner.invoke(app, ["repro", *arguments])
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result.stderr


@pytest.fixture(scope="module")
def outcomes() -> list[papers.Outcome]:
    """All rows, simulated."""
    return [papers.with_leveret(papers.simulate(row)) for row in papers.rows()]


def test_a_row_shows_what_was_printed_and_what_it_rests_on() -> None:
    printed = invoke("repro", "--row", "T5.2")
    for word in ("1230", "not priced yet", "+4.1%", "in band", "eib.way", "tpc.initiate"):
        assert word in printed
    assert "1 of 1 predictions in band" in printed


def test_json_has_a_key_for_each_row() -> None:
    report = invoke_json("repro", "--row", "T6.8")
    assert list(report["rows"]) == ["T6.8 stealing", "T6.8 SLED"]
    assert report["predictions"] == 0 and report["share_in_band"] is None
    assert report["constants"] == report["frozen"]
    row = invoke_json("repro", "tpc", "--row", "T5.3")["rows"]["T5.3 end"]
    assert not row["in_band"] and row["role"] == "prediction" and row["leveret"] is None


def test_applications_of_jack_rabbit_have_names() -> None:
    assert {row.id.split(".")[0] for row in papers.choose("lu")} == {"T1"}
    assert {row.id.split(".")[0] for row in papers.choose("jack_rabbit")} == {
        "T1",
        "T2",
        "T3",
        "T8",
    }
    report = invoke_json("repro", "mandelbrot", "--row", "T3.6")
    assert report["rows"]["T3.6"]["simulated"] == 32


def test_a_full_simulation_is_near_the_samples() -> None:
    (row,) = papers.choose("lu", "T1.1 1k DB 1")
    sampled = papers.simulate(row)
    full = papers.simulate(row, full=True)
    assert full.events > 20 * sampled.events
    assert sampled.value == pytest.approx(full.value, rel=0.01)


def test_cells_of_a_table_count_as_one(outcomes: list[papers.Outcome]) -> None:
    some = [o for o in outcomes if o.row.id.startswith("T7.2007 ") or o.row.id == "T5.2"]
    seven = [each.in_band for each in some if each.row.id.startswith("T7.2007 ")]
    assert len(seven) == 13 and len(some) == 14
    assert repro.share_of_tables(some) == pytest.approx((sum(seven) / 13 + 1) / 2)
    assert repro.share_of_tables([]) is None


def test_papers_and_rows_that_are_not_there_are_told() -> None:
    said = refusal("cellmtt", code=2)
    assert "did you mean 'cellmt'?" in said and "gcell" in said
    assert "There are" in refusal("--row", "T99", code=2)
    assert "T7.0" in refusal("gcell", "--row", "T5.2", code=2)
    assert "T2.1" in refusal("barnes-hut", "--row", "T1.3", code=2)
    assert "--timeout" in refusal("--timeout", "-1", code=2)


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "name a folder" in refusal("--out", str(tmp_path / "file"), code=3)
    assert "nothing can be written" in refusal("--out", str(tmp_path / "no" / "no"), code=3)


def test_reports_are_written(tmp_path: Path) -> None:
    invoke("repro", "tpc", "--out", str(tmp_path / "out"))
    text = (tmp_path / "out" / "results.md").read_text()
    for title in ("## Predictions", "## Calibration", "## Identities", "## Why predictions miss"):
        assert title in text
    page = (tmp_path / "out" / "results.html").read_text()
    assert "results.png" in page and "T5.10" in page and 'class="out"' in page
    assert (tmp_path / "out" / "results.png").stat().st_size > 1000
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    numbers = ("1b", "1c", "2 data", "2 null", "3", "3 FFT", "5")
    assert set(figures) == {"S2 table 1", *(f"S2 figure {each}" for each in numbers)}
    for name in figures:
        picture = name.replace(" ", "-") + ".png"
        assert (tmp_path / "out" / picture).stat().st_size > 1000 and picture in page
    assert [x for x, _ in figures["S2 figure 3"]["blocks of 64"]] == [1, 2, 4, 6]


def test_figures_of_lu_have_what_was_printed(outcomes: list[papers.Outcome]) -> None:
    found = papers.lu_curves(outcomes)
    assert [each.id for each in found] == [f"S0 figure 5.{n}" for n in (2, 3, 4, 5)]
    assert found[0].lines["two buffers, printed"][5] == (6, 58.89)
    for each in found:
        assert [[x for x, _ in points] for points in each.lines.values()] == [
            [1, 2, 3, 4, 5, 6]
        ] * 4


def test_a_figure_that_is_not_there_names_the_nearest() -> None:
    figure = {**papers.figures()[0], "id": "S4 figure 22"}
    with pytest.raises(ValueError, match="did you mean 'S4 figure 2'"):
        papers.curves(figure)  # type: ignore[arg-type]


def test_changed_constants_are_told_and_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers, "FROZEN", "0123456789abcdef")
    result = runner.invoke(app, ["repro", "--row", "T8.1"])
    assert result.exit_code == 1
    assert "changed since they were frozen" in result.stderr


def test_the_constants_are_those_that_were_frozen() -> None:
    assert papers.constants_hash() == papers.FROZEN, (
        "a constant was changed: say which, with old and new results, in docs/papers/constants.md, "
        "and put the new hash into leveret/papers.py"
    )


def test_sensitivity_moves_what_the_row_rests_on() -> None:
    report = invoke_json("repro", "--row", "T5.2", "--sensitivity")
    moves = {name: (low, high) for name, low, high in report["rows"]["T5.2"]["sensitivity"]}
    low, high = moves["eib.way"]
    assert low < report["rows"]["T5.2"]["simulated"] < high
    assert "clock.rate" not in moves


def test_a_row_that_does_not_end_is_red_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = _core.paper_simulate
    why = "no progress: nobody has got on for 1000000 us\n  SPE 0 (worker 0) goes on by itself"

    def stuck(name: str, changed: Mapping[str, float], full: bool) -> dict[str, object]:
        got = dict(real(name, dict(changed), full))
        if name == "T5.3 end" or changed.get("eib.way", 0) > 400:
            got |= {"value": math.nan, "failure": why}
        return got

    monkeypatch.setattr(_core, "paper_simulate", stuck)
    out = tmp_path / "out"
    printed = invoke("repro", "tpc", "--row", "T5.3", "--out", str(out))
    assert "did not end" in printed and "SPE 0 (worker 0)" in printed
    text = (out / "results.md").read_text()
    assert "| did not end |" in text and "SPE 0 (worker 0)" in text
    assert 'class="out"' in (out / "results.html").read_text()
    row = invoke_json("repro", "tpc", "--row", "T5.3")["rows"]["T5.3 end"]
    assert row["simulated"] is None and row["failure"] == why and not row["in_band"]
    (moves,) = papers.sensitivities([papers.simulate(papers.choose("tpc", "T5.2")[0])]).values()
    (change,) = [move for move in moves if move[0] == "eib.way"]
    assert change[1] is not None and change[2] is not None
    assert change[1] > 0 and math.isnan(change[2])
    report = invoke_json("repro", "tpc", "--row", "T5.2", "--sensitivity")
    assert ["eib.way", change[1], None] in report["rows"]["T5.2"]["sensitivity"]


def test_a_slice_of_the_sensitivity_says_which_rows_cross_their_bands(
    outcomes: list[papers.Outcome],
) -> None:
    """One constant and the rows of a paper; the page in docs/papers has all."""
    some = [o for o in outcomes if o.row.paper == "gcell" and o.row.role == "prediction"]
    told: list[str] = []
    moved = papers.sensitivities(
        some, only="gcell.message", on_done=lambda each: told.append(each.row.id)
    )
    assert set(told) == {o.row.id for o in some} == set(moved)
    page = repro.sensitivity_page(some, moved)
    assert "## gcell.message" in page and "out of band: " in page
    text = (DOCS / "sensitivity.md").read_text()
    assert f"Constants: {papers.FROZEN}." in text
    predictions = [each for each in outcomes if each.row.role == "prediction"]
    (efficiency,) = [
        move
        for moves in papers.sensitivities(predictions[:1], only="memory.efficiency").values()
        for move in moves
    ]
    assert efficiency[1] is not None and efficiency[2] is None  # more than all of the rate
    soft = {name for each in predictions for name in papers.soft_constants(each)}
    assert not [name for name in soft if f"\n## {name}\n" not in text]


def test_leveret_has_a_column_of_its_own(outcomes: list[papers.Outcome], tmp_path: Path) -> None:
    rows = {each.row.id: each for each in outcomes}
    for each in outcomes:
        assert each.leveret is not None
        answer = each.leveret
        assert answer["why_not"] or abs(answer["free"] - answer["value"]) <= 0.25 * abs(
            answer["value"]
        ), each.row.id
    assert repro.by_leveret(rows["T5.2"]) == repro.NOT_PRICED
    assert repro.by_leveret(rows["T8.1"]) == repro.NOT_RUN
    assert repro.by_leveret(rows["T3.3 fine"]) == "yes"
    # Jobs of 300 us on one worker: the body decides.
    jobs = rows["T7.2007 300us 1"].leveret
    assert jobs is not None and jobs["value"] == pytest.approx(320.6, rel=0.02)
    assert jobs["free"] < jobs["value"] < jobs["dear"]
    # Six workers have nearly six times as much done where tasks take long.
    for name in ("T2.2 1m 6", "T5.13 64x64", "T1.5 3k"):
        gain = rows[name].leveret
        assert gain is not None and 5.8 < gain["value"] < 6, name
    peak = rows["T4.11"].leveret
    assert peak is not None and 18 < peak["value"] < 22
    refused = dict(repro.without_leveret(outcomes))
    assert "T6.4" in refused["six processes share a PPE: the machine sim has one host"]
    name = "T7.2007 300us 1"
    printed = invoke("repro", "gcell", "--row", name, "--out", str(tmp_path / "out"))
    assert "322.8 (+0.7%); 320.1 to 325.5" in (tmp_path / "out" / "results.md").read_text()
    assert "322.8" in printed
    report = invoke_json("repro", "gcell", "--row", name)["rows"][name]
    assert report["leveret"] == jobs["value"]
    assert report["leveret_range"] == [jobs["free"], jobs["dear"]]
    assert "own work" in invoke_json("repro", "--row", "T5.2")["rows"]["T5.2"]["leveret_why_not"]
    with pytest.raises(ValueError, match=r"did you mean 'T5\.2'"):
        _core.paper_answer("T5.2x")


def test_sensitivity_is_counted_by_constant(tmp_path: Path, outcomes: list[papers.Outcome]) -> None:
    some = [each for each in outcomes if each.row.id in ("T5.2", "T5.3 end", "T5.1 eight")]
    # The one prediction in band leaves it with less, the other is out with both.
    moved = {"T5.2": [("eib.way", 100.0, 1200.0)], "T5.3 end": [("eib.way", 900.0, 950.0)]}
    assert repro.shares_by_constant(some, moved) == [["eib.way", "2", "0", "1"]]
    printed = invoke("repro", "--row", "T5.2", "--sensitivity", "--out", str(tmp_path / "out"))
    assert "Predictions in band" in printed
    text = (tmp_path / "out" / "results.md").read_text()
    assert "## Predictions in band, by constant" in text and "| eib.way | 1 | " in text


def test_no_prediction_is_circular(outcomes: list[papers.Outcome]) -> None:
    assert not [each.row.id for each in outcomes if papers.circular(each)]
    (yields,) = papers.choose("cellmt", "T4.1")
    rigged = papers.Outcome(yields, 1, 0, 0, 0, ("spe.thread_switch",))
    assert rigged.row.role == "calibration"
    row = papers.Row(**{**vars(rigged.row), "role": "prediction"})
    assert papers.circular(papers.Outcome(row, 1, 0, 0, 0, rigged.read)) == ["spe.thread_switch"]


def test_rows_are_in_their_bands_or_say_why(outcomes: list[papers.Outcome]) -> None:
    known = {str(each["name"]) for each in papers.constants()}
    for each in outcomes:
        row = each.row
        assert set(each.read) <= known, row.id
        assert math.isfinite(each.value), row.id
        assert each.read or row.role != "prediction", f"{row.id} rests on no constant"
        assert each.in_band or row.role not in ("calibration", "exact"), (row.id, each.value)
        is_miss = row.role == "prediction" and not each.in_band
        assert bool(row.miss) == is_miss, (row.id, each.value)


def parted(page: str) -> tuple[str, dict[str, str]]:
    """(the page without Leveret's column and what is said of it, that column by row)."""
    before, _, rest = page.partition("## Rows without a number of Leveret's")
    lines = []
    column = {}
    for line in (before + rest[rest.index("\n## ") :]).splitlines():
        words = line.split(" | ")
        if len(words) == 9 and words[0].startswith("| T"):
            column[words[0][2:]] = words.pop(5)
        lines.append(" | ".join(words))
    return "\n".join(lines), column


def test_the_page_of_results_is_what_is_simulated(outcomes: list[papers.Outcome]) -> None:
    page, column = parted((DOCS / "results.md").read_text())
    found, told = parted(repro.markdown(outcomes, {}))
    assert found == page, "leveret repro --out; then copy results.md"
    # A change of the pipeline moves its column a little; whether a row is priced is a limit.
    assert list(column) == list(told)
    for row, cell in column.items():
        kinds = {cell[:1].isdigit(), told[row][:1].isdigit()}
        if kinds == {True}:
            assert float(cell.split(" ")[0].rstrip(";")) == pytest.approx(
                float(told[row].split(" ")[0].rstrip(";")), rel=0.05
            ), f"{row}: leveret repro --out; then copy results.md"
        else:
            assert cell == told[row] or repro.NOT_PRICED in (cell, told[row]), row


def test_every_constant_has_a_source() -> None:
    for each in papers.constants():
        assert each["source"] in ("published", "derived", "measured", "assumed"), each
        assert each["origin"], each
    assert json.dumps(papers.constants())
