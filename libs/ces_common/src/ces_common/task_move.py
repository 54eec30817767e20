"""The move of one task of a running job to another node, as a table of states. Pure. The manager goes by it
(``ces_manager.jobs.task_moves``), as yet by the lines of tasks with state alone: docs/running-applications.md.

A state says what is wanted (:data:`WANTS`), not what to do next: whoever reads it after a crash wants the same. A fact
that a state does not wait for changes nothing, so facts may be repeated or come late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MoveKind(StrEnum):
    STATELESS = "stateless"  # made before broken: for a while both copies answer
    STATEFUL = "stateful"  # stopped, carried over, started: never two copies


class MoveState(StrEnum):
    RESERVED = "reserved"  # committed: both nodes are held; the destination's network is being laid
    BESIDE = "beside"  # stateless: the new copy starts while the old one answers
    SWITCHING = "switching"  # stateless: both run; flows are being led to the new one
    WITHDRAWING = (
        "withdrawing"  # stateless: the new copy failed; what may run of it is told to end, the old one answers
    )
    LEAVING = "leaving"  # stateless: the new one answers, the old one is told to end
    STOPPING = "stopping"  # stateful: the old copy writes its state and ends
    CARRYING = "carrying"  # stateful: the old one is surely gone; its state travels over the reserved flow
    STARTING = "starting"  # stateful: the state is there, the new copy starts
    CLEARING = "clearing"  # stateful: the destination failed; what may run there is told to end
    RETURNING = "returning"  # stateful: the old node starts the task again, from the state that it still has
    DONE = "done"  # the task runs at the destination
    KEPT = "kept"  # the task runs where it was, or its node looks after it there
    FAILED = "failed"  # it runs nowhere: the job is placed anew


class MoveFact(StrEnum):
    NETWORK_READY = "network-ready"  # network-ctl: the destination's part, and the flow that carries state, are laid
    NEW_RUNS = "new-runs"  # the destination's agent
    NEW_FAILED = "new-failed"  # it could not be started, or ended; also: too late, or its node is lost
    NEW_GONE = "new-gone"  # confirmed, or its lease has run out
    SWITCHED = "switched"  # network-ctl: flows lead to the new copy
    OLD_GONE = "old-gone"  # confirmed, or its lease has run out
    OLD_RUNS = "old-runs"  # the source's agent
    OLD_FAILED = "old-failed"  # it could not be started again; also: too late, or its node is lost
    CARRIED = "carried"  # the destination's agent: the state is there, with the digest that the source told
    CARRY_FAILED = "carry-failed"  # it cannot be had; also: too late


@dataclass(frozen=True)
class Wants:
    """``old`` and ``new``: whether the copy there is to run. ``carries``: whether state is to travel. ``flows_to_new``:
    where flows lead. ``source`` and ``destination``: whether the move holds capacity
    there; once it is over, the allocations hold theirs until they are gone, as ever."""

    old: bool = False
    new: bool = False
    carries: bool = False
    flows_to_new: bool = False
    source: bool = True
    destination: bool = True


K, S, F = MoveKind, MoveState, MoveFact
OVER = frozenset({S.DONE, S.KEPT, S.FAILED})
WANTS: dict[MoveState, Wants] = {
    S.RESERVED: Wants(old=True),
    S.BESIDE: Wants(old=True, new=True),
    S.SWITCHING: Wants(old=True, new=True, flows_to_new=True),
    S.WITHDRAWING: Wants(old=True),
    S.LEAVING: Wants(new=True, flows_to_new=True),
    S.STOPPING: Wants(),
    S.CARRYING: Wants(carries=True),
    S.STARTING: Wants(new=True, flows_to_new=True),
    S.CLEARING: Wants(),
    S.RETURNING: Wants(old=True, destination=False),
    S.DONE: Wants(new=True, flows_to_new=True, source=False),
    S.KEPT: Wants(old=True, destination=False),
    S.FAILED: Wants(source=False, destination=False),
}
STEPS: dict[MoveKind, dict[MoveState, dict[MoveFact, MoveState]]] = {
    K.STATELESS: {
        S.RESERVED: {F.NETWORK_READY: S.BESIDE, F.NEW_FAILED: S.KEPT, F.OLD_FAILED: S.KEPT},
        S.BESIDE: {F.NEW_RUNS: S.SWITCHING, F.NEW_FAILED: S.WITHDRAWING},
        S.SWITCHING: {F.SWITCHED: S.LEAVING, F.NEW_FAILED: S.WITHDRAWING},
        S.WITHDRAWING: {F.NEW_GONE: S.KEPT},
        S.LEAVING: {F.OLD_GONE: S.DONE, F.NEW_FAILED: S.FAILED},
    },
    K.STATEFUL: {
        S.RESERVED: {F.NETWORK_READY: S.STOPPING, F.NEW_FAILED: S.KEPT, F.OLD_FAILED: S.KEPT},
        S.STOPPING: {F.OLD_GONE: S.CARRYING},
        S.CARRYING: {F.CARRIED: S.STARTING, F.CARRY_FAILED: S.RETURNING, F.NEW_FAILED: S.RETURNING},
        S.STARTING: {F.NEW_RUNS: S.DONE, F.NEW_FAILED: S.CLEARING},
        S.CLEARING: {F.NEW_GONE: S.RETURNING},
        S.RETURNING: {F.OLD_RUNS: S.KEPT, F.OLD_FAILED: S.FAILED},
    },
}


def after(kind: MoveKind, state: MoveState, fact: MoveFact) -> MoveState:
    """The state once the fact is known; the same one where it does not wait for that."""
    return STEPS[kind].get(state, {}).get(fact, state)
