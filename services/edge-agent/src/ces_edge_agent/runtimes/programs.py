"""The programs that worker processes run, and the Python environment that they share with the agent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ces_edge_agent.ports import Refused

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PYTHON = ("python", "python3")
_OTHERS_READ, _OTHERS_ENTER = 0o004, 0o005


def resolve(command: list[str], search_path: str, folder: Path) -> tuple[str, list[str]]:
    """The program's file and its arguments. Raises Refused if there is no such program."""
    if not command:
        raise Refused("the task names no command")
    name = command[0]
    if name in _PYTHON:
        return sys.executable, [sys.executable, *command[1:]]
    found = str(folder / name) if "/" in name else shutil.which(name, path=search_path)
    if found is None or not os.path.exists(found):
        raise Refused(f"{name}: no such program on this node")
    if os.path.isdir(found) or not os.access(found, os.X_OK):
        raise Refused(f"{name}: cannot be executed")
    return found, list(command)


@cache
def environment() -> tuple[str, ...]:
    """What this agent's interpreter needs to run: files and folders, among them the sources of packages installed in
    place. Asked of the interpreter itself, since the agent's own path may hold its working folder."""
    ask = [sys.executable, "-I", "-c", "import sys; print(*sys.path, sep='\\0')"]
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    named = (sys.executable, sys.prefix, sys.base_prefix, *said.strip().split("\0"))
    paths = {path for name in named for path in (name, os.path.realpath(name)) if os.path.exists(path)}
    return tuple(sorted(outermost(paths)))


def outermost(paths: Iterable[str]) -> set[str]:
    """The paths that do not lie within another one of them."""
    found = set(paths)
    return {path for path in found if not any(str(folder) in found for folder in Path(path).parents)}


def closed_to_others(paths: Iterable[str]) -> list[str]:
    """Those that only their owner or group can read, whatever may be said of the folders around."""
    found = []
    for path in paths:
        needed = _OTHERS_ENTER if os.path.isdir(path) else _OTHERS_READ
        if os.stat(path).st_mode & needed != needed:
            found.append(path)
    return found
