"""The pages of the site: every Markdown file of the tree where it is, and a page for each header.

A link to a file that is no page (a source, an example) leads to a copy of that file; one to a
folder, to a page that lists it. So the site has no link out of itself but to the web.
"""

import posixpath
import re

from . import reference

LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)]*)?(\))")
HEADERS = "reference"  # the folder of the pages of headers


def gather(tree, out):
    """Writes all pages below `out`; returns their paths."""
    pages = {}
    for file in tree.files:
        if file.suffix == ".md" and not file.under("tests/package", ".github"):
            pages[file.path] = file.text
    for file in tree.files:
        if file.under("include/leveret") and file.suffix == ".hpp":
            name = file.path.removeprefix("include/")
            pages[f"{HEADERS}/{name[:-4]}.md"] = reference.page(name, file.text)
    pages[f"{HEADERS}/index.md"] = index_of_headers(pages)
    wanted = set()
    for path, text in list(pages.items()):
        pages[path] = with_links(tree, path, text, pages, wanted)
    for folder in sorted(wanted):
        pages[f"{folder}/folder.md"] = list_of(tree, folder)
    for path, text in pages.items():
        write(out / path, text)
    return sorted(pages)


def index_of_headers(pages):
    lines = ["# C++ reference", "", "One page for each public header, made of its comments.", ""]
    for path in sorted(path for path in pages if path.startswith(f"{HEADERS}/leveret/")):
        name = path.removeprefix(f"{HEADERS}/").removesuffix(".md")
        said = re.split(r"(?<=\.)\s", pages[path].split("\n\n")[1])[0].replace("\n", " ")
        lines.append(f"- [`<{name}.hpp>`]({name}.md): {said}")
    lines += ["", "The C API is [leveret.h](../include/leveret/leveret.h)."]
    return "\n".join(lines) + "\n"


def with_links(tree, path, text, pages, wanted):
    """The text with links that lead to something on the site; folders go to `wanted`."""
    here = posixpath.dirname(path)

    def changed(found):
        target = found[2]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        there = posixpath.normpath(posixpath.join(here, target))
        if there in tree.paths or there in pages:
            return found[0]
        wanted.add(there)
        return f"{found[1]}{posixpath.relpath(there, here or '.')}/folder.md{found[4]}"

    lines, is_code = [], False
    for line in text.split("\n"):
        is_code ^= line.startswith("```")
        lines.append(line if is_code else LINK.sub(changed, line))
    return "\n".join(lines)


def list_of(tree, folder):
    """A page that lists the files of a folder."""
    inside = [path for path in sorted(tree.paths) if path.startswith(folder + "/")]
    lines = [f"# {folder}/", ""]
    for path in inside:
        name = posixpath.relpath(path, folder)
        lines.append(f"- [{name}]({name})")
    return "\n".join(lines) + "\n"


def copy_linked(tree, out):
    """Copies the files that pages lead to and that are no pages."""
    todo = {path for path in tree.paths if (out / path).suffix != ".md"}
    for page in out.rglob("*.md"):
        here = posixpath.dirname(str(page.relative_to(out)))
        for _, target, _, _ in LINK.findall(page.read_text()):
            there = posixpath.normpath(posixpath.join(here, target))
            if there in todo:
                todo.discard(there)
                (out / there).parent.mkdir(parents=True, exist_ok=True)
                (out / there).write_bytes((tree.root / there).read_bytes())


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
