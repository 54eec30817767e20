"""What a queue policy decides, as far as GPU cards bear it out. The policy counts GPUs node by node, and does not know
cards. Pure.

Nobody makes room for a job that asks for shares of cards or for models: whether what would come free is on one card, or
on the right one, does not show in sums, and others would be stopped for nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from ces_core.model.reason import Reason
from ces_core.queue.jobs import whose
from ces_core.queue.preemption import names_of, victims_of
from ces_core.queue.state import Decisions, Refusal, State, Unmoved
from ces_core.queue.status import QueueStatus

TRIES = 3
UNKNOWN = Reason("packing", proven=False)


def decided(
    decide: Callable[[State], Decisions], state: State, margin: int | None, particular: Collection[str]
) -> tuple[State, Decisions]:
    """The decisions, with nobody preempted for the ``particular`` jobs, and the state that they were made from: where
    the policy wants somebody to be, it is asked again, told that it would not help. ``margin``: by how much preempting
    jobs are more urgent; None: nobody is preempted."""
    decisions = decide(state)
    for _ in range(TRIES):
        wrong = _preempting(decisions) & set(particular)
        if margin is None or not wrong:
            return state, decisions
        state = _told(state, decisions, margin, wrong)
        decisions = decide(state)
    return state, _without(decisions, _preempting(decisions) & set(particular))


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


def _preempting(decisions: Decisions) -> set[str]:
    """The jobs for which somebody makes room, or has."""
    kept = {each.job for each in decisions.memory.reservations if each.preempted is not None}
    return kept | decisions.preempted.keys()


def _told(state: State, decisions: Decisions, margin: int, wrong: Collection[str]) -> State:
    """The state in which it is known of these jobs that nobody can make way for them."""
    gone = {name for job, each in decisions.preempted.items() if job not in wrong for name in each.names}
    running = [each for each in state.running if each.name not in gone and whose(each.name) not in gone]
    known = {
        job.name: Unmoved(state.freed, names_of(victims_of(job, running, margin)))
        for job in state.waiting
        if job.name in wrong
    }
    memory = state.memory
    kept = tuple(each for each in memory.reservations if each.job not in wrong or each.preempted is None)
    unmoved = MappingProxyType({**memory.unmoved, **known})
    return replace(state, memory=replace(memory, reservations=kept, unmoved=unmoved))


def _without(decisions: Decisions, wrong: Collection[str]) -> Decisions:
    """The decisions with nobody preempted for these jobs; room is kept for them until the next cycle begins."""
    if not wrong:
        return decisions
    memory = decisions.memory
    refusals = {name: memory.refusals[name].reason if name in memory.refusals else UNKNOWN for name in wrong}

    def explained() -> tuple[QueueStatus, ...]:
        return tuple(
            replace(each, reason=refusals[each.job], reserved=False, start_s=None, held_by=())
            if each.job in wrong
            else each
            for each in decisions.queue
        )

    return replace(
        decisions,
        memory=replace(memory, reservations=tuple(each for each in memory.reservations if each.job not in wrong)),
        preempted=MappingProxyType({job: each for job, each in decisions.preempted.items() if job not in wrong}),
        _explain=explained,
    )
