"""Who may include whom: the arrows of the house, as in ARCHITECTURE.md.

1. A room of src/ includes itself and the rooms before it in ROOMS.
2. A machine never includes another machine nor runtime; runtime never includes a machine.
3. Below runtime no room includes the facade: FACADE needs what they are made of.
4. Public headers include neither src/ nor the operating system.
5. Applications, examples, peers and Python see <leveret/...> and their own files only.
6. A function of src/ is declared in the header beside its source, so that every call follows an
   include: a prototype elsewhere would hide that two files call each other.
7. No file includes itself by way of others.
"""

import re

ROOMS = [
    *("base", "sync", "share", "task", "store", "queue", "flow", "context", "virtual", "cell"),
    *("trace", "machine", "worker", "remote", "machines", "runtime"),
]
NARROW = {
    "context": ("base", "context"),
    "virtual": ("base", "context", "virtual"),
    "cell": ("base", "context", "virtual", "cell"),
}  # rooms that may see less than the order allows
FACADE = ("leveret/runtime.hpp", "leveret/leveret.hpp")
OUTSIDE = {"apps": "apps", "examples": "examples", "bench/peers": "bench", "python": "python"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">\n]+)[">]', re.MULTILINE)
HEAD = (
    r"^(?:\[\[[^\]\n]*\]\]\s+)*(?!(?:static|extern|using|namespace|template)\b)"
    r"[A-Za-z_][\w:<>,&* \t]*[ *&](\w+)"
)
FUNCTION = {
    ";": re.compile(HEAD + r"\([^;{}]*\)\s*(?:noexcept)?\s*;", re.MULTILINE),
    "{": re.compile(HEAD + r"\([^;{}]*\)\s*(?:noexcept)?\s*(?:try\s*)?\{", re.MULTILINE),
}
OS_HEADER = re.compile(
    r"^(sys|linux|asm|arpa|netinet|x86_64-linux-gnu)/|^(cuda|mpi|numa|hwloc)\w*\.h$"
    r"|^(pthread|unistd|sched|fcntl|poll|semaphore|signal|ucontext|dlfcn|errno|spawn)\.h$"
    r"|^(windows|arm_neon|\w*intrin)\.h$"
)


def includes(file):
    """(line, quoted or not, path) of every #include."""
    for match in INCLUDE.finditer(file.code_and_strings):
        line = file.line_of(match.start(1))
        yield line, match[1] == '"', match[2]


def allowed_rooms(room):
    if room in NARROW:
        return NARROW[room]
    rooms = ROOMS[: ROOMS.index(room) + 1]
    return [name for name in rooms if not (room == "runtime" and name == "machines")]


def _private_include_fault(file, included):
    """Why a file of src/ may not have this quoted include, or None."""
    parts, target = file.path.split("/"), included.split("/")
    if "/" not in included or target[0] in (".", ".."):
        return f'private includes name the room: write "{parts[1]}/{target[-1]}"'
    if target[0] == "leveret":
        return f"public headers are written <{included}>"
    if target[0] not in ROOMS:
        return f'there is no room "{target[0]}"; the rooms are: {" ".join(ROOMS)}'
    if target[0] not in allowed_rooms(parts[1]):
        return (
            f"{parts[1]} may include only: {' '.join(allowed_rooms(parts[1]))}; "
            f"move what both need up into one of these rooms"
        )
    if parts[1] == target[0] == "machines" and parts[2] != target[1]:
        return (
            f"machine {parts[2]} may not know machine {target[1]}; "
            "move what both need up into a room, or reach it through the registry"
        )
    return None


def rooms_look_up(tree):
    for file in tree.of_kind("cpp"):
        if not file.under("src"):
            continue
        if file.path.count("/") < 2 or file.path.split("/")[1] not in ROOMS:
            message = f"move it into one of the rooms of src/: {' '.join(ROOMS)}"
            yield file.fault(1, "layering", message)
            continue
        for line, quoted, included in includes(file):
            message = _private_include_fault(file, included) if quoted else None
            if included in FACADE and file.path.split("/")[1] != "runtime":
                message = f"<{included}> stands on this room: include the public header it needs"
            if not quoted and f"src/{included}" in tree.paths:
                message = f'private includes are quoted: write "{included}"'
            if message:
                yield file.fault(line, "layering", message)


def no_file_includes_itself(tree):
    arrows = {}
    for file in tree.of_kind("cpp"):
        if file.under("src") or file.under("include"):
            found = includes(file)
            arrows[file.path] = [(n, f"{'src' if q else 'include'}/{to}") for n, q, to in found]
    files = {file.path: file for file in tree.of_kind("cpp")}
    done, way = set(), []

    def follow(path):
        way.append(path)
        for line, target in arrows[path]:
            if target in way:
                circle = " -> ".join([*way[way.index(target) :], target])
                yield files[path].fault(line, "include-circle", circle)
            elif target in arrows and target not in done:
                yield from follow(target)
        way.pop()
        done.add(path)

    for path in arrows:
        if path not in done:
            yield from follow(path)


def public_headers_stand_alone(tree):
    for file in tree.of_kind("cpp"):
        if not file.under("include"):
            continue
        for line, quoted, included in includes(file):
            if quoted:
                message = f"a public header includes <leveret/...> only, not {included}"
                yield file.fault(line, "layering", message)
            elif OS_HEADER.match(included):
                message = f"no header of the system here; move what needs <{included}> to src/"
                yield file.fault(line, "layering", message)


def users_see_public_headers(tree):
    for file in tree.of_kind("cpp"):
        area = next((OUTSIDE[folder] for folder in OUTSIDE if file.under(folder)), None)
        if area is None:
            continue
        own = [f"/{path}" for path in tree.paths if path.startswith(area + "/")]
        for line, quoted, included in includes(file):
            found = any(path.endswith("/" + included) for path in own) if quoted else True
            private = f"src/{included}" in tree.paths and not quoted
            if private or not found:
                message = f"{area} sees <leveret/...> and its own files only, not {included}"
                yield file.fault(line, "layering", message)


def _hidden(code):
    """(begin, end) of every unnamed namespace, which clang-format ends with a } in column 0."""
    for match in re.finditer(r"^namespace \{$", code, re.MULTILINE):
        end = re.compile(r"^\}", re.MULTILINE).search(code, match.end())
        depth, place = 1, match.end()
        while depth and place < len(code):
            depth += {"{": 1, "}": -1}.get(code[place], 0)
            place += 1
        yield match.start(), place if end else len(code)


def _functions(file, ending):
    """(offset, name) of what others see: prototypes (";") or definitions ("{") in column 0."""
    hidden = list(_hidden(file.code))
    for match in FUNCTION[ending].finditer(file.code):
        if not any(begin <= match.start() < end for begin, end in hidden):
            yield match.start(1), match[1]


def functions_are_declared_beside_their_source(tree):
    files = {f.path: f for f in tree.of_kind("cpp") if f.under("src")}
    sources = {
        path: {name for _, name in _functions(f, "{")}
        for path, f in files.items()
        if path.endswith(".cpp")
    }
    for path, file in files.items():
        own = path[: path.rindex(".")] + ".cpp"
        for offset, name in _functions(file, ";"):
            if path == own:
                yield file.fault(
                    file.line_of(offset),
                    "prototype",
                    f"declare {name}() in a header, beside the source that defines it",
                )
                continue
            if name in sources.get(own, ()):
                continue
            folder = path[: path.rindex("/") + 1]
            for source, names in sources.items():
                header = source[:-4] + ".hpp"
                if source.startswith(folder) and name in names and header in files:
                    yield file.fault(
                        file.line_of(offset),
                        "prototype",
                        f"{name}() is defined in {source}: declare it in {header}",
                    )


RULES = [
    functions_are_declared_beside_their_source,
    no_file_includes_itself,
    rooms_look_up,
    public_headers_stand_alone,
    users_see_public_headers,
]
