"""A learned rule for clusters: what it is shown, what it makes of scores, and the policies that come with the core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gpu_tasks import asked

from ces_core.gpus.clusters import DELAY, Clusters
from ces_core.gpus.frugal import Frugal
from ces_core.gpus.model import GpuNode, Models
from ces_core.gpus.rules import Outlook
from ces_core.gpus.sight import HOST, OUTLOOK, SUMS, TASK, Usual, View, look, schema_hash
from ces_core.learned.clusters import SHIPPED, ClusterPolicy, LearnedRule, load_cluster_policy
from ces_core.model.errors import PolicyError

SMALL, LARGE = asked(1000, 1, 300, memory=10, card_memory=30), asked(2000, 1, 800, memory=20, card_memory=80)
USUAL = Usual.of([SMALL, SMALL, LARGE])


def clusters(count: int = 2) -> Clusters:
    """Each of two hosts with one card."""
    nodes = [GpuNode(f"n{i}", 4000, 100, 1, "T4", 100) for i in range(2 * count)]
    return Clusters.of(Models().fleet(nodes), 2)


def outlook(more: int = 0) -> Outlook:
    return Outlook(more, np.array([300, 300, 800]), np.random.default_rng(0))


def rule(scores: list[float], **view: bool) -> LearnedRule:
    return LearnedRule(lambda *_: np.array([scores], np.float32), View(**view), USUAL)


def full(found: Clusters, cluster: int) -> None:
    for host in (2 * cluster, 2 * cluster + 1):
        found.fleet.place(host, (0,), LARGE)


def test_the_highest_score_of_what_is_allowed() -> None:
    found = clusters()
    assert rule([1, 2, 0]).choose(found, LARGE, outlook()) == 1
    full(found, 1)
    assert rule([1, 2, 0]).choose(found, LARGE, outlook()) == 0
    assert rule([1, 2, 0], masked=False).choose(found, LARGE, outlook()) == 1
    assert rule([1, 2, 3]).choose(found, LARGE, outlook()) == DELAY
    assert rule([1, 2, 3], waiting=False).choose(found, LARGE, outlook()) == 0
    full(found, 0)
    assert rule([1, 2, 0], waiting=False).choose(found, LARGE, outlook()) == DELAY


def test_renumbered_clusters_stand_by_how_full_they_are() -> None:
    found = clusters(3)
    found.fleet.place(4, (0,), SMALL)  # cluster 2 is the fullest
    assert rule([3, 2, 1, 0], renumbered=True).choose(found, SMALL, outlook()) == 2
    assert rule([1, 3, 2, 0], renumbered=True).choose(found, SMALL, outlook()) == 0


def test_what_a_view_shows() -> None:
    found = clusters()
    seen = look(found.fleet, 2, found.total[None], np.array([SMALL], np.int64), [3], USUAL)
    shown, task, mask, order = View().shown(seen)
    assert (shown.shape, task.shape) == ((1, 2, len(SUMS) + len(HOST)), (1, len(TASK) + len(OUTLOOK)))
    assert mask.all()
    assert order.tolist() == [[0, 1]]
    shown, task, *_ = View(sums=True).shown(seen)
    assert (shown.shape, task.shape) == ((1, 2, len(SUMS)), (1, len(TASK)))


def test_frugal_wastes_least_and_keeps_room_for_small_tasks() -> None:
    found = clusters()
    frugal = Frugal(USUAL)
    found.fleet.place(2, (0,), LARGE)
    assert frugal.choose(found, LARGE, outlook()) == 0  # beside the large one there are 200 milli, for none
    found.fleet.place(0, (0,), SMALL)
    assert frugal.choose(found, SMALL, outlook()) == 0  # with two small ones, 400 remain; on a free card all of 700
    assert frugal.choose(found, LARGE, outlook(100)) == DELAY
    assert frugal.choose(found, SMALL, outlook(100)) != DELAY  # none is smaller
    full(found, 0)
    found.fleet.place(3, (0,), LARGE)
    assert frugal.choose(found, LARGE, outlook()) == DELAY


@pytest.mark.parametrize("name", SHIPPED)
def test_what_comes_with_the_core_decides(name: str) -> None:
    policy = load_cluster_policy(SHIPPED[name])
    assert policy.card["settings"]["env"]["scenario"] == name
    assert policy.card["schema"] == schema_hash()
    assert SHIPPED[name].with_name(f"{SHIPPED[name].stem}-model-card.json").is_file()
    found, learned = clusters(16), LearnedRule(policy, policy.view, USUAL)
    assert policy.view == View()
    choices = {learned.choose(found, SMALL, outlook(200)) for _ in range(2)}
    assert len(choices) == 1
    assert choices <= set(range(16))
    for cluster in range(16):
        full(found, cluster)
    assert learned.choose(found, LARGE, outlook()) == DELAY


def test_a_file_of_other_features_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file"):
        load_cluster_policy(tmp_path / "absent.onnx")
    policy = load_cluster_policy(SHIPPED["D1"])
    narrow = np.zeros((1, 16, 4), np.float32), np.zeros((1, 5), np.float32), np.ones((1, 17), np.float32)
    with pytest.raises(PolicyError, match="does not answer as one of clusters does"):
        policy(*narrow)
    with pytest.raises(PolicyError, match="does not say what it was shown"):
        _ = ClusterPolicy("v", {}, None).view
