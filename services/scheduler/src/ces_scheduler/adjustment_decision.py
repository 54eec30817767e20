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

WIDER = (8, 32)
"""Simple paths that are examined where a flow was led over one that jobs do not begin with."""


def decided(question: Mapping[str, Any]) -> AdjustmentAnswer:
    """By the function that decides for files."""
    told = question["plan"]
    flows = (PlannedFlow(f["src"], f["dst"], f["bandwidth"], tuple(f["path"])) for f in told["flows"])
    plan = Plan(told["assignments"], tuple(flows))
    try:
        facts, terms = read_terms(question["instance"].get("adjust") or {})
        decision = adjust(_problem(question, plan), plan, facts, terms)
    except ProblemError as error:
        return AdjustmentAnswer(refusal=str(error))
    proposal = decision.to_dict() | {"version": question["version"]}
    return AdjustmentAnswer(proposal=AdjustmentProposal.model_validate(proposal))


def _problem(question: Mapping[str, Any], plan: Plan) -> Problem:
    """With as many paths as it takes to know those that flows have, as far as these are there. Raises ProblemError."""
    asked = question["paths"]
    problem: Problem | None = None
    for paths in (asked, *(each for each in WIDER if each > (asked or 0))):
        problem = read_instance(question["instance"], paths=paths, path_metric=question["path_metric"])
        if RunningPlan.of(problem, plan, all_paths(problem)).known_paths is not None or not _there(problem, plan):
            return problem
    assert problem is not None
    return problem


def _there(problem: Problem, plan: Plan) -> bool:
    """Whether every path of the plan still leads over links of the cluster."""
    topology = problem.cluster.topology
    hops = (hop for flow in plan.flows for hop in pairwise(flow.path))
    ends = (tuple(topology.node_index.get(name, -1) for name in hop) for hop in hops)
    return all(hop in topology.link_index for hop in ends)
