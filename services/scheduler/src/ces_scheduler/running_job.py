"""A running job and its plan as ``ces adjust`` reads them from files: the cluster without what the job has. Pure.

An instance says all that the decision looks at, so a process of its own can make it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ces_common.jobfile import Task
from ces_common.messages.adjustments import AdjustmentQuery
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.adjustment.ledger import Ledger, PastMoves
from ces_core.model.instance import write_instance
from ces_core.model.other_tasks import with_tasks
from ces_core.model.parts import Task as CoreTask
from ces_core.model.problem import Problem
from ces_scheduler.application_goals import places_of
from ces_scheduler.job_problem import problem_of
from ces_scheduler.offer import Offer, holder_of

MOST_TASKS, MOST_FLOWS, MOST_NODES = 64, 256, 1000
"""Of a job, and of the cluster; nobody could wait for the decision on more."""
BY_HAND = "`ces move` moves a task that you name"
MOST_PAIRS = 30_000_000
"""Flows times the square of nodes: the decision's tables need 24 bytes of each, and its process has 2 GiB in all."""
FIXED = (
    "the service cannot move tasks of this job: when one ends, all begin again; submit it with restart: {scope: task} "
    "to have its tasks moved one by one"
)


def why_not(record: JobRecord | None, offer: Offer | None) -> str | None:
    """Why nothing is decided on the job; None where it may be. Whoever asks has looked at what is committed."""
    if record is None or offer is None or record.state is not JobState.RUNNING:
        return "the scheduler does not know yet that the job runs; try again"
    if record.moving is not None or record.resizing is not None:
        return "the job is being moved or resized; try again when that is over"
    ended = next((each.task for each in record.allocations if each.over), None)
    if ended is not None:
        return f"{ended} has ended, so no more requests go through the whole job"
    for what, count, most in (
        ("tasks", len(record.tasks), MOST_TASKS),
        ("flows", len(record.flows), MOST_FLOWS),
        ("nodes", len(offer.nodes), MOST_NODES),
    ):
        if count > most:
            return f"there are {count} {what}, and {most} at most are looked at; {BY_HAND}"
    flows, nodes = len(record.flows), len(offer.cluster.topology.nodes)
    if flows * nodes**2 > MOST_PAIRS:
        most = int((MOST_PAIRS / flows) ** 0.5)
        return (
            f"the job has {flows} flows: between {nodes} nodes, the tables for these do not fit into memory, and "
            f"{most} nodes are the most for so many; {BY_HAND}"
        )
    return None


def question_of(query: AdjustmentQuery, version: int, record: JobRecord, offer: Offer, paths: int | None) -> Any:
    """What decides: the instance with the terms, which paths flows may take, and the plan that runs. ``paths``: see
    :func:`problem_of`."""
    problem = running_problem(record, offer.without(holder_of(record)), paths)
    moved = {name: {"restart_s": seconds} for name, seconds in query.restarts.items() if _is_task(name, record)}
    terms = _terms(query) | {"most_moves": query.moves, "tasks": moved}
    return {
        "version": version,
        "instance": write_instance(problem) | {"adjust": terms},
        "paths": problem.paths,
        "path_metric": problem.path_metric,
        "plan": _plan(record, problem),
        "fixed": None if record.restart.scope == "task" else FIXED,
    }


def _terms(query: AdjustmentQuery) -> dict[str, Any]:
    """With what the moves of the last hour leave of the budget."""
    asked, ledger = query.terms, Ledger(tuple(PastMoves(-each.ago_s, each.requests, each.paid) for each in query.past))
    terms = {"remaining_s": asked.remaining_s, "least_gain": asked.least_gain, "reserve": asked.reserve}
    budget = {} if asked.budget is None else {"budget": ledger.left(0.0, asked.budget)}
    return terms | budget | {"cooling": ledger.cooling(0.0, asked.cooldown_s)}


def running_problem(record: JobRecord, free: Offer, paths: int | None) -> Problem:
    """``free``: the offer without what the job has. Tasks have the CPU that they hold. Each may stay where it is, but
    at a node that is to be left, and a user's task is to be at the user's access node. A task with cards goes nowhere
    else: which ones it would get there, nobody has chosen; at a node that is to be left, it may be nowhere."""
    held = {each.task: each.cpu for each in record.allocations}
    tasks = [task if held.get(task.name) is None else _with_cpu(task, held[task.name]) for task in record.tasks]
    problem = problem_of(record.model_copy(update={"tasks": tasks}), free, paths)
    places, access = {each.task: each.node for each in record.allocations}, places_of(record, free.nodes)
    astray = {task.name for task in tasks if task.user is not None and access.get(task.user) != places[task.name]}
    placed = (
        core if core.name in astray else _placed(core, task, places[task.name], free)
        for core, task in zip(problem.tasks, tasks, strict=True)
    )
    return with_tasks(problem, placed)


def _with_cpu(task: Task, cpu: int | None) -> Task:
    return task.model_copy(update={"cpu": cpu})


def _placed(core: CoreTask, task: Task, place: str, free: Offer) -> CoreTask:
    node = free.nodes.get(place)
    if node is None or node.state != "ready" or node.reclaimed:
        return replace(core, allowed=()) if task.gpus else core
    if task.gpus:
        return replace(core, allowed=(place,))
    if core.allowed is None or place in core.allowed:
        return core
    return replace(core, allowed=(*core.allowed, place))  # a cordon bars a node for new work only


def _is_task(name: str, record: JobRecord) -> bool:
    return any(task.name == name for task in record.tasks)


def _plan(record: JobRecord, problem: Problem) -> dict[str, Any]:
    """In the order of the problem."""
    has = {(flow.src, flow.dst): flow for flow in record.reserved}
    pairs: Sequence[tuple[str, str]] = [(flow.src, flow.dst) for flow in problem.flows]
    flows = [
        {"src": pair[0], "dst": pair[1], "bandwidth": has[pair].rate, "path": has[pair].path}
        for pair in pairs
        if pair in has
    ]
    return {"assignments": {each.task: each.node for each in record.allocations}, "flows": flows}
