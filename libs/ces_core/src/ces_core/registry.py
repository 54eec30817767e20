"""The solvers by name. Other packages add theirs through the entry-point group ``ces.solvers``.

Such an entry point names a :class:`~ces_core.solver.Solver` (an object, not a class).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, cast

from ces_core.baselines import BASELINES
from ces_core.exact.solver import EXACT
from ces_core.learned.policy_solvers import LEARNED, LOOKAHEAD
from ces_core.learned.start.solver import SEARCH_LEARNED
from ces_core.learned.thesis.solvers import THESIS_LEARNED
from ces_core.model.errors import BrokenSolverError, UnknownSolverError
from ces_core.search.greedy import GREEDY
from ces_core.search.longrun import SEARCH_LONGRUN
from ces_core.search.solver import SEARCH
from ces_core.solver import Solver

__all__ = ["DEFAULT", "SOLVERS", "Solver", "available", "get_solver", "lacking"]

DEFAULT = "default"
"""The name that stands for the solver the service uses."""

POLICY_SOLVERS = tuple(solver.name for solver in (*LEARNED, *THESIS_LEARNED))
"""Solvers that need a policy to answer at all."""
SOLVE_KEYWORDS = ("seed", "time_limit_s")
SOLVE_SIGNATURE = "solve(self, problem, *, seed=0, time_limit_s=None)"
REMEDY = "needs ONNX Runtime, which is not installed here: pip install 'ces-core[policy]'"


def own(*, runtime: bool) -> Mapping[str, Solver]:
    """The core's solvers, with or without ONNX Runtime. The default is the best one within milliseconds, as measured
    (docs/benchmarks/warm-start.md), and the same everywhere."""
    learned, thesis = (LEARNED, THESIS_LEARNED) if runtime else ((), ())
    found: tuple[Solver, ...] = (
        SEARCH,
        SEARCH_LONGRUN,
        EXACT,
        GREEDY,
        *learned,
        SEARCH_LEARNED,
        *thesis,
        *LOOKAHEAD,
        *BASELINES,
    )
    return MappingProxyType({DEFAULT: SEARCH_LEARNED} | {solver.name: solver for solver in found})


SOLVERS = own(runtime=find_spec("onnxruntime") is not None)
"""The solvers that come with the core."""


class Available(Mapping[str, Solver]):
    """Solvers by name. A solver of another package is loaded on first use, so a broken one affects no other; asking for
    it raises BrokenSolverError."""

    def __init__(self, own: Mapping[str, Solver], points: Iterable[EntryPoint]) -> None:
        self._own = own
        self._points = {point.name: point for point in reversed(tuple(points)) if point.name not in own}
        self._loaded: dict[str, Solver] = {}

    def __getitem__(self, name: str) -> Solver:
        if name in self._own:
            return self._own[name]
        point = self._points[name]
        if name not in self._loaded:
            self._loaded[name] = _load(point)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:  # without loading it
        return name in self._own or name in self._points

    def __iter__(self) -> Iterator[str]:
        yield from self._points
        yield from self._own

    def __len__(self) -> int:
        return len(self._points) + len(self._own)


def _load(point: EntryPoint) -> Solver:
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # whatever another package's import ends with
        raise BrokenSolverError(point.name, f"{type(error).__name__}: {error}") from error
    if isinstance(found, type):
        name = found.__name__
        instance = name.upper() if name.upper() != name else name.lower()
        raise BrokenSolverError(point.name, f"{point.value} names a class, write {instance} = {name}()")
    if not all(hasattr(found, each) for each in ("name", "summary", "solve")):
        raise BrokenSolverError(point.name, f"{point.value} is no solver: it needs name, summary and solve()")
    if lacking_parameters := _lacking_parameters(found.solve):
        lacks = " and ".join(f"the parameter {name}" for name in lacking_parameters)
        raise BrokenSolverError(point.name, f"solve() of {point.value} lacks {lacks}, write def {SOLVE_SIGNATURE}")
    return cast(Solver, found)


def _lacking_parameters(solve: Callable[..., Any]) -> list[str]:
    """The keywords that every caller passes and that ``solve`` takes neither by name nor by ``**``."""
    try:
        parameters = signature(solve).parameters.values()
    except (TypeError, ValueError):  # compiled code may tell no signature
        return []
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters):
        return []
    named = {each.name for each in parameters if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)}
    return [name for name in SOLVE_KEYWORDS if name not in named]


@cache
def available() -> Mapping[str, Solver]:
    """All solvers: the core's own and those of installed packages, which cannot replace the core's."""
    return Available(SOLVERS, entry_points(group="ces.solvers"))


def get_solver(name: str = DEFAULT) -> Solver:
    """The solver of this name. Raises UnknownSolverError, or BrokenSolverError if it cannot be loaded."""
    try:
        return available()[name]
    except KeyError:
        raise UnknownSolverError(name, sorted(available()), lacking(name)) from None


def lacking(name: str) -> str | None:
    """What a solver of the core is missing, and the remedy; None if nothing is missing or no solver has this name."""
    return REMEDY if name in POLICY_SOLVERS and name not in available() else None
