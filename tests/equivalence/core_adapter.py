"""Decisions of the core in neutral words: solvers, the checker, CES-Multi and rerouting. Speaks this tree's names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ces_core.bandwidth.reroute import Running, reoptimise
from ces_core.bandwidth.reroute import reroute as reroute_flows
from ces_core.checker import check
from ces_core.learned.policy import SHIPPED
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Flow, Task
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.queue.state import Decisions, State
from ces_core.registry import SOLVERS
from ces_core.solver import Solver, with_lookahead
from ces_sim.arrivals import TimedJob
from ces_sim.cluster import simulate
from ces_sim.queue_policy import Desk
from equivalence.record import digest

__all__ = ["check_plan", "decide_queue", "random_instance", "reroute", "solve", "solver_names", "timed_solver"]

RENAMED: Mapping[str, str] = json.loads(Path(__file__).with_name("renamed.json").read_text())
LOOKING_AHEAD, ASKING = "+foreseeing", "+policy"
"""Endings of names: the solver counts what it leaves for later jobs; it asks the shipped policy."""
DOUBLED = ("search" + LOOKING_AHEAD, "default" + LOOKING_AHEAD, "default" + ASKING)


def solver_names() -> list[str]:
    """All that can be asked for, with the variants that the service or the command line can ask for."""
    return [*SOLVERS, *DOUBLED]


def solver_of(recorded: str) -> Solver:
    """The solver that a record calls by this name. Raises KeyError."""
    name, _, ending = recorded.partition("+")
    if f"+{ending}" not in (LOOKING_AHEAD, ASKING):
        return SOLVERS[RENAMED.get(recorded, recorded)]
    solver: Any = SOLVERS[RENAMED.get(name, name)]
    return with_lookahead(solver) if f"+{ending}" == LOOKING_AHEAD else solver.using(SHIPPED)


def _problem(case: Mapping[str, Any]) -> Problem:
    return read_instance(case["instance"], basis=case["basis"], paths=case["paths"])


def solve(case: Mapping[str, Any], solver: str) -> dict[str, Any]:
    """A solver's answer without a time limit."""
    return _result(solver_of(solver).solve(_problem(case), seed=case["seed"]))


def timed_solver(case: Mapping[str, Any], solver: str) -> Any:
    """A function that decides the case, for measuring; reading the instance is not part of it."""
    problem, asked = _problem(case), solver_of(solver)
    return lambda: asked.solve(problem, seed=case["seed"])


def check_plan(case: Mapping[str, Any], plan: Mapping[str, Any]) -> int:
    """How many rules a plan in the format of ``ces solve`` breaks."""
    return len(check(case["instance"], plan, basis=case["basis"], paths=case["paths"]))


def plan_to_check(case: Mapping[str, Any], solver: str) -> dict[str, Any]:
    """A solver's answer in the format of ``ces solve``."""
    return solver_of(solver).solve(_problem(case), seed=case["seed"]).to_dict()


# Answers in neutral words.


def _result(result: Result) -> dict[str, Any]:
    considered = result.considered
    told: dict[str, Any] = {
        "feasible": result.feasible,
        "bound": result.bound,
        "refused": digest({task: considered.refused(task) for task in considered.tasks}),
    }
    if result.plan is not None and result.metrics is not None:
        told |= {"plan": _plan(result.plan), "metrics": result.metrics.to_dict()}
    if result.advice is not None:
        told["probabilities"] = dict(result.advice.probabilities)
    return told | {"reason": _reason(result.reason)}


def _plan(plan: Plan) -> dict[str, Any]:
    flows = [[flow.src, flow.dst, flow.bandwidth, list(flow.path)] for flow in plan.flows]
    return {"assignments": dict(plan.assignments), "flows": flows}


def _reason(reason: Reason | None) -> dict[str, Any] | None:
    if reason is None:
        return None
    names = ("code", "permanent", "proven", "resource", "needed", "available", "where", "task", "flow")
    return {name: getattr(reason, name) for name in names}


# CES-Multi, on the simulator of jobs that come and go.


@dataclass
class _Recording:
    """CES-Multi as a queue policy that notes what every cycle decided. ``suspendable``: jobs that are suspended rather
    than stopped for more urgent ones."""

    parameters: Parameters
    suspendable: frozenset[str]
    name: str = "recording"
    cycles: list[dict[str, Any]] = field(default_factory=list)

    def serve(self, desk: Desk) -> None:
        while self._cycle(desk):
            pass

    def _cycle(self, desk: Desk) -> bool:
        running = [replace(job, preemption="suspend" if job.name in self.suspendable else "stop")
                   for job in desk.running]  # fmt: skip
        state = State(desk.now, desk.ledger, desk.queue, running, desk.freed, desk.memory)
        decided = cycle(state, self.parameters, desk.solve, desk.solve_fragmentation_aware)
        self.cycles.append({"now": desk.now} | _decisions(decided))
        desk.memory = decided.memory
        jobs = {job.name: job for job in desk.waiting}
        for name, reason in decided.refused.items():
            desk.refuse(name, reason)
        for start in decided.starts:
            desk.start(jobs[start.job], start.plan)
        for preempted in decided.preempted.values():
            for name in preempted.names:
                desk.stop(name)
        return bool(decided.preempted) or (decided.more and not desk.running)


def decide_queue(case: Mapping[str, Any]) -> dict[str, Any]:
    """Each cycle of a queue, and what became of every job."""
    problem = read_instance(case["instance"])
    told = case["parameters"]
    parameters = Parameters(
        window=told["window"],
        starts=told["starts"],
        fit=told["weights"]["fit"],
        priority=told["weights"]["priority"],
        waiting=told["weights"]["waiting"],
        share=told["weights"]["share"],
        bound_s=told["bound_s"],
        overdue=told["overdue"],
        reservations=told["reservations"],
        crowded=told["crowded"],
        declined=told["declined"],
        patience_s=told["patience_s"],
        preemption=told["preemption"],
        tenants=tuple(Tenant(**tenant) for tenant in told["tenants"]),
    )
    jobs = [
        TimedJob(
            name=job["name"],
            arrival_s=job["arrival_s"],
            duration_s=job["duration_s"],
            tasks=tuple(Task(**task) for task in job["tasks"]),
            flows=tuple(Flow(**flow) for flow in job["flows"]),
            priority=job["priority"],
            tenant=job["tenant"],
            expected_s=job["expected_s"],
        )
        for job in case["jobs"]
    ]
    policy = _Recording(parameters, frozenset(case["suspendable"]))
    outcome = simulate(
        problem.cluster, jobs, solver_of(case["solver"]), policy, patience_s=case["patience_s"], seed=case["seed"]
    )
    fates = [
        [fate.job.name, fate.started_s, fate.ended_s, fate.left_s, fate.bandwidth_satisfaction, fate.load_imbalance,
         fate.stopped, fate.refusals, None if fate.plan is None else _plan(fate.plan)]
        for fate in outcome.fates
    ]  # fmt: skip
    moments = [
        [each.time_s, each.running, each.waiting, each.cpu, each.memory, each.bandwidth, each.composite]
        for each in outcome.moments
    ]
    return {"cycles": policy.cycles, "fates": fates, "moments": moments}


def _decisions(decided: Decisions) -> dict[str, Any]:
    return {
        "starts": [
            {"job": each.job, "position": each.position, "overdue": each.overdue, "reserved": each.reserved}
            | {"score": _score(each.score)}
            | _plan(each.plan)
            for each in decided.starts
        ],
        "reservations": [
            {"job": each.job, "start_s": each.start_s, "begin": list(each.begin), "waits_for": list(each.waits_for)}
            | {"preempted": None if each.preempted is None else _preempted(each.preempted)}
            | _plan(each.plan)
            for each in decided.memory.reservations
        ],
        "refused": {name: _reason(reason) for name, reason in decided.refused.items()},
        "remembered": {
            name: [each.freed, each.reservable, each.until_s, _reason(each.reason)]
            for name, each in decided.memory.refusals.items()
        },
        "unmoved": {
            name: [each.freed, list(each.victims), each.until_s] for name, each in decided.memory.unmoved.items()
        },
        "preempted": {name: _preempted(each) for name, each in decided.preempted.items()},
        "more": decided.more,
        "standings": [
            [each.job, each.position, _score(each.score), _reason(each.reason), each.reserved, each.start_s,
             list(each.held_by)]
            for each in decided.queue
        ],
    }  # fmt: skip


def _score(score: Any) -> list[Any]:
    return [score.fit, score.priority, score.waiting, score.share, score.scarce, score.total]


def _preempted(preempted: Any) -> dict[str, Any]:
    return {"suspended": list(preempted.suspended), "stopped": list(preempted.stopped)}


# Rerouting.


def reroute(case: Mapping[str, Any]) -> dict[str, Any]:
    """What changes for running flows, by their index: at once, and when room has appeared."""
    cluster = read_instance(case["instance"]).cluster
    flows = [Running(flow["low"], flow["high"], tuple(flow["path"]), flow["rate"]) for flow in case["flows"]]
    return {
        name: {str(i): [list(given.path), given.rate] for i, given in function(cluster, flows).items()}
        for name, function in (("reroute", reroute_flows), ("re-optimise", reoptimise))
    }
