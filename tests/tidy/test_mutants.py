"""Tests of tools/mutants: the patches of the tree apply and plant what tests ask for, and a patch
survives an edited comment, another line break and moved code, but nothing else.
"""

import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from mutant_parts import store
from mutant_parts.patch import PatchError, make_diff, read_patch, squeeze

ROOT = Path(__file__).resolve().parents[2]
OLD = """// What this file is for.
int pop(queue& q) {
  // Pairs with push().
  const int head = q.head.load(acquire);
  if (head == q.tail) return -1;
  return q.cells[head & mask];  // the oldest
}

int peek(queue& q) {
  return q.cells[0];
}
"""
CHECK = "  if (head == q.tail) return -1;\n"
WRONG = '  if (head == q.tail && !model::fault("queue: empty")) return -1;\n'
PATH = "src/queue/pop.hpp"


class ApplyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write(OLD)
        (self.root / store.FOLDERS[0]).mkdir(parents=True)
        self.replaced = self.patch("queue-empty", OLD.replace(CHECK, WRONG))

    def write(self, text, path=PATH):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def patch(self, name, new, old=OLD):
        text = f"{name}\n\n{make_diff(PATH, old, new)}"
        (self.root / store.FOLDERS[0] / f"{name}.patch").write_text(text)
        return read_patch(name, text)

    def applied(self, text, *patches):
        self.write(text)
        changed, faults = store.apply_patches(self.root, patches)
        self.assertEqual(faults, [])
        return changed[PATH]

    def refused(self, text, *patches):
        self.write(text)
        return "\n".join(store.apply_patches(self.root, patches)[1])

    def test_changes_what_it_says_and_nothing_else(self):
        self.assertEqual(self.applied(OLD, self.replaced), OLD.replace(CHECK, WRONG))

    def test_survives_edited_comments(self):
        text = OLD.replace("// Pairs with push().", "// Pairs with push(),\n  // as told there.")
        text = text.replace("return -1;", "return -1;  // empty").replace("  // the oldest", "")
        done = self.applied(text, self.replaced)
        self.assertEqual(squeeze(done)[0], squeeze(OLD.replace(CHECK, WRONG))[0])
        self.assertIn("// as told there.", done)

    def test_survives_another_line_break_and_another_place(self):
        text = "int first;\n" * 50 + OLD.replace(
            "(head == q.tail) return", "(head ==\n  q.tail)\n return"
        )
        done = self.applied(text, self.replaced)
        self.assertEqual(done, "int first;\n" * 50 + OLD.replace(CHECK, WRONG))

    def test_survives_changed_code_at_the_rim_of_its_context(self):
        text = OLD.replace("int pop(queue& q)", "long pop(queue& q)")
        self.assertIn(WRONG, self.applied(text, self.replaced))

    def test_adds_lines_behind_the_code_they_stood_behind(self):
        added = '  if (model::fault("queue: late")) return 0;\n'
        patch = self.patch("queue-late", OLD.replace(CHECK, CHECK + added))
        text = OLD.replace("  return q.cells[head", "  // Why.\n  return q.cells[head")
        self.assertEqual(self.applied(text, patch), text.replace(CHECK, CHECK + added))

    def test_removes_lines(self):
        patch = self.patch("queue-none", OLD.replace(CHECK, ""))
        self.assertEqual(self.applied(OLD, patch), OLD.replace(CHECK, ""))

    def test_patches_may_stand_in_each_others_context(self):
        other = self.patch("other", OLD.replace("load(acquire)", "load(relaxed)"))
        wanted = OLD.replace(CHECK, WRONG).replace("load(acquire)", "load(relaxed)")
        self.assertEqual(self.applied(OLD, self.replaced, other), wanted)
        self.assertEqual(self.applied(OLD, other, self.replaced), wanted)

    def test_changed_code_is_refused_with_the_name_and_what_to_do(self):
        said = self.refused(OLD.replace("== q.tail", ">= q.tail"), self.replaced)
        for words in (
            "queue-empty.patch",
            PATH,
            "not there any more",
            "tools/mutants edit queue-empty",
        ):
            self.assertIn(words, said)

    def test_code_that_is_there_twice_is_refused(self):
        self.assertIn("more than once", self.refused(OLD + OLD, self.replaced))

    def test_two_patches_of_one_line_are_refused(self):
        other = self.patch("other", OLD.replace(CHECK, "  if (head < q.tail) return -1;\n"))
        self.assertIn("change the same lines", self.refused(OLD, self.replaced, other))

    def test_a_missing_file_is_named(self):
        (self.root / PATH).unlink()
        self.assertIn(PATH, "\n".join(store.apply_patches(self.root, [self.replaced])[1]))

    def test_a_patch_without_changes_is_refused(self):
        self.assertRaises(PatchError, read_patch, "nothing", "only words\n")

    def test_edit_and_save_renew_a_patch(self):
        self.write(OLD.replace("== q.tail", ">= q.tail"))
        copies, left = store.edit(self.root, "queue-empty")
        self.assertEqual(len(left), 1)
        self.assertRaises(PatchError, store.save, self.root, "queue-empty")
        wrong = WRONG.replace("== q.tail", ">= q.tail")
        copies[0].write_text(copies[0].read_text().replace(CHECK.replace("==", ">="), wrong))
        file = store.save(self.root, "queue-empty")
        renewed = read_patch(file.stem, file.read_text())
        self.assertEqual(renewed.head, "queue-empty")
        self.assertIn(wrong, self.applied((self.root / PATH).read_text(), renewed))

    def test_refresh_renews_the_context_alone(self):
        self.write("int first;\n" + OLD)
        (file,) = store.refresh(self.root)
        self.assertIn("@@ -3,7 +3,7 @@", file.read_text())
        self.assertEqual(store.refresh(self.root), [])

    def test_writes_copies_and_drops_those_that_are_no_longer_changed(self):
        stale = self.root / "copies/queue/push.hpp"
        stale.parent.mkdir(parents=True)
        stale.write_text("")
        paths, faults = store.write_changed(self.root, self.root / "copies", [self.replaced])
        self.assertEqual((paths, faults), (["queue/pop.hpp"], []))
        self.assertEqual(
            (self.root / "copies/queue/pop.hpp").read_text(), OLD.replace(CHECK, WRONG)
        )
        self.assertFalse(stale.exists())


def sides(lines, less):
    """The squeezed old and new code of a hunk without its `less` outermost lines of context."""
    changes = [i for i, line in enumerate(lines) if line[0] != " "]
    first, last = min(less, changes[0]), max(len(lines) - less, changes[-1] + 1)
    return [
        squeeze("\n".join(line[1:] for line in lines[first:last] if line[0] in signs))[0]
        for signs in (" -", " +")
    ]


class TreeTest(unittest.TestCase):
    """The patches of this repository."""

    def patches(self, *folders):
        return [patch for folder in folders for patch in store.read_folder(ROOT / folder)]

    def test_each_applies_alone_and_changes_exactly_its_lines(self):
        patches = self.patches(*store.FOLDERS)
        self.assertGreater(len(patches), 80)
        for patch in patches:
            with self.subTest(patch.name):
                changed, faults = store.apply_patches(ROOT, [patch])
                self.assertEqual(faults, [])
                self.assertEqual(sorted(changed), patch.paths)
                for path, text in changed.items():
                    self.assert_same_change(patch, path, (ROOT / path).read_text(), text)

    def assert_same_change(self, patch, path, old, new):
        """With what the patch says put back, the changed code is the code of the tree."""
        code = squeeze(new)[0]
        for hunk in (hunk for hunk in patch.hunks if hunk.path == path):
            # Context that has changed since does not matter, as long as it is not between changes.
            for before, after in (sides(hunk.lines, less) for less in range(len(hunk.lines))):
                self.assertNotEqual(before, after)
                if after in code:
                    break
            self.assertEqual(code.count(after), 1)
            code = code.replace(after, before)
        self.assertEqual(code, squeeze(old)[0])

    def test_all_of_a_build_apply_together(self):
        for kind in ("protocols", "pipeline"):
            patches = self.patches(f"tests/model/seam/{kind}", f"tests/model/mutants/{kind}")
            self.assertEqual(store.apply_patches(ROOT, patches)[1], [])
        self.assertEqual(store.apply_patches(ROOT, self.patches("tests/exercise/mutants"))[1], [])

    def test_each_is_called_after_what_it_plants(self):
        for folder in (folder for folder in store.FOLDERS if "mutants" in folder):
            for patch in self.patches(folder):
                faults = store.faults_of(patch)
                named = patch.head.splitlines()
                self.assertEqual(sorted(named), sorted(faults), patch.name)
                self.assertEqual(patch.name, store.slug(named[0]))

    def test_the_seam_plants_nothing(self):
        for patch in self.patches("tests/model/seam/protocols", "tests/model/seam/pipeline"):
            self.assertEqual(store.faults_of(patch), [], patch.name)

    def test_tests_ask_for_each_fault_and_for_no_other(self):
        model = "\n".join(path.read_text() for path in (ROOT / "tests/model").glob("*.cpp"))
        asked = set(re.findall(r'\.plant(?:<[^>]*>)?\(\s*"([^"]+)"', model))
        self.assert_planted(asked, "tests/model/mutants/protocols", "tests/model/mutants/pipeline")
        table = (ROOT / "tests/exercise/faults.hpp").read_text()
        asked = set(re.findall(r'\{"([^"]+)", place::', table))
        self.assert_planted(asked, "tests/exercise/mutants")

    def assert_planted(self, asked, *folders):
        planted = [fault for patch in self.patches(*folders) for fault in store.faults_of(patch)]
        self.assertEqual(sorted(planted), sorted(asked))


if __name__ == "__main__":
    unittest.main()
