"""What a policy for malleable jobs is asked and what it answers; it is a pure function from the one to the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ces_core.malleable.model import Pieces, Running


@dataclass(frozen=True)
class Moment:
    """``active``: all jobs that are not done, in the order of their arrival; ``arrived``: names of those that have come
    just now. ``capacity``: GPUs in the cloud. ``servers``: idle edge servers that are lent, each with the speed that is
    expected of it, by that of one GPU in the cloud. ``booked``: what of the capacity others have for a time."""

    now_s: float
    capacity: int
    active: Sequence[Running]
    arrived: frozenset[str] = frozenset()
    servers: Mapping[int, float] = field(default_factory=dict)
    booked: Pieces = ()

    @property
    def under_way(self) -> list[Running]:
        """Those that have come before."""
        return [each for each in self.active if each.name not in self.arrived]


@dataclass(frozen=True)
class Decision:
    """``sizes``: GPUs in the cloud by name, of 1 or more; ``servers``: who runs on which edge server instead; the
    others wait. ``refused``: names of jobs that never run, of those that have arrived. ``until_s``: ask again by then.
    ``promises``: what jobs will have if nothing happens; they come back with the next question. ``least``: of their
    sizes, what jobs need now to be on time; ``ends``: when each is done by its plan, and a refused one at the
    earliest; ``begins``: when those are to begin that wait, and at which size. A policy that does not plan leaves these
    empty."""

    sizes: Mapping[str, int]
    refused: frozenset[str] = frozenset()
    until_s: float = math.inf
    servers: Mapping[str, int] = field(default_factory=dict)
    promises: Mapping[str, Pieces] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, float] = field(default_factory=dict)
    begins: Mapping[str, tuple[float, int]] = field(default_factory=dict)


Policy = Callable[[Moment], Decision]
