"""Proposals are counted by what became of them, and rejected plans by what stood in their way."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from prometheus_client import REGISTRY

from ces_common.db import WriteTx
from ces_manager.nodes import operations
from ces_manager.plans import commit
from ces_manager.plans.feasibility import Obstacle
from ces_manager.plans.plan_metrics import OTHER, note_outcome

NODES = ["a", "b", "c"]


def rejected() -> dict[str, float]:
    found = {each: REGISTRY.get_sample_value("ces_plans_rejected_total", {"reason": each}) for each in Obstacle}
    return {each: count or 0.0 for each, count in found.items()}


def decided(kind: str, outcome: str) -> float:
    return REGISTRY.get_sample_value("ces_proposals_total", {"kind": kind, "outcome": outcome}) or 0.0


@pytest.mark.parametrize(
    ("harm", "obstacle"),
    [
        ({"assignments": {"w-0": "a", "w-1": "b"}}, Obstacle.MALFORMED),
        ({"size": 4}, Obstacle.MALFORMED),
        ({"assignments": {"w-0": "a", "w-1": "b", "w-2": "x"}}, Obstacle.NODE),
        ({"attempt": 2}, Obstacle.OUTDATED),
        ({"job": "nobody"}, Obstacle.OUTDATED),
        ({"assignments": {"w-0": "a", "w-1": "a", "w-2": "a"}}, Obstacle.FLOW),
    ],
)
def test_a_rejected_plan_counts_for_what_stood_in_its_way(
    world: World, harm: dict[str, object], obstacle: Obstacle
) -> None:
    plan = world.propose(world.submit(ring()), NODES).model_copy(update=harm)
    before, outcomes = rejected(), decided("plan", "rejected")
    world.write(lambda tx: note_outcome(tx, "plan", commit.commit_plan(tx, plan)))
    assert rejected() == before | {obstacle: before[obstacle] + 1}
    assert decided("plan", "rejected") == outcomes + 1


@pytest.mark.parametrize("obstacle", [Obstacle.NODE_FULL, Obstacle.LINK_FULL, Obstacle.NODE])
def test_what_others_hold_is_told_from_what_is_away(world: World, obstacle: Obstacle) -> None:
    match obstacle:
        case Obstacle.NODE_FULL:
            for _ in range(4):
                assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) is None
        case Obstacle.LINK_FULL:
            fat = world.submit(ring(tasks=2, low="90Mbit", high="90Mbit"))
            assert world.commit(world.propose(fat, ["a", "b"], 90_000_000)) is None
        case _:
            world.write(lambda tx: operations.cordon(tx, "a"))
    plan, before = world.propose(world.submit(ring(tasks=2)), ["a", "b"]), rejected()
    world.write(lambda tx: note_outcome(tx, "plan", commit.commit_plan(tx, plan)))
    assert rejected() == before | {obstacle: before[obstacle] + 1}


def test_what_was_committed_is_no_rejection(world: World) -> None:
    plan, before, outcomes = world.propose(world.submit(ring()), NODES), rejected(), decided("plan", "committed")
    world.write(lambda tx: note_outcome(tx, "plan", commit.commit_plan(tx, plan)))
    assert (rejected(), decided("plan", "committed")) == (before, outcomes + 1)


def test_other_proposals_are_counted_by_kind_alone(world: World) -> None:
    before, resizes = rejected(), decided("resize", "rejected")
    others = REGISTRY.get_sample_value("ces_plans_rejected_total", {"reason": OTHER})

    def act(tx: WriteTx) -> None:
        note_outcome(tx, "resize", "stale")

    world.write(act)
    assert (rejected(), decided("resize", "rejected")) == (before, resizes + 1)
    assert REGISTRY.get_sample_value("ces_plans_rejected_total", {"reason": OTHER}) == others
