"""The options that several commands have, and what people write behind them: lists, ranges and names, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ces_core.model.errors import ProblemError
from ces_core.model.generate import REGIMES as KNOWN_REGIMES
from ces_core.model.topologies import SHAPES, layout_of
from ces_core.registry import DEFAULT, available, lacking
from ces_experiments.common.command import Option

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


def one(option: str, text: str, known: Callable[[], Collection[str]]) -> str:
    """One of the names that are known when it is asked. Raises typer.BadParameter, naming the option."""
    return names(option, text, known(), most=1)[0]


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


def weights(option: str, text: str) -> tuple[float, ...]:
    """Of one part of an objective, each below 1, the least first."""
    found = amounts(option, text, least=1)
    if found[-1] >= 1:
        raise typer.BadParameter(f"{found[-1]:g} is not below 1", param_hint=option)
    return found


def network(topology: str, nodes: int | None) -> str:
    """The topology's name, once it is known to exist. Raises typer.BadParameter, naming the option."""
    try:
        layout_of(topology, nodes)
    except ProblemError as error:
        raise typer.BadParameter(error.message, param_hint=f"--{error.field}") from error
    return topology


def on_network(question: Callable[..., Any], usual: int) -> Callable[..., Any]:
    """Wraps ``question`` so that a shape gets ``usual`` nodes unless another number is asked for; a file has one."""

    def made(*, topology: str, nodes: int | None, **values: Any) -> Any:
        count = (nodes or usual) if topology in SHAPES else None
        return question(topology=network(topology, nodes), nodes=count, **values)

    return made


def proving(question: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps ``question`` so that it is told how many seconds a proof gets, if any."""
    return lambda *, exact, exact_limit, **values: question(proof_s=proof_s(exact, exact_limit), **values)


def number(option: str, value: float) -> float:
    """Refuses NaN, which passes every comparison with a bound. Raises typer.BadParameter, naming the option."""
    if math.isnan(value):
        raise typer.BadParameter("nan is no number", param_hint=option)
    return value


def data_file(option: str, text: str) -> Path:
    """A file as named, or under the folder that CES_DATA_DIR names. Raises typer.BadParameter, naming the option."""
    folder = os.environ.get("CES_DATA_DIR")
    for path in (Path(text), *([Path(folder, text)] if folder else [])):
        if path.is_file():
            return path
    where = f"nor in CES_DATA_DIR ({folder})" if folder else "and CES_DATA_DIR, where data may lie, is not set"
    raise typer.BadParameter(f"there is no file {text!r}, {where}", param_hint=option)


def at_least(least: float) -> dict[str, Any]:
    return {"min": least}


def between(least: float, most: float, **more: Any) -> dict[str, Any]:
    return {"min": least, "max": most, **more}


def _parts(option: str, text: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in parts:
        raise typer.BadParameter("an empty item in the list", param_hint=option)
    return parts


def _trace(flag: str, text: str | None) -> Path | None:
    return None if text is None else data_file(flag, text)


def compared(usual: Collection[str], told: str = "those of the page", help: str = "") -> Option:
    """Which solvers are compared, where some are usual."""
    more = {"show_default": told}
    text = help or "those compared, separated by commas"
    return Option("solvers", str | None, None, text, read=lambda flag, text: solvers_or(flag, text, usual), more=more)


def limits(flag: str, text: str) -> tuple[float, ...]:
    return amounts(flag, text, least=1)


REGIMES = Option(
    "regime", str, ",".join(KNOWN_REGIMES), "regimes, separated by commas",
    of="regimes", read=lambda flag, text: names(flag, text, KNOWN_REGIMES),
)  # fmt: skip
REGIME = Option("regime", str, "tight", "regime of the links", read=partial(one, known=lambda: KNOWN_REGIMES))
TASKS = Option(
    "tasks", str, "3-8", "tasks in a job: 3-8, or 3,5,8",
    read=lambda flag, text: whole_numbers(flag, text, 1, 100),
)  # fmt: skip
ROUNDS = Option("rounds", int, 30, "rounds for each regime and number of tasks", more=at_least(1))
SEED = Option("seed", int, 42, "same seed, same rounds", more=at_least(0))
NODES = Option(
    "nodes", int | None, None, "nodes of a shape; a file brings its own",
    more=between(1, 10_000, show_default=False),
)  # fmt: skip
DEGREE = Option(
    "degree", float | None, None, "wires per node of the random network, on average; as usual when left out",
    more=between(0.1, 10_000, show_default=False),
)  # fmt: skip
TOPOLOGY = Option("topology", str, "random", f"{', '.join(SHAPES)}, or a GraphML file, also in CES_DATA_DIR")
SOLVERS = Option(
    "solvers", str | None, None, "those compared, separated by commas; all but exact when left out",
    read=solvers, more={"show_default": False},
)  # fmt: skip
SOLVER = Option("solver", str, DEFAULT, "", read=partial(one, known=lambda: sorted(available())))
LIMIT = Option(
    "time_limit", float, 0.0, "seconds for a decision; 0: the solver's own bounds",
    of="time_limit_s", read=lambda flag, seconds: seconds or None, more=at_least(0),
)  # fmt: skip
LIMITS = Option("time_limits", str, "0.1", "seconds for a decision, separated by commas", of="limits", read=limits)
EXACT = Option(
    "exact", bool | None, None, "prove optima; where the exact solver is there when left out",
    flags=("--exact/--no-exact",),
)  # fmt: skip
EXACT_LIMIT = Option("exact_limit", float, 10.0, "seconds for the proof of a round", more=at_least(0.1))
LOADS = Option(
    "loads", str, "1", "CPU or memory asked for over time, by what is free; separated by commas", read=limits
)
JOBS = Option("jobs", int, 200, "jobs that arrive", more=between(10, 100_000))
DURATION = Option("duration", float, 600.0, "mean seconds that a job runs", of="duration_s", more=at_least(1))
REPEATS = Option("repeats", int, 5, "clusters and sequences of jobs", more=at_least(1))
TRACE = Option(
    "trace", str | None, None, "CSV file with arrivals, durations and tasks; also looked for in CES_DATA_DIR",
    read=_trace,
)  # fmt: skip
AS_TIMED = Option("as_timed", bool, False, "jobs arrive when the trace says, at no other load", flags=("--as-timed",))
OF_A_TRACE = "tasks in a job: {}, or 3,5,8; bounds those of a trace"
