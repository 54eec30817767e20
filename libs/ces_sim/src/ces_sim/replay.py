"""A recorded run, decided again by the code that simulations run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ces_core.model.plan import Result
from ces_core.model.problem import Cluster
from ces_core.queue.cycle import cycle
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.record import preempted_line, read_record, start_line
from ces_core.queue.state import Memory
from ces_core.solver import Solver, with_lookahead
from ces_sim.decision import decide


@dataclass(frozen=True)
class Replayed:
    """One cycle: what was started then, and what is now; job and plan, in the order of the decisions. ``made_room``:
    who was to make room for whom, then and now."""

    now_s: float
    recorded: Sequence[Mapping[str, Any]]
    replayed: Sequence[Mapping[str, Any]]
    made_room: tuple[Mapping[str, Any], Mapping[str, Any]]


def replay(record: Path, solver: Solver, *, time_limit_s: float | None = None) -> Iterator[Replayed]:
    """Every cycle of a record (:mod:`ces_core.queue.record`), each on the state that it had and the memory that
    this run has of the one before. The decisions are the same where the solver answers the same whenever it is asked:
    one that stops at a time limit need not. They may also differ where owners of nodes were expected, or GPU cards
    were counted one by one: a record does not say which nodes were left alone for owners, nor what was on which card.

    Raises OSError, and ValueError or KeyError where it is no record; BadDecisionError where a plan breaks a rule.
    """
    memory, fragmentation_aware = Memory(), with_lookahead(solver)
    for told in read_record(record):

        def answers(
            asked: Solver, job: WaitingJob, cluster: Cluster, *, seeds: Mapping[str, int] = told.seeds
        ) -> Result:
            return decide(asked, job.on(cluster), seed=seeds[job.name], time_limit_s=time_limit_s).result

        state = told.with_memory(memory)
        decided = cycle(state, told.parameters, partial(answers, solver), partial(answers, fragmentation_aware))
        memory = decided.memory
        made_room = told.preempted, preempted_line(decided.preempted)
        yield Replayed(state.now_s, told.starts, [start_line(start) for start in decided.starts], made_room)
