"""What would be changed of a running job, from the question that :mod:`ces_scheduler.running_job` writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ces_common.messages.adjustments import AdjustmentAnswer, AdjustmentProposal
from ces_core.adjustment.decision import adjust
from ces_core.adjustment.running import RunningPlan
from ces_core.adjustment.terms_format import read_terms
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan, PlannedFlow
from ces_core.model.problem import Problem
from ces_core.search.goals.domains import all_paths
from ces_scheduler.job_problem import quantity

WIDER = (8, 32)
"""Simple paths that are examined where a flow was led over one that jobs do not begin with."""


class Unknown(Exception):
    """A flow has a path that is not examined."""


def decided(question: Mapping[str, Any]) -> AdjustmentAnswer:
    """By the function that decides for files."""
    told = question["plan"]
    flows = (PlannedFlow(f["src"], f["dst"], f["bandwidth"], tuple(f["path"])) for f in told["flows"])
    plan = Plan(told["assignments"], tuple(flows))
    try:
        facts, terms = read_terms(question["instance"].get("adjust") or {})
        decision = adjust(_problem(question, plan), plan, facts, terms, format_quantity=quantity)
    except (Unknown, ProblemError) as error:
        return AdjustmentAnswer(refusal=str(error))
    proposal = decision.to_dict() | {"version": question["version"]}
    if decision.adjustment is not None and decision.adjustment.moves:
        proposal["remark"] = question["fixed"]
    return AdjustmentAnswer(proposal=AdjustmentProposal.model_validate(proposal))


def _problem(question: Mapping[str, Any], plan: Plan) -> Problem:
    """With as many paths as it takes to know those that flows have, as far as these are there. Raises ProblemError, and
    Unknown where no number that is examined is enough: whether such a path breaks a limit, nobody could say."""
    asked = question["paths"]
    unknown: list[PlannedFlow] = []
    for paths in (asked, *(each for each in WIDER if each > (asked or 0))):
        problem = read_instance(question["instance"], paths=paths, path_metric=question["path_metric"])
        running = RunningPlan.of(problem, plan, all_paths(problem))
        ends = problem.flow_ends(running.assignment)
        unknown = [
            flow
            for flow, path, way in zip(plan.flows, running.paths, ends, strict=True)
            if path is None and _there(problem, flow, way)
        ]
        if not unknown:
            return problem
    flow = unknown[0]
    raise Unknown(
        f"flow {flow.src} -> {flow.dst} is led over {' '.join(flow.path)}, which is not among the {WIDER[-1]} shortest "
        "paths there that are examined: nothing can be said of the job until it is led elsewhere or placed again"
    )


def _there(problem: Problem, flow: PlannedFlow, ends: tuple[int, int]) -> bool:
    """Whether its path leads over links of the cluster from where its source is now to where its target is."""
    topology = problem.cluster.topology
    nodes = [topology.node_index.get(name, -1) for name in flow.path]
    return (nodes[:1], nodes[-1:]) == ([ends[0]], [ends[1]]) and all(
        hop in topology.link_index for hop in pairwise(nodes)
    )
