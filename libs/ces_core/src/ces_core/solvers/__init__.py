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
from ces_core.solvers.search import SEARCH
from ces_core.solvers.search_longrun import SEARCH_LONGRUN
from ces_core.solvers.thesis_ppo import THESIS_LEARNED

__all__ = ["DEFAULT", "SOLVERS", "Solver", "available", "get_solver"]

DEFAULT = "default"
"""The name that stands for the solver the service uses."""

# They need the extra "policy".
_LEARNED: tuple[Solver, ...] = (*LEARNED, CES_PPO_SEARCH) if find_spec("onnxruntime") else ()
_THESIS: tuple[Solver, ...] = THESIS_LEARNED if _LEARNED else ()
_OWN: tuple[Solver, ...] = (SEARCH, SEARCH_LONGRUN, EXACT, GREEDY, *_LEARNED, *_THESIS, *BASELINES)
SOLVERS: Mapping[str, Solver] = MappingProxyType({DEFAULT: SEARCH} | {solver.name: solver for solver in _OWN})
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
        raise UnknownSolverError(name, sorted(available())) from None
