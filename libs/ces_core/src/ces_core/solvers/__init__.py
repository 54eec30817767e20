"""The solvers by name. Other packages add theirs through the entry-point group ``ces.solvers``.

Such an entry point names a :class:`~ces_core.solvers.base.Solver` (an object, not a class).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import MappingProxyType

from ces_core.errors import UnknownSolverError
from ces_core.solvers.base import Solver
from ces_core.solvers.baselines import BASELINES
from ces_core.solvers.ces_ppo import LEARNED
from ces_core.solvers.ces_ppo_search import CES_PPO_SEARCH
from ces_core.solvers.exact import EXACT
from ces_core.solvers.greedy import GREEDY
from ces_core.solvers.lookahead import LOOKAHEAD
from ces_core.solvers.search import SEARCH
from ces_core.solvers.search_longrun import SEARCH_LONGRUN
from ces_core.solvers.thesis_ppo import THESIS_LEARNED

__all__ = ["DEFAULT", "SOLVERS", "Solver", "available", "get_solver", "lacking"]

DEFAULT = "default"
"""The name that stands for the solver the service uses."""

ASKING = tuple(solver.name for solver in (*LEARNED, *THESIS_LEARNED))
"""Those that answer only by a policy."""
REMEDY = "needs ONNX Runtime, which is not installed here: pip install 'ces-core[policy]'"


def own(*, runtime: bool) -> Mapping[str, Solver]:
    """The core's solvers, with or without ONNX Runtime. The default is the best within milliseconds by measurement
    (docs/benchmarks/warm-start.md), and the same everywhere."""
    learned, thesis = (LEARNED, THESIS_LEARNED) if runtime else ((), ())
    found: tuple[Solver, ...] = (
        SEARCH,
        SEARCH_LONGRUN,
        EXACT,
        GREEDY,
        *learned,
        CES_PPO_SEARCH,
        *thesis,
        *LOOKAHEAD,
        *BASELINES,
    )
    return MappingProxyType({DEFAULT: CES_PPO_SEARCH} | {solver.name: solver for solver in found})


SOLVERS = own(runtime=find_spec("onnxruntime") is not None)
"""The solvers that come with the core."""


@cache
def available() -> Mapping[str, Solver]:
    """Every solver that can be asked for: the core's own and those of installed packages, which replace none."""
    others: dict[str, Solver] = {point.name: point.load() for point in entry_points(group="ces.solvers")}
    return MappingProxyType(others | dict(SOLVERS))


def get_solver(name: str = DEFAULT) -> Solver:
    """The solver of this name. Raises UnknownSolverError."""
    try:
        return available()[name]
    except KeyError:
        raise UnknownSolverError(name, sorted(available()), lacking(name)) from None


def lacking(name: str) -> str | None:
    """What a solver of the core lacks, with the remedy; None where it lacks nothing or none has this name."""
    return REMEDY if name in ASKING and name not in available() else None
