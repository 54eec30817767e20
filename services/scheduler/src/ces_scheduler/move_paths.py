"""Paths and rates for the flows of a task that is to move to a node that somebody has named. Pure but for the answer to
the question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ces_common.bus.port import Message, RequestHandler
from ces_common.messages.moves import MoveAnswer, MoveQuery
from ces_common.state_reader import StateReader
from ces_core.bandwidth.composite import complete
from ces_core.model.errors import ProblemError
from ces_core.model.parts import Flow as CoreFlow
from ces_core.model.parts import Task as CoreTask
from ces_core.model.plan import Plan
from ces_core.model.problem import Problem
from ces_scheduler.job_problem import flow_plans
from ces_scheduler.offer import Offer

SIMPLE = 8  # simple paths that are tried where those of the fewest hops carry too little


def paths_of_move(query: MoveQuery, version: int, offer: Offer | None) -> MoveAnswer:
    """Beside all that is held: the task's flows keep what they have until it runs there."""
    record = None if offer is None else offer.records.get(query.job)
    if record is None or offer is None:
        return MoveAnswer(version=version, reason="the scheduler does not know yet that the job runs; try again")
    places = {each.task: each.node for each in record.allocations} | {query.task: query.node}
    flows = [flow for flow in record.flows if query.task in (flow.src, flow.dst)]
    index = offer.cluster.topology.node_index
    names = sorted({end for flow in flows for end in (flow.src, flow.dst) if end in places})
    away = next((places[name] for name in names if places[name] not in index), None)
    if away is not None:
        return MoveAnswer(version=version, reason=f"node {away} is not there")
    tasks = [CoreTask(name, 0, 0, 0) for name in names]
    assignment = [index[places[name]] for name in names]
    for paths in (None, SIMPLE):
        try:
            core = [CoreFlow(flow.src, flow.dst, flow.min, flow.max) for flow in flows]
            problem = Problem.make(offer.cluster, tasks, core, name=record.name, paths=paths)
        except ProblemError as error:
            return MoveAnswer(version=version, reason=str(error))
        found = complete(problem, assignment)
        if found is not None:
            plan = Plan.of(problem, assignment, found.paths, found.bandwidth)
            return MoveAnswer(version=version, flows=flow_plans(plan, flows))
    return MoveAnswer(version=version, reason="no paths have room for its flows beside what they have now")


def moving(reader: StateReader, offer: Callable[[], Offer | None]) -> RequestHandler:
    """Answers a MoveQuery."""

    async def answer(message: Message) -> bytes:
        query = MoveQuery.model_validate_json(message.data)
        await reader.refresh()
        version, present = reader.view.version, offer()
        return (await asyncio.to_thread(paths_of_move, query, version, present)).encode()

    return answer
