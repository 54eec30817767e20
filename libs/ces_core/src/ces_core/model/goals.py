"""What a job wants beyond a place and bandwidth: deadlines, reliability, the weights of the objective, and which tasks
had better stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

from ces_core.model.bounds import amount, known, positive, probability
from ces_core.model.errors import ProblemError
from ces_core.model.parts import Flow, Task
from ces_core.model.profiles import check_task

MAX_CHAINS = 256
"""Chains of a job."""
MAX_STEPS = 256
"""Tasks, and flows, of a chain."""
ROUNDING = 1e-9
"""How far the sum of the weights may be from 1."""


@dataclass(frozen=True)
class Units:
    """What the amounts of a problem are in. ``core``: the CPU that is one core (1000 for millicores). ``mbit``: the
    bandwidth that is 1 Mbit/s (1e6 for bit/s)."""

    core: float = 1.0
    mbit: float = 1.0


UNITS = Units()
"""Cores and Mbit/s."""


@dataclass(frozen=True)
class Chain:
    """What a request passes through, one step after the other; its time is the sum over the steps.

    ``flows``: as (src, dst). ``fixed_ms``: what comes on top wherever the tasks are, such as the access of its user.
    ``deadline_ms``: None: the time is told and nothing more. ``hard``: a plan that misses the deadline is no plan;
    otherwise the time counts in the objective. Chains of the same name are branches of one request class: the longest
    counts.
    """

    name: str
    tasks: tuple[str, ...] = ()
    flows: tuple[tuple[str, str], ...] = ()
    fixed_ms: float = 0.0
    deadline_ms: float | None = None
    hard: bool = False


@dataclass(frozen=True)
class Held:
    """A task that has a node. ``cost``: what leaving it costs, in units of the objective; None: it stays."""

    task: str
    node: str
    cost: float | None = None


@dataclass(frozen=True)
class ObjectiveWeights:
    """Of balance (1 - L), bandwidth satisfaction D, time S_T and energy S_E; their sum is 1."""

    balance: float = 0.5
    bandwidth: float = 0.5
    time: float = 0.0
    energy: float = 0.0


@dataclass(frozen=True)
class Goals:
    """``least_reliability``: of all the nodes and links that a plan uses, together."""

    chains: tuple[Chain, ...] = ()
    least_reliability: float = 0.0
    weights: ObjectiveWeights = ObjectiveWeights()
    held: tuple[Held, ...] = ()


def check_units(units: Units) -> None:
    """Raises ProblemError for a unit that is none."""
    positive("job.units.core", units.core)
    positive("job.units.mbit", units.mbit)


def check_job(tasks: Sequence[Task], flows: Sequence[Flow], goals: Goals, nodes: Collection[str]) -> None:
    """Raises ProblemError, naming the field, for a job that no plan could be judged by. ``nodes``: the cluster's."""
    for i, task in enumerate(tasks):
        if task.profile is not None:
            check_task(f"job.tasks[{i}]", task.profile, task.cpu)
    for i, flow in enumerate(flows):
        _check_flow(f"job.flows[{i}]", flow, nodes)
    if goals != Goals():
        _check_goals(goals, [task.name for task in tasks], {(flow.src, flow.dst) for flow in flows}, nodes)


def _check_flow(where: str, flow: Flow, nodes: Collection[str]) -> None:
    amount(f"{where}.message", flow.message)
    if flow.sources is None:
        return
    for i, name in enumerate(flow.sources):
        known(f"{where}.sources[{i}]", "node", name, nodes)
    if len(set(flow.sources)) < len(flow.sources):
        raise ProblemError(f"{where}.sources", "names a node twice: leave one out")
    if flow.src not in {f"@{name}" for name in flow.sources}:
        raise ProblemError(f"{where}.sources", f"src must be one of them, as `@node`; it is {flow.src}")


def _check_goals(
    goals: Goals, tasks: Collection[str], flows: Collection[tuple[str, str]], nodes: Collection[str]
) -> None:
    if len(goals.chains) > MAX_CHAINS:
        raise ProblemError("job.chains", f"at most {MAX_CHAINS} chains, not {len(goals.chains)}")
    same: dict[str, Chain] = {}
    for i, chain in enumerate(goals.chains):
        where = f"job.chains[{i}]"
        _check_chain(where, chain, tasks, flows)
        first = same.setdefault(chain.name, chain)
        for field in ("deadline_ms", "hard"):
            if getattr(chain, field) != getattr(first, field):
                raise ProblemError(
                    f"{where}.{field}", f"chains of one name are branches of one request: write {getattr(first, field)}"
                )
    probability("job.least_reliability", goals.least_reliability)
    total = 0.0
    for each in fields(goals.weights):
        total += amount(f"job.objective.{each.name}", getattr(goals.weights, each.name))
    if abs(total - 1.0) > ROUNDING:
        raise ProblemError("job.objective", f"the weights must add up to 1, not to {total:g}")
    seen: set[str] = set()
    for i, held in enumerate(goals.held):
        where = f"job.held[{i}]"
        known(f"{where}.task", "task", held.task, tasks)
        known(f"{where}.node", "node", held.node, nodes)
        if held.task in seen:
            raise ProblemError(f"{where}.task", f"task {held.task!r} is held twice: leave one out")
        seen.add(held.task)
        if held.cost is not None:
            amount(f"{where}.cost", held.cost)


def _check_chain(where: str, chain: Chain, tasks: Collection[str], flows: Collection[tuple[str, str]]) -> None:
    if not chain.name:
        raise ProblemError(f"{where}.name", "must be a name, not ''")
    if not chain.tasks and not chain.flows:
        raise ProblemError(where, "passes through nothing: name its tasks or flows")
    if max(len(chain.tasks), len(chain.flows)) > MAX_STEPS:
        raise ProblemError(where, f"at most {MAX_STEPS} tasks and as many flows")
    for j, task in enumerate(chain.tasks):
        known(f"{where}.tasks[{j}]", "task", task, tasks)
    for j, flow in enumerate(chain.flows):
        if flow not in flows:
            raise ProblemError(f"{where}.flows[{j}]", f"no flow leads from {flow[0]!r} to {flow[1]!r}")
    amount(f"{where}.fixed_ms", chain.fixed_ms)
    if chain.deadline_ms is not None:
        positive(f"{where}.deadline_ms", chain.deadline_ms)
    elif chain.hard:
        raise ProblemError(f"{where}.hard", "needs a deadline: add deadline_ms, or leave it out")
