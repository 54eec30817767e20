"""What a cycle has decided, as far as GPU cards bear it out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ces_core.model.reason import Reason
from ces_core.queue.state import Decisions, Refusal
from ces_core.queue.status import QueueStatus


def not_started(decisions: Decisions, dropped: Mapping[str, Reason], freed: int) -> Decisions:
    """The decisions without the starts of these jobs, which wait for the reasons given, ahead of the others, as they
    were to start. They are tried again by the next cycle where others have started, else once something is freed.
    ``freed``: the count of that."""
    if not dropped:
        return decisions
    starts = tuple(start for start in decisions.starts if start.job not in dropped)
    again = [start for start in decisions.starts if start.job in dropped]
    memory = decisions.memory
    if not starts:
        known = {name: Refusal(freed, reason) for name, reason in dropped.items()}
        memory = replace(memory, refusals=MappingProxyType({**memory.refusals, **known}))
    first = [
        QueueStatus(start.job, position, start.score, dropped[start.job], False, None, ())
        for position, start in enumerate(again, 1)
    ]
    return replace(
        decisions,
        starts=starts,
        memory=memory,
        refused=MappingProxyType({**decisions.refused, **dropped}),
        _explain=lambda: (
            *first,
            *(replace(each, position=each.position + len(first)) for each in decisions.queue),
        ),
    )
