"""What any policy must beat: every job at its smallest size, or at a random one, in the order of arrival."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ces_core.malleable.policy import Decision, Moment


def smallest(moment: Moment) -> Decision:
    """Min: every job at its smallest size from when that is free until its end."""
    sizes, free = _kept(moment)
    for each in moment.active:
        if each.name not in sizes and (size := each.profile.fitting(min(free, each.profile.sizes[0]))):
            sizes[each.name] = size
            free -= size
    return Decision(sizes)


@dataclass(frozen=True)
class RandomSize:
    """Every job at a size drawn from those that are free when it starts, until its end."""

    seed: int = 0

    def __call__(self, moment: Moment) -> Decision:
        sizes, free = _kept(moment)
        for each in moment.active:
            fitting = [size for size in each.profile.sizes if size <= free]
            if each.name not in sizes and fitting:
                draw = random.Random(f"{self.seed} {each.name} {moment.now_s}")
                sizes[each.name] = draw.choice(fitting)
                free -= sizes[each.name]
        return Decision(sizes)


def _kept(moment: Moment) -> tuple[dict[str, int], int]:
    """Who runs goes on, if the cluster still holds it, in the order of arrival; and what is free beside them."""
    sizes, free = {}, moment.capacity
    for each in moment.active:
        if 0 < each.size <= free:
            sizes[each.name] = each.size
            free -= each.size
    return sizes, free
