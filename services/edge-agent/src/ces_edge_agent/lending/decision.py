"""When a device is lent and when its owner has it. Pure: what was seen goes in, how things stand comes out.

A reclaim is quick and a loan is slow: each reclaim doubles the time for which the owner must be quiet, up to a bound,
and a long calm halves it again. So a device flaps no faster than its quiet time. A command wins at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

Command = Literal["reclaim", "lend"]
CALM: Final = 10.0
"""A loan that has lasted for this many times the quiet time halves the quiet time."""
LONGEST_GRACE_S: Final = 10.0
"""From a reclaim until every worker is killed, however long it would have to end otherwise."""
GAP_S: Final = 2.0
"""After a longer gap between two looks (the machine slept, say) nobody knows whether its owner was quiet."""
BY_COMMAND: Final = "by its owner's command"
BY_LOAD: Final = "its owner's programs need its CPU"
BY_STALLS: Final = "its owner's programs wait for a CPU"
BY_MEMORY: Final = "its memory runs short"
NOT_QUIET: Final = "its owner has not been quiet for long enough"


@dataclass(frozen=True, slots=True)
class Rules:
    """``lend_below``, ``reclaim_at``: shares of the whole CPU, 0 to 1, that others use. ``stalled_at``: the share of
    the time in which some of the owner's programs wait for a CPU. Times in seconds."""

    quiet_s: float = 60.0
    longest_quiet_s: float = 3600.0
    lend_below: float = 0.2
    reclaim_at: float = 0.5
    stalled_at: float = 0.25
    busy_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen from ``since`` until ``at`` (seconds of a steady clock): the share of the whole CPU that others
    used, 0 to 1, whether memory is short, and the share of the time in which some of the owner's programs waited for a
    CPU, where that is known."""

    since: float
    at: float
    others: float
    short_of_memory: bool = False
    stalled: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """``quiet_s``: for how long the owner must be quiet before the next loan. ``calm_since``: from when a loan counts
    as calm. ``why``: it is not lent."""

    lent: bool
    quiet_s: float
    commanded: bool = False
    quiet_since: float | None = None
    busy_since: float | None = None
    calm_since: float = 0.0
    why: str = NOT_QUIET


def looked(standing: Standing, rules: Rules, look: Look) -> Standing:
    """How things stand after a look. Looks come in the order of their times."""
    if standing.lent:
        return _while_lent(standing, rules, look)
    if standing.commanded:
        return standing
    if look.short_of_memory or look.others >= rules.lend_below or look.at - look.since > GAP_S:
        return replace(standing, quiet_since=None)
    quiet_since = look.at if standing.quiet_since is None else standing.quiet_since
    if look.at - quiet_since >= standing.quiet_s:
        return Standing(lent=True, quiet_s=standing.quiet_s, calm_since=look.at)
    return replace(standing, quiet_since=quiet_since)


def commanded(standing: Standing, command: Command, now: float) -> Standing:
    """What the owner says holds at once: ``reclaim`` until it is taken back, ``lend`` until the next reclaim."""
    if command == "lend":
        if standing.lent:
            return standing
        return Standing(lent=True, quiet_s=standing.quiet_s, calm_since=now)
    if standing.commanded:
        return standing
    return Standing(lent=False, quiet_s=standing.quiet_s, commanded=True, why=BY_COMMAND)


def _while_lent(standing: Standing, rules: Rules, look: Look) -> Standing:
    if look.short_of_memory:
        return _reclaimed(standing, rules, BY_MEMORY)
    busy = look.others >= rules.reclaim_at
    if busy or look.stalled >= rules.stalled_at:
        busy_since = look.since if standing.busy_since is None else standing.busy_since
        if look.at - busy_since >= rules.busy_s:
            return _reclaimed(standing, rules, BY_LOAD if busy else BY_STALLS)
        return replace(standing, busy_since=busy_since)
    quiet_s, calm_since = standing.quiet_s, standing.calm_since
    if look.at - calm_since >= CALM * quiet_s:
        quiet_s, calm_since = max(quiet_s / 2, rules.quiet_s), look.at
    return replace(standing, busy_since=None, quiet_s=quiet_s, calm_since=calm_since)


def _reclaimed(standing: Standing, rules: Rules, why: str) -> Standing:
    longer = max(min(standing.quiet_s * 2, rules.longest_quiet_s), rules.quiet_s)
    return Standing(lent=False, quiet_s=longer, why=why)
