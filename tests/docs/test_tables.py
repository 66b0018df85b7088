"""The tables of the reference agree with the code: names, numbers, bounds, paths."""

import re
import unittest
from pathlib import Path

import tables

ROOT = Path(__file__).resolve().parents[2]


# (number of a machine file, what docs/how-to/simulate.md says of cell-ps3)
PRICES = [
    ("atomic.remote", r"(\d+) to \d+ cycles"),
    ("ppe.missed_load", r"(\d+) to \d+ cycles"),
    ("ppe.switch", r"([\d.]+) us"),
    ("eib.way", r"(\d+) cycles"),
    ("mfc.issue", r"(\d+) cycles"),
    ("dma.read_latency", r"(\d+) cycles"),
    ("spe.thread_switch", r"(\d+) cycles"),
]
# Constants of the code that a page says again: page, sentence, source, name, what one of it is.
REPEATED = [
    (
        "src/machines/sim/README.md",
        r"a stack of (\d+) MiB",
        "src/machines/sim/machine.cpp",
        "stack_bytes",
        1 << 20,
    ),
    ("src/store/README.md", r"multiples of (\d+) bytes", "src/store/arena.hpp", "alignment", 1),
    ("src/store/README.md", r"At most (\d+) blocks", "src/store/arena.hpp", "blocks_max", 1),
    ("src/share/README.md", r"each (\d+) KiB", "src/share/committed.hpp", "chunk_bytes", 1 << 10),
    ("src/flow/README.md", r"pieces of (\d+) µs", "src/flow/item_costs.hpp", "piece_ns", 1000),
    ("src/flow/README.md", r"gets (\w+) pieces", "src/flow/item_costs.hpp", "pieces_min", 1),
    (
        "docs/how-to/split-work.md",
        r"more than (\d+) arguments, each is a task",
        "src/worker/columns.hpp",
        "column_arguments_max",
        1,
    ),
    ("docs/how-to/wait.md", r"up to (\d+) more posts", "src/runtime/submit.cpp", "at_once_max", 1),
    ("docs/how-to/wait.md", r"(\d+) spare tickets", "src/runtime/open.cpp", "spare_per_taker", 1),
    (
        "src/worker/README.md",
        r"again for the next (\d+)",
        "src/worker/take.hpp",
        "catches_forgiven",
        1,
    ),
    ("src/flow/README.md", r"(\d+) for each worker", "src/runtime/open.cpp", "spare_per_taker", 1),
    ("src/worker/README.md", r"fewer than (\w+) ready", "src/worker/take.hpp", "catch_min", 1),
    ("src/worker/README.md", r"queues every (\d+) to", "src/runtime/open.cpp", "look_ns", 1),
    (
        "src/machines/processes/README.md",
        r"Up to (\d+) records",
        "src/machines/processes/lane.hpp",
        "lane_records",
        1,
    ),
]


class Tables(unittest.TestCase):
    def test_statuses(self):
        declared = tables.enumerators(ROOT, "include/leveret/status.hpp", "status")
        written = {
            tables.code_of(row[0]): int(row[1])
            for row in tables.page_rows(ROOT, "docs/reference/statuses.md")
            if len(row) == 5
        }
        self.assertEqual(written, declared)

    def test_statuses_say_where_they_arrive(self):
        for row in tables.page_rows(ROOT, "docs/reference/statuses.md"):
            if len(row) == 5 and not row[3].startswith("reserved"):
                with self.subTest(row[0]):
                    self.assertRegex(row[2], r"^(all|[SWORX]( [SWORX])*)$")

    def test_config(self):
        written = {
            tables.code_of(row[0]) for row in tables.page_rows(ROOT, "docs/reference/config.md")
        }
        self.assertLessEqual(tables.config_fields(ROOT), written)

    def test_limits(self):
        found = tables.page_rows(ROOT, "docs/reference/limits.md")
        self.assertGreater(len(found), 20)
        for what, value, name, header in found:
            with self.subTest(what):
                given = tables.constants(ROOT, tables.code_of(header), tables.code_of(name))
                self.assertIn(tables.number(value), given, f"{name} in {header}")

    def test_counters_are_explained(self):
        text = tables.read(ROOT, "docs/how-to/look-at-what-happened.md")
        written = {tables.code_of(row[0]) for row in tables.rows(text)}
        header = tables.read(ROOT, "include/leveret/counters.hpp")
        for struct in ("counters", "worker_counters"):
            body = header.split(f"\nstruct {struct} {{\n")[1].split("\n};")[0]
            for line in body.split("\n"):
                name = line.split(";")[0].split()[-1]
                self.assertIn(name, written)

    def test_inventory_has_every_row_once(self):
        found = tables.page_rows(ROOT, "docs/papers/inventory.md")
        ids = [row[0] for row in found]
        self.assertEqual(sorted(ids), sorted(tables.inventory_ids()))
        for row in found:
            with self.subTest(row[0]):
                self.assertEqual(len(row), 5, row)

    def test_promises_are_held_by_tests_that_exist(self):
        promises = tables.promises(ROOT)
        self.assertEqual(len(promises), len(set(promises)))
        held = tables.page_rows(ROOT, "docs/reference/promises.md")
        self.assertEqual(list(dict.fromkeys(row[0] for row in held)), promises)
        for promise, file, tests in held:
            path = tables.code_of(file)
            there = tables.tests_in(tables.read(ROOT, path), path)
            named = tables.CODE.findall(tests)
            self.assertTrue(named, f"{promise}: {path} without a test")
            for name in named:
                with self.subTest(f"{promise}: {path}: {name}"):
                    self.assertIn(name, there)

    def test_promises_that_the_code_names_exist(self):
        cited = tables.cited_promises(ROOT)
        self.assertTrue(cited)
        for name, path in cited.items():
            with self.subTest(f"{path}: {name}"):
                self.assertIn(name, tables.promises(ROOT))

    def test_constants_that_pages_repeat(self):
        for page, said, source, name, scale in REPEATED:
            with self.subTest(f"{page}: {said}"):
                text = " ".join(tables.read(ROOT, page).split())
                found = re.search(said, text)
                self.assertIsNotNone(found, f"{page} does not say this any more: change REPEATED")
                (value,) = tables.constants(ROOT, source, name)
                shown = tables.WORDS.get(found[1]) or int(found[1].replace(",", ""))
                self.assertEqual(shown * scale, value, f"{name} of {source}")

    def test_prices_of_the_simulated_machine(self):
        text = tables.read(ROOT, "src/cell/chip.toml")
        found = tables.page_rows(ROOT, "docs/how-to/simulate.md")
        for name, said in PRICES:
            with self.subTest(name):
                group, key = name.split(".")
                part = text.split(f"[{group}]\n")[1].split("\n[")[0]
                value = re.search(rf"^{key} = \{{ value = ([\d.]+),", part, re.MULTILINE)[1]
                words = [row for row in found if f"`{name}`" in row[1] or "latency" in row[1]]
                shown = [re.search(said, row[2]) for row in words]
                self.assertIn(f"{float(value):.3g}", [f"{float(m[1]):.3g}" for m in shown if m])

    def test_machine_files_say_where_the_rest_of_them_is(self):
        chip = set(re.findall(r"^\[\w+\]", tables.read(ROOT, "src/cell/chip.toml"), re.MULTILINE))
        found = sorted((ROOT / "src/cell/files").glob("*.toml"))
        self.assertTrue(found)
        for path in found:
            with self.subTest(path.name):
                text = path.read_text(encoding="utf-8")
                self.assertFalse(chip.intersection(text.split("\n")))
                self.assertIn("with chip.toml after it", text)
                self.assertIn(f"`leveret info --machine-file {path.stem}`", text)

    def test_names_are_where_pages_say(self):
        for page, text in tables.pages(ROOT).items():
            for name, path in tables.places_in(text):
                with self.subTest(f"{page}: {name} in {path}"):
                    self.assertIn(name.rsplit("::")[-1], tables.read(ROOT, path))

    def test_steps_of_the_walk_are_in_their_files(self):
        found = tables.walk(ROOT)
        self.assertEqual(len(found), 9)
        for step, names, paths in found:
            text = "".join(tables.read(ROOT, path) for path in paths)
            for name in names:
                with self.subTest(f"{step}: {name}"):
                    self.assertRegex(text, tables.definition(name.rsplit("::")[-1]))

    def test_paths_exist(self):
        for page, text in tables.pages(ROOT).items():
            for path in tables.paths_in(text):
                with self.subTest(f"{page}: {path}"):
                    self.assertTrue((ROOT / path).exists(), f"{page}: no {path}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
