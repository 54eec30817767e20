"""Which tasks of a job go to which region, where no region has room for all of it: the job on a cluster whose nodes are
regions and whose links are their border links, by the solver that places jobs on nodes."""

from __future__ import annotations

import asyncio

from ces_common.bus.port import Message, RequestHandler
from ces_common.jobfile import JobFile, Task
from ces_common.messages.plans import FlowPlan
from ces_common.messages.split_queries import RegionRoom, SplitAnswer, SplitQuery
from ces_core.model.errors import PolicyError, ProblemError
from ces_core.model.parts import Flow as CoreFlow
from ces_core.model.parts import Link, Node
from ces_core.model.parts import Task as CoreTask
from ces_core.model.problem import Cluster, Problem
from ces_core.solver import Solver
from ces_scheduler.cycle_run import Placing
from ces_scheduler.solver_choice import STAND_IN


def split(query: SplitQuery, solver: Solver, time_limit_s: float | None = None) -> SplitAnswer:
    """Over which regions, and what each flow between them gets. Whether a region has a place for its part, its own
    scheduler says."""
    refusal = why_whole(query.job)
    if refusal is not None:
        return SplitAnswer(refusal=refusal)
    try:
        problem = problem_of(query)
    except ProblemError as error:
        return SplitAnswer(refusal=f"the job cannot be split: {error}")
    try:
        result = solver.solve(problem, seed=0, time_limit_s=time_limit_s)
    except PolicyError:
        result = STAND_IN.solve(problem, seed=0, time_limit_s=time_limit_s)
    if result.plan is None:
        return SplitAnswer(refusal="no split of it fits" if result.reason is None else result.reason.text())
    if len(set(result.plan.assignments.values())) < len(query.regions):
        return SplitAnswer(refusal="one region has room for all of it, by its sums")
    least = {(flow.src, flow.dst): flow.min for flow in query.job.expand_flows()}
    flows = [
        FlowPlan(src=f.src, dst=f.dst, rate=max(int(f.bandwidth), least[f.src, f.dst]), path=list(f.path))
        for f in result.plan.flows
    ]
    composite = 0.0 if result.metrics is None else result.metrics.composite
    return SplitAnswer(regions=dict(result.plan.assignments), flows=flows, composite=composite)


def splitting(placing: Placing) -> RequestHandler:
    """Answers a SplitQuery."""

    async def answer(message: Message) -> bytes:
        query = SplitQuery.model_validate_json(message.data)
        return (await asyncio.to_thread(split, query, placing.solver, placing.time_limit_s)).encode()

    return answer


def why_whole(job: JobFile) -> str | None:
    """Why a job is never split; None where it may be."""
    if job.elastic is not None:
        return "a malleable job is not split: its sizes are one region's"
    if any(task.gpu_share for task in job.expand_tasks()):
        return "a job with shares of GPUs is not split: sums do not tell whether a share fits"
    return None


def problem_of(query: SplitQuery) -> Problem:
    """Raises ProblemError."""
    tasks = query.job.expand_tasks()
    nodes = [Node(each.name, each.free.cpu, each.free.memory, each.free.gpu) for each in query.regions]
    links = [Link(each.src, each.dst, each.free) for each in query.borders if each.free]
    return Problem.make(
        Cluster.make(nodes, links),
        [CoreTask(task.name, task.cpu, task.memory, task.gpu, _allowed(task, query.regions)) for task in tasks],
        [CoreFlow(flow.src, flow.dst, flow.min, flow.max) for flow in query.job.expand_flows()],
        name=query.job.name,
    )


def _allowed(task: Task, regions: list[RegionRoom]) -> tuple[str, ...]:
    """Regions of which some node may have room for the task."""
    return tuple(
        each.name
        for each in regions
        if each.largest.cpu >= task.cpu and each.largest.memory >= task.memory and each.largest.gpu >= task.gpu
    )
