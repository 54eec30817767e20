"""What people write behind options: lists, ranges and names, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from ces_core.errors import ProblemError
from ces_core.solvers import DEFAULT, available, lacking
from ces_core.topologies import SHAPES, layout_of

GROUND_TRUTH = "exact"
"""The solver that proves optima. It is not compared unless asked for: it takes as long as it takes."""


def names(option: str, text: str, known: Collection[str], most: int | None = None) -> tuple[str, ...]:
    """Names separated by commas, ``most`` at most. Raises typer.BadParameter, naming the option."""
    found = _parts(option, text)
    if most is not None and len(found) > most:
        raise typer.BadParameter(f"{text!r} names more than {most}", param_hint=option)
    for name in found:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=option)
    return found


def solvers(option: str, text: str | None) -> tuple[str, ...]:
    """The named solvers, or all but the ground truth; each once, under its own name."""
    if text is None:
        return tuple(name for name in sorted(available()) if name not in (DEFAULT, GROUND_TRUTH))
    for name in _parts(option, text):
        if found := lacking(name):
            raise typer.BadParameter(f"{name} {found}", param_hint=option)
    return names(option, text, sorted(available()))


def solvers_or(option: str, text: str | None, usual: Collection[str]) -> tuple[str, ...]:
    """The named solvers, or the usual ones; of those, what is not installed is left out and told on standard error."""
    if text is not None:
        return solvers(option, text)
    if missing := [name for name in usual if name not in available()]:
        for name in missing:
            typer.echo(f"left out: {name} {lacking(name) or 'is not installed'}", err=True)
    return tuple(dict.fromkeys(name for name in usual if name in available()))


def proof_s(exact: bool | None, limit: float) -> float | None:
    """Seconds for each proof, None for no proofs. ``exact`` None: as there is an exact solver or not. Raises
    typer.BadParameter."""
    there = GROUND_TRUTH in available()
    if exact and not there:
        raise typer.BadParameter("there is no exact solver; use --no-exact", param_hint="--exact")
    return limit if there and exact is not False else None


def whole_numbers(option: str, text: str, least: int, most: int) -> tuple[int, ...]:
    """Numbers and ranges such as ``3-8`` or ``3,5,8``, ascending. Raises typer.BadParameter, naming the option."""
    found: set[int] = set()
    for part in _parts(option, text):
        low, dash, high = part.partition("-")
        try:
            first, last = int(low), int(high) if dash else int(low)
        except ValueError:
            raise typer.BadParameter(f"{part!r} is no number and no range such as 3-8", param_hint=option) from None
        if not least <= first <= last <= most:
            raise typer.BadParameter(f"{part!r} is not within {least}..{most}", param_hint=option)
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def sizes(option: str, text: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Numbers of nodes, each with numbers of tasks: ``10:3-8,100:16``. Raises typer.BadParameter, naming the option."""
    found = []
    for part in _parts(option, text):
        nodes, colon, tasks = part.partition(":")
        if not colon:
            raise typer.BadParameter(f"{part!r} is not of the form 10:3-8", param_hint=option)
        count, *others = whole_numbers(option, nodes, 2, 10_000)
        if others:
            raise typer.BadParameter(f"{nodes!r} is more than one number of nodes", param_hint=option)
        found.append((count, whole_numbers(option, tasks, 1, 100)))
    return tuple(found)


def amounts(option: str, text: str, least: int = 0) -> tuple[float, ...]:
    """Positive numbers separated by commas, ascending; an empty text has none. ``least``: how many there must be.

    Raises typer.BadParameter, naming the option.
    """
    found = set()
    for part in _parts(option, text) if text else ():
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise typer.BadParameter(f"{part!r} is no number above 0", param_hint=option)
        found.add(value)
    if len(found) < least:
        raise typer.BadParameter(f"at least {least} must be named", param_hint=option)
    return tuple(sorted(found))


def network(topology: str, nodes: int | None) -> str:
    """The topology's name, once it is known to exist. Raises typer.BadParameter, naming the option."""
    try:
        layout_of(topology, nodes)
    except ProblemError as error:
        raise typer.BadParameter(error.message, param_hint=f"--{error.field}") from error
    return topology


def count_of_nodes(topology: str, nodes: int | None, usual: int) -> int | None:
    """How many nodes a shape gets; None for a file."""
    return (nodes or usual) if topology in SHAPES else None


def network_in_words(question: Mapping[str, Any]) -> str:
    """For titles: the topology and how many nodes were asked for."""
    topology, nodes = Path(question["topology"]).stem, question["nodes"]
    return f"{topology} network" if nodes is None else f"{topology} network of {nodes} nodes"


def data_file(option: str, text: str) -> Path:
    """A file as named, or under the folder that CES_DATA_DIR names. Raises typer.BadParameter, naming the option."""
    folder = os.environ.get("CES_DATA_DIR")
    for path in (Path(text), *([Path(folder, text)] if folder else [])):
        if path.is_file():
            return path
    where = f"nor in CES_DATA_DIR ({folder})" if folder else "and CES_DATA_DIR, where data may lie, is not set"
    raise typer.BadParameter(f"there is no file {text!r}, {where}", param_hint=option)


def _parts(option: str, text: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in parts:
        raise typer.BadParameter("an empty item in the list", param_hint=option)
    return parts
