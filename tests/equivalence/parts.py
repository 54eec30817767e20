"""The parts of a record: what is asked, and who answers."""

from __future__ import annotations

from typing import Any

from equivalence import core_adapter, network_adapter, training_adapter
from equivalence.clock import stopped_clock
from equivalence.network_cases import network_cases
from equivalence.placement_cases import placement_cases
from equivalence.queue_cases import queue_cases
from equivalence.record import Answers, Case, Part
from equivalence.reroute_cases import reroute_cases

CHECKED = "greedy"
"""Whose plans are spoiled for the checker."""


def _placements(case: Case) -> Answers:
    with stopped_clock():
        return {name: core_adapter.solve(case, name) for name in case["ask"]}


def _checks(case: Case) -> Answers:
    """How many rules the checker finds broken in a sound plan, and in the same plan spoiled."""
    with stopped_clock():
        plan = core_adapter.plan_to_check(case, CHECKED)
    counts = {"sound": core_adapter.check_plan(case, plan)}
    if plan["feasible"]:
        counts |= {name: core_adapter.check_plan(case, spoiled) for name, spoiled in _spoiled(case, plan).items()}
    return {"checker": counts}


def _spoiled(case: Case, plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    first = case["instance"]["nodes"][0]["name"]
    flows = plan["flows"]
    spoiled = {
        "all on one node": plan | {"assignments": dict.fromkeys(plan["assignments"], first)},
        "a task too few": plan | {"assignments": dict(list(plan["assignments"].items())[1:])},
        "wrong metrics": plan | {"metrics": plan["metrics"] | {"composite": plan["metrics"]["composite"] - 0.01}},
    }
    if flows:
        spoiled |= {
            "too fast": plan | {"flows": [flow | {"bandwidth": 10 * flow["bandwidth"] + 1} for flow in flows]},
            "wrong way": plan | {"flows": [flow | {"path": flow["path"][::-1]} for flow in flows]},
            "a flow too few": plan | {"flows": flows[1:]},
        }
    return spoiled


def _queues(case: Case) -> Answers:
    with stopped_clock():
        return {"CES-Multi": core_adapter.decide_queue(case)}


def _reroutes(case: Case) -> Answers:
    with stopped_clock():
        return core_adapter.reroute(case)


PARTS = {
    part.name: part
    for part in (
        Part("placements", placement_cases, _placements),
        Part("checks", placement_cases, _checks),
        Part("queues", queue_cases, _queues),
        Part("reroutes", reroute_cases, _reroutes),
        Part("networks", network_cases, network_adapter.answer, by_name=False),
        Part("training", training_adapter.cases, training_adapter.answer, training_adapter.missing),
    )
}
