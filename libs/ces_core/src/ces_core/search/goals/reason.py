"""Why the search found no place for a job with goals: what is proven by a cheap bound, else what it came to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ces_core.model.path import Path
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.model.service import ROUNDING, RequestTime, Service
from ces_core.search.goals.domains import domains, narrowed
from ces_core.search.goals.least_time import LeastTime

OTHERS = ", if the other goals are met"


def unreachable_goal(problem: Problem, service: Service) -> Reason | None:
    """A goal that no plan reaches, proven: a hard deadline below the least time of a chain, or a reliability above that
    of the nodes and links that are needed whatever the plan. None where that does not show."""
    domain = narrowed(problem).homes
    if not domain.any(axis=1).all():
        return None
    found = _too_late(problem, service)
    if found is not None:
        ever = problem.on_empty_cluster()
        permanent = _too_late(ever, Service(ever), found.name) is not None
        return _late(found, permanent=permanent, proven=True)
    works, least = most_reliable(problem, service), service.goals.least_reliability
    if works < least * (1 - ROUNDING):
        ever = problem.on_empty_cluster()
        permanent = most_reliable(ever, Service(ever)) < least * (1 - ROUNDING)
        return Reason("reliability", permanent=permanent, needed=least, available=works)
    return None


def broken_goal(
    service: Service, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]
) -> Reason | None:
    """The goal that the best plan found breaks; that none keeps it is not proven. Where there are other goals, it may
    be broken for their sake."""
    hard = {chain.name for chain in service.goals.chains if chain.hard}
    works, least = service.reliability(assignment, paths), service.goals.least_reliability
    late = [each for each in service.requests(assignment, paths, bandwidth) if each.hard and each.missing_ms]
    if late:
        latest = max(late, key=lambda each: each.missing_ms / (each.deadline_ms or 1.0))
        return _late(latest, alone=len(hard) == 1 and least == 0, proven=False)
    if works < least * (1 - ROUNDING):
        together = Reason("goals-together", proven=False)
        return together if hard else Reason("reliability", proven=False, needed=least, available=works)
    return None


def no_place(problem: Problem) -> Reason:
    """That tasks and flows do not fit together; proven where a task, or a group, fits nowhere."""
    return Reason("placed-together", proven=not narrowed(problem).homes.any(axis=1).all())


def most_reliable(problem: Problem, service: Service) -> float:
    """An upper bound on the reliability of any plan: the nodes that all flows' fixed ends are on, the best node of the
    task that has the worst one, and that task's alone, since tasks may share nodes."""
    fixed = {-1 - int(end) for end in problem.flow_dst if end < 0}
    for flow, src in zip(problem.flows, problem.flow_src.tolist(), strict=True):
        if src < 0 and (flow.sources is None or len(flow.sources) == 1):
            fixed.add(-1 - src)
    reliability = service.profile.node_reliability.copy()
    works = math.prod(float(reliability[n]) for n in fixed)
    reliability[sorted(fixed)] = 1.0  # they count already
    best = [float(reliability[row].max(initial=0.0)) for row in domains(problem)]
    return works * min(best)


def _too_late(problem: Problem, service: Service, only: str | None = None) -> RequestTime | None:
    """The first request class, by name, that is too late even at the least time of one of its chains."""
    least = LeastTime(problem, service, narrowed(problem).homes)
    late: dict[str, RequestTime] = {}
    for c, chain in enumerate(service.goals.chains):
        if not chain.hard or only not in (None, chain.name):
            continue
        found = least.of(c)
        if found is None or not found[1] or not math.isfinite(found[0]):
            continue
        request = RequestTime(chain.name, found[0], chain.deadline_ms, hard=True, steps=found[1])
        if request.missing_ms and (chain.name not in late or found[0] > late[chain.name].time_ms):
            late[chain.name] = request
    return late[min(late)] if late else None


def _late(request: RequestTime, *, permanent: bool = False, proven: bool, alone: bool = True) -> Reason:
    return Reason(
        "deadline",
        permanent=permanent,
        proven=proven,
        resource="ms",
        needed=request.time_ms,
        available=request.deadline_ms,
        where=request.text() + ("" if alone else OTHERS),
    )
