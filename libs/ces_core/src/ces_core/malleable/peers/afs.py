"""AFS-L: one size more at a time, to the winner of a tournament between who is short and who uses GPUs well.

Hwang et al., "Elastic Resource Sharing for Distributed Deep Learning", NSDI 2021.
"""

from __future__ import annotations

from ces_core.malleable.model import Running
from ces_core.malleable.policy import Decision, Moment


def afs(moment: Moment) -> Decision:
    """Sizes grow from 0 by the sizes that were measured, each with at most what is still free."""
    sizes = {each.name: 0 for each in moment.active}
    free = moment.capacity
    while True:
        able = [each for each in moment.active if _more(each, sizes) and _more(each, sizes) <= free]
        if not able:
            return Decision({name: size for name, size in sizes.items() if size})
        best = able[0]
        for other in able[1:]:
            best = _winner(best, other, sizes)
        free -= _more(best, sizes)
        sizes[best.name] += _more(best, sizes)


def _more(each: Running, sizes: dict[str, int]) -> int:
    """GPUs to the next size; 0 if there is none."""
    above = each.profile.above(sizes[each.name])
    return above - sizes[each.name] if above else 0


def _winner(one: Running, other: Running, sizes: dict[str, int]) -> Running:
    """Both without GPUs: who is done sooner with its smallest size. Else the longer one wins if it gains more for each
    GPU, by its speed then, than the shorter one does by its speed now."""
    held, others = sizes[one.name], sizes[other.name]
    if not held and not others:
        return min(one, other, key=lambda each: each.left / each.profile.rates[0])
    if not held or not others:
        return other if held else one
    short, long = sorted((one, other), key=lambda each: each.left / each.profile.rate(sizes[each.name]))
    short_gain, short_now, _ = _gain(short, sizes)
    long_gain, _, long_then = _gain(long, sizes)
    return long if long_gain / long_then > short_gain / short_now else short


def _gain(each: Running, sizes: dict[str, int]) -> tuple[float, float, float]:
    """Speed gained for each GPU, the speed now, and that at the next size (iterations/s)."""
    size = sizes[each.name]
    now, then = each.profile.rate(size), each.profile.rate(each.profile.above(size))
    return (then - now) / _more(each, sizes), now, then
