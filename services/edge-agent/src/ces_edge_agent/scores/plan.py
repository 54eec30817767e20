"""What is measured, in which order and for how long. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ces_common.messages.scores import REPEATS, Kind

LIMIT_S: Final = 15.0
"""After which the measuring process is ended; what it has found by then counts."""
WARM_S: Final = 0.05
"""Work before the first window, in which a clock that had slowed down goes up again."""
PERIOD_S: Final = 0.1
"""Of a control group's quota, unless it was set otherwise."""
_SPARE_S: Final = 0.05  # of each run, for processes to begin and end
_BUDGET_S: Final = 12.5
_MOST_PERIODS: Final = 3
KINDS: Final[Sequence[Kind]] = ("integer", "float", "memory", "network", "disk", "matrix", "inference")
"""Those that every node can do come first: time may run out."""
ALONE: Final = frozenset({"disk", "network"})
"""Kinds of which the machine has one, whatever the number of its cores."""


@dataclass(frozen=True, slots=True)
class Cores:
    """CPUs of one type; ``name`` is empty where the machine has no other."""

    name: str
    cpus: Sequence[int]


@dataclass(frozen=True, slots=True)
class Run:
    """``cpu``: on which CPU alone; None where the kernel may choose."""

    kind: Kind
    threads: int
    cores: str = ""
    cpu: int | None = None


def runs_on(types: Sequence[Cores], kinds: Sequence[Kind] = KINDS) -> list[Run]:
    """One thread on each type of core, and as many threads as there are CPUs. ``kinds``: those that can be measured."""
    many = sum(len(each.cpus) for each in types)
    found = []
    for kind in kinds:
        if kind in ALONE:
            found.append(Run(kind, 1))
            continue
        if len(types) > 1:
            found += [Run(kind, 1, each.name, each.cpus[0]) for each in types]
        else:
            found.append(Run(kind, 1))
        if many > 1:
            found.append(Run(kind, many))
    return found


def window_s(runs: int) -> float:
    """The length of a repeat: as many whole periods, three at most, as fit into the time of ``runs`` runs and that of
    the disk. The longer it is, the less it matters that the kernel enforces a quota tick by tick."""
    left = _BUDGET_S / max(runs, 1) - WARM_S - _SPARE_S
    return PERIOD_S * min(max(int(left / REPEATS / PERIOD_S), 1), _MOST_PERIODS)


def lasts_s(window: float) -> float:
    """How long a run takes about."""
    return WARM_S + _SPARE_S + REPEATS * window
