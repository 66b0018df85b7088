"""The executors whose calls a worker runs: one, or, in a shared pool, several in turn.

What an executor has set up in this process is its own: its page, environment, folder, search path
and notes, and what is its program's (programs.py), are put away when the worker turns to a call of
another one, and are back for its next call. What calls leave in modules that all find is not: that
is the process's.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from pickle import loads

from .. import _core
from ..wire import by_value
from ..wire.settings import Settings, change_settings
from ..wire.setup import Setup, is_there
from . import multiprocess, notes, own_page, programs

_first_path = list(sys.path)  # before modules of preload, which may add to it
_HOSTS_MAX = 64  # of a pool; one that has left makes room for the next


class Host:
    """One executor, as a worker process knows it."""

    def __init__(self, place: tuple[int, int]) -> None:
        self.place = place  # of its setup
        self.is_set_up = False
        self.path = b""  # its search path, as it was sent last
        self.told = _first_path  # the same as a list, without what calls have added here
        self.searched = _own_path  # sys.path of its last turn, with what they have added
        self.replaced: dict[str, str | None] = {}  # what was there before its variables
        self.came_from = ""  # the folder before its own
        self.settings_before: Settings = {}
        self.page: own_page.PutAway | None = None
        self.belongings: programs.Belongings | None = None
        self.receive(Setup())  # until its own is read

    def receive(self, setup: Setup) -> None:
        self.setup = setup
        self.calls_left = setup.calls_max  # until the process is replaced; below 0: for ever
        self.notes = notes.Forwarding(setup)

    def surround(self) -> None:
        """Sets its variables and settings, and goes to its folder."""
        setup = self.setup
        env = setup.env[_core.worker_index() or 0] if setup.env else {}
        self.replaced = {name: os.environ.get(name) for name in env}
        _set(env)
        self.settings_before = change_settings(setup.settings)
        if setup.cwd is not None:
            self.came_from = os.getcwd()  # noqa: PTH109
            os.chdir(setup.cwd)

    def leave(self) -> None:
        """Puts away what is its own."""
        self.searched = list(sys.path)
        self.belongings = programs.take_away()
        self.page = own_page.put_away()
        if self.notes.has_begun:
            self.notes.end()
        _set(self.replaced)
        change_settings(self.settings_before)
        if self.came_from:
            with contextlib.suppress(OSError):  # it may be gone
                os.chdir(self.came_from)

    def follow(self, path: bytes) -> None:
        """Searches for modules where its program does, and where its calls have asked for here."""
        if path == self.path:
            return
        told = loads(path)
        known = (*self.told, *told)
        first = next((i for i, each in enumerate(sys.path) if each in self.told), 0)
        front = [each for each in sys.path[:first] if each not in known]
        behind = [each for each in sys.path[first:] if each not in known]
        self.path, self.told = path, told
        _search([*front, *told, *behind])

    def come_back(self) -> None:
        if self.page is not None:
            own_page.take_back(self.page)
            self.page = None
        if self.searched != sys.path:
            _search(self.searched)
        if self.belongings is not None:
            self.belongings.put_back()
            self.belongings = None
        if not self.is_set_up:
            return
        multiprocess.set_up(self.setup.about)
        self.surround()
        self.notes.begin()
        _core.retire_worker_after(self.setup.idle_ns_max)


def _search(path: list[str]) -> None:
    """Makes it the path of this process."""
    sys.path[:] = path
    by_value.forget_searches()


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


hosts: dict[tuple[int, int], Host] = {}  # the last one is that of now
_own_path: list[str] = []  # what new ones begin with


def _forget_those_that_are_gone() -> None:
    """When another one comes: what they have here may be large."""
    gone = [each for each in hosts if not is_there(each)]
    for place in gone:
        page = hosts.pop(place).page
        if page is not None:
            page.close()
    if gone:
        gc.collect()  # functions, and the globals that they are in


def turn_to(place: tuple[int, int]) -> Host:
    """The executor whose setup is there: its calls follow."""
    before = next(reversed(hosts.values()), None)
    if before is None:
        _own_path[:] = sys.path
    else:
        before.leave()
    if place not in hosts:
        _forget_those_that_are_gone()
    host = hosts.pop(place, None) or Host(place)
    hosts[place] = host
    if before is not None:
        host.come_back()
    while len(hosts) > _HOSTS_MAX:
        oldest = hosts.pop(next(iter(hosts)))
        if oldest.page is not None:
            oldest.page.close()
    return host
