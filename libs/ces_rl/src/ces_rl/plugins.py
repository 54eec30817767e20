"""Algorithms and environments by name: the entry points of ``ces.algorithms`` and ``ces.envs``, imported when asked
for."""

from __future__ import annotations

import ast
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ces_rl.algorithms.base import Algorithm
from ces_rl.envs.base import Environment

ALGORITHMS, ENVS = "ces.algorithms", "ces.envs"
WORDS = {ALGORITHMS: "algorithm", ENVS: "environment"}


class PluginError(ValueError):
    """There is none of that name, or it cannot be used."""


@cache
def points(group: str) -> dict[str, EntryPoint]:
    """Name -> entry point, by name."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def algorithm(name: str) -> type[Algorithm]:
    """Raises PluginError."""
    found: type[Algorithm] = _load(ALGORITHMS, name)
    return found


def environment(name: str) -> type[Environment]:
    """Raises PluginError."""
    found: type[Environment] = _load(ENVS, name)
    if not issubclass(found, Environment):
        raise PluginError(f"environment {name}: {found.__name__} is no ces_rl.envs.base.Environment")
    return found


def help_line(group: str, name: str) -> str:
    """The first sentence about a plugin, read from its source without running it; empty where there is none."""
    module = points(group)[name].module
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return ""
    if spec is None or spec.origin is None:
        return ""
    file = Path(spec.origin)
    file = file.parent.joinpath(*inner).with_suffix(".py") if inner else file
    if not file.is_file():
        return ""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _load(group: str, name: str) -> Any:
    word = WORDS[group]
    known = points(group)
    if name not in known:
        raise PluginError(f"there is no {word} {name!r}; there are {', '.join(known)}")
    try:
        found = known[name].load()
    except Exception as error:  # a third party's module may raise anything
        raise PluginError(f"{word} {name} is broken: {known[name].value}: {error!r}") from error
    if not isinstance(found, type) or not hasattr(found, "Settings"):
        raise PluginError(f"{word} {name} is broken: {known[name].value} names no class with Settings")
    return found
