"""Tasks that share GPUs are sent to clusters by a network, on a small trace of our own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gpu_tasks import write_trace

from ces_core.gpus.rewards import WRONG
from ces_core.gpus.rules import CLUSTER_RULES
from ces_rl.algorithms.base import RefusedError
from ces_rl.envs.gpu_clusters.env import GpuClusters, GpuClustersSettings
from ces_rl.envs.gpu_clusters.network import ClusterPolicy
from ces_rl.envs.gpu_clusters.vector import ACTIONS, CLUSTERS, GpuVector
from ces_rl.run import Run, train
from ces_sim.gpus.episode import by_rule

pytestmark = pytest.mark.needs("torch")


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path / "data", nodes=140, pods=350)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path / "data"))


def vector(slots: int = 2, seed: int = 3, **settings: object) -> GpuVector:
    found = GpuClusters(GpuClustersSettings(**settings)).vector(slots, seed)  # type: ignore[arg-type]
    found.reset(0.0)
    return found


def first_allowed(found: GpuVector) -> np.ndarray:
    return found.mask.argmax(axis=1)


def test_the_first_allowed_cluster_is_the_greedy_rule() -> None:
    found = vector()
    drawn = [episode.drawn for episode in found.episodes]
    assert drawn[0] != drawn[1]
    earned = np.zeros(2)
    while found.running.any():
        earned += found.step(first_allowed(found))
    figures = [by_rule(each, CLUSTER_RULES["greedy"], 0) for each in drawn]
    assert found.score.tolist() == [each["deployed"] for each in figures]
    assert earned == pytest.approx([each["return_thought"] for each in figures], rel=1e-5)
    assert found.success.all()


def test_what_is_earned_by_the_count_is_the_score_and_to_wait_is_allowed() -> None:
    found = vector(earns="count")
    earned = np.zeros(2)
    for turn in range(220):
        assert found.mask[:, CLUSTERS].all()
        earned += found.step(np.full(2, CLUSTERS) if turn % 3 == 0 else first_allowed(found))
    assert earned.tolist() == found.score.tolist()
    assert (found.score < 220).all()


def test_without_a_mask_wrong_actions_cost() -> None:
    found = vector(masked=False)
    assert found.mask.all()
    assert found.step(np.full(2, CLUSTERS)).tolist() == [WRONG, WRONG]


def test_the_masked_may_wait_only_where_it_fits_nowhere() -> None:
    found = vector()
    while found.running.all():
        for episode, allowed in zip(found.episodes, found.mask, strict=True):
            there = episode.clusters.hosts(episode.task) >= 0
            assert allowed.tolist() == [*there, not there.any()]
        found.step(first_allowed(found))


def test_draws_follow_seed_and_state_and_groups_share_them() -> None:
    found = vector(4)
    found.reset(0.0, group=2)
    names = [[task.name for task in episode.drawn.tasks] for episode in found.episodes]
    assert names[0] == names[1] != names[2] == names[3]
    other = GpuClusters(GpuClustersSettings()).vector(4, 3)
    other.restore([1])
    other.reset(0.0, group=2)
    assert [[task.name for task in episode.drawn.tasks] for episode in other.episodes] == names
    assert other.state() == found.state() == [2]


def test_observations_are_shares() -> None:
    found = vector()
    free, asked = found.observe(np.array([0, 1]))
    assert (free == 1).all()
    assert (asked[:, 4] == 1).all()
    task = found.episodes[0].task
    assert asked[0, 3] == pytest.approx(task.milli / found.episodes[0].clusters.total[:, 3].mean())
    found.step(first_allowed(found))
    free, asked = found.observe(np.array([0, 1]))
    assert 0 < (free < 1).any(axis=2).sum() <= 2
    assert asked[0, 4] == pytest.approx(1 - 1 / 220)


@pytest.mark.parametrize("attention", ["literal", "tokens"])
def test_networks_score_every_action(attention: str) -> None:
    torch.manual_seed(0)
    policy = ClusterPolicy(attention)
    free, asked = torch.rand(3, CLUSTERS, 4), torch.rand(3, 5)
    scores, values = policy(free, asked)
    assert (scores.shape, values.shape) == ((3, ACTIONS), (3,))
    turned, _ = policy(free.flip(1), asked)
    same = torch.allclose(turned[:, :CLUSTERS], scores[:, :CLUSTERS].flip(1), atol=1e-5)
    assert same == (attention == "tokens")  # a token's score goes with its cluster, wherever that stands


def test_a_run_learns_scores_and_ships(tmp_path: Path) -> None:
    algorithm = {"updates": 1, "problems": 2, "evaluate_every": 1}
    card = train(Run.make("ppo", "gpu-clusters", 1, algorithm, {"validation": 2}, tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "model-card.json").read_text())["version"] == card["version"]
    assert (tmp_path / "run" / "policy.onnx").is_file()
    assert card["baselines"]["expert"]["D1"]["deployed"] >= card["scores"]["greedy"]["D1"]["deployed"] * 0.9
    assert card["scores"]["greedy"]["D1"]["wrong"] == 0


def test_without_data_the_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CES_DATA_DIR")
    with pytest.raises(RefusedError, match="CES_DATA_DIR is not set"):
        GpuClusters(GpuClustersSettings()).vector(1, 0)


def test_the_adviser_is_the_expert() -> None:
    found = vector()
    drawn = [episode.drawn for episode in found.episodes]
    while found.running.any():
        found.step(found.advice(np.arange(2)))
    assert found.score.tolist() == [by_rule(each, CLUSTER_RULES["expert"], 0)["deployed"] for each in drawn]


@pytest.mark.parametrize("attention", ["literal", "tokens"])
@pytest.mark.parametrize("width", [1, ACTIONS])
def test_actors_and_critics_for_algorithms_with_pools(attention: str, width: int) -> None:
    made = GpuClusters(GpuClustersSettings(attention=attention)).networks(width)
    observation = torch.rand(3, CLUSTERS, 4), torch.rand(3, 5)
    action = made[0](*observation)
    assert action.shape == (3, width)
    assert made[1](*observation, action).shape == (3, 1)
