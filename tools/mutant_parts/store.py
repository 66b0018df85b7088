"""Where the patches are, how a set of them is written as changed copies, how one is renewed."""

import re
import shutil
from pathlib import Path

from .patch import PatchError, apply_edits, edits_of, make_diff, read_patch

# Each of these folders is one set: what is in it is applied together, to the same copies.
FOLDERS = (
    "tests/model/seam/protocols",
    "tests/model/seam/pipeline",
    "tests/model/mutants/protocols",
    "tests/model/mutants/pipeline",
    "tests/exercise/mutants",
)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
FAULT = re.compile(r'\bfault\(\s*"([^"]+)"')


def slug(fault):
    """The name of the patch that plants a fault."""
    return re.sub(r"[^a-z0-9]+", "-", fault.lower()).strip("-")


def faults_of(patch):
    """The names of the faults that a patch plants, each once, in order."""
    return list(dict.fromkeys(FAULT.findall(patch.added)))


def read_folder(folder):
    """All patches of a folder, by name."""
    paths = sorted(Path(folder).glob("*.patch"))
    return [read_patch(path.stem, path.read_text()) for path in paths]


def apply_patches(root, patches):
    """{path: changed text} of all patches together, and a message for each that does not apply."""
    changed, faults = {}, []
    for path in sorted({path for patch in patches for path in patch.paths}):
        file = Path(root) / path
        if not file.is_file():
            names = " ".join(patch.name for patch in patches if path in patch.paths)
            faults.append(f"there is no {path}, which {names} changes")
            continue
        text, edits = file.read_text(), []
        for patch in patches:
            made, lost = edits_of(patch, path, text)
            edits += made
            faults += [describe(patch, hunk, why) for hunk, why in lost]
        try:
            changed[path] = apply_edits(text, edits)
        except PatchError as error:
            faults.append(f"{path}: {error}")
    return changed, faults


def describe(patch, hunk, why):
    """What to say of a hunk that found no place, and what to do."""
    code = "\n".join(f"    {line}" for line in hunk.lines)
    return (
        f"{patch.name}.patch does not apply to {hunk.path}: {why}.\n{code}\n"
        f"  To renew it: tools/mutants edit {patch.name}; make the change in the copy; "
        f"tools/mutants save {patch.name}"
    )


def write_changed(root, out, patches):
    """Writes the changed copies below `out`, without src/; returns their paths and the faults."""
    changed, faults = apply_patches(root, patches)
    paths = []
    for path, text in changed.items():
        inside = path.removeprefix("src/")
        paths.append(inside)
        copy = Path(out) / inside
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.is_file() or copy.read_text() != text:
            copy.write_text(text)
    for copy in Path(out).rglob("*"):
        if copy.is_file() and str(copy.relative_to(out)) not in paths:
            copy.unlink()
    return paths, faults


def sources_of(root, paths):
    """The sources below src/ that are one of `paths`, or include one of them, however far away."""
    included = {}
    for file in (Path(root) / "src").rglob("*.[hc]pp"):
        inside = str(file.relative_to(Path(root) / "src"))
        included[inside] = set(INCLUDE.findall(file.read_text()))
    found = set(paths)
    while more := {file for file, names in included.items() if names & found} - found:
        found |= more
    return sorted(file for file in found if file.endswith(".cpp"))


def find(root, name):
    """The file of the patch with this name."""
    name = name.removesuffix(".patch").rpartition("/")[2]
    found = [Path(root) / folder / f"{name}.patch" for folder in FOLDERS]
    found = [path for path in found if path.is_file()]
    if not found:
        raise PatchError(f"no patch is called {name}; tools/mutants list says what there is")
    return found[0]


def edit(root, name):
    """Copies of the files of a patch with what applies of it; returns (copies, what is left)."""
    file = find(root, name)
    patch = read_patch(file.stem, file.read_text())
    folder = Path(root) / "build" / "mutants" / patch.name
    shutil.rmtree(folder, ignore_errors=True)
    copies, left = [], []
    for path in patch.paths:
        text = (Path(root) / path).read_text() if (Path(root) / path).is_file() else ""
        edits, lost = edits_of(patch, path, text)
        left += lost
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(apply_edits(text, edits))
        copies.append(copy)
    return copies, left


def save(root, name):
    """Makes the patch anew from the copies that edit() left; returns its file."""
    file = find(root, name)
    patch = read_patch(file.stem, file.read_text())
    folder = Path(root) / "build" / "mutants" / patch.name
    copies = sorted(path for path in folder.rglob("*") if path.is_file())
    texts = {str(copy.relative_to(folder)): copy.read_text() for copy in copies}
    if not texts:
        raise PatchError(f"there are no copies to make it from: first tools/mutants edit {name}")
    write_patch(root, file, patch.head, texts)
    shutil.rmtree(folder)
    return file


def write_patch(root, file, head, texts):
    """Writes a patch that makes `texts` of the files of the tree."""
    diffs = [
        make_diff(path, (Path(root) / path).read_text(), texts[path]) for path in sorted(texts)
    ]
    if not any(diffs):
        raise PatchError(f"{file.stem}: the copies are as the files are; change them first")
    file.write_text(f"{head}\n\n{''.join(diffs)}" if head else "".join(diffs))


def refresh(root):
    """Writes each patch as it is now: line numbers and context. Returns those that changed."""
    renewed = []
    for folder in FOLDERS:
        for patch in read_folder(Path(root) / folder):
            file = Path(root) / folder / f"{patch.name}.patch"
            texts, faults = apply_patches(root, [patch])
            if faults:
                raise PatchError("\n".join(faults))
            before = file.read_text()
            write_patch(root, file, patch.head, texts)
            if file.read_text() != before:
                renewed.append(file)
    return renewed
