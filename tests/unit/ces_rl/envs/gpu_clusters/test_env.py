"""Tasks that share GPUs are sent to clusters by a network, on a small trace of our own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gpu_tasks import write_trace

from ces_core.gpus.clusters import DELAY
from ces_core.gpus.frugal import Frugal
from ces_core.gpus.model import Models
from ces_core.gpus.rewards import Reading
from ces_core.gpus.rules import CLUSTER_RULES
from ces_core.gpus.sight import HOST, OUTLOOK, SUMS, TASK, Usual
from ces_core.learned.clusters import LearnedRule, load_cluster_policy
from ces_rl.algorithms.base import RefusedError
from ces_rl.envs.base import play_greedy
from ces_rl.envs.gpu_clusters.env import GpuClusters, GpuClustersSettings
from ces_rl.envs.gpu_clusters.vector import SIZES, UNIT, GpuVector
from ces_rl.run import Run, train
from ces_sim.gpus.episode import Episode, by_rule
from ces_sim.gpus.scenarios import CLUSTER
from ces_sim.gpus.scenarios import HOSTS as ALL_HOSTS

pytestmark = pytest.mark.needs("torch")
CLUSTERS = ALL_HOSTS // CLUSTER
ACTIONS = CLUSTERS + 1


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
    drawn = found.drawn
    assert drawn[0] != drawn[1]
    earned = np.zeros(2)
    while found.running.any():
        earned += found.step(first_allowed(found))
    figures = [by_rule(each, CLUSTER_RULES["greedy"], 0) for each in drawn]
    assert found.score.tolist() == [each["deployed"] for each in figures]
    assert earned * UNIT == pytest.approx([each["return_thought"] for each in figures], rel=1e-5)
    assert found.success.all()


@pytest.mark.parametrize(
    ("scenario", "among"),
    [*((each, "clusters") for each in ("D1", "D2", "D3", "D4")), ("D1", "hosts"), ("D3", "hosts")],
)
@pytest.mark.parametrize("earns", ["after", "thought"])
@pytest.mark.parametrize("renumbered", [False, True])
def test_a_vector_does_what_as_many_episodes_do(scenario: str, among: str, earns: str, renumbered: bool) -> None:
    found = vector(3, scenario=scenario, among=among, earns=earns, masked=False, renumbered=renumbered)
    waiting = found.count
    episodes = [Episode.of(each, SIZES[among]) for each in found.drawn]
    rng = np.random.default_rng(1)
    while found.running.any():
        fitting = [np.append(each.clusters.hosts(each.task) >= 0, True) for each in episodes]
        actions = np.array([rng.choice(np.flatnonzero(each)) if rng.random() < 0.9 else 3 for each in fitting])
        if renumbered:  # the number that a cluster has now
            order = found._order
            shown = [waiting if a == waiting else int((order[i] == a).argmax()) for i, a in enumerate(actions)]
        else:
            shown = list(actions)
        earned = found.step(np.array(shown))
        for episode, action, reward in zip(episodes, actions, earned, strict=True):
            expected = episode.step(DELAY if action == waiting else int(action))[Reading(earns)]
            assert reward * UNIT == pytest.approx(expected, abs=1e-3)
    assert found.placed.tolist() == [len(each.placed) for each in episodes]
    assert found.wrong.tolist() == [each.wrong for each in episodes]
    assert found.judged.tolist() == [each.judged for each in episodes]
    for column in ("cpu", "memory", "milli", "card_memory"):
        there = [getattr(each.clusters.fleet, column) for each in episodes]
        assert getattr(found._fleet, column).tolist() == np.concatenate(there).tolist()


def test_what_is_earned_by_the_count_is_the_share_placed_and_to_wait_is_allowed() -> None:
    found = vector(earns="count")
    earned = np.zeros(2)
    for turn in range(220):
        assert found.mask[:, CLUSTERS].all()
        earned += found.step(np.full(2, CLUSTERS) if turn % 3 == 0 else first_allowed(found))
    assert (earned * 220).tolist() == pytest.approx(found.score.tolist())
    assert (found.score < 220).all()


def test_without_a_mask_wrong_actions_cost() -> None:
    found = vector(masked=False)
    assert found.mask.all()
    assert found.step(np.full(2, CLUSTERS)).tolist() == [-1, -1]
    assert found.wrong.tolist() == [1, 1]


def test_the_masked_may_wait_only_where_it_fits_nowhere() -> None:
    found = vector()
    episodes = [Episode.of(each) for each in found.drawn]
    while found.running.all():
        actions = first_allowed(found)
        for episode, allowed, action in zip(episodes, found.mask, actions, strict=True):
            there = episode.clusters.hosts(episode.task) >= 0
            assert allowed.tolist() == [*there, not there.any()]
            episode.step(DELAY if action == CLUSTERS else int(action))
        found.step(actions)


def test_draws_follow_seed_and_state_and_groups_share_them() -> None:
    found = vector(4)
    found.reset(0.0, group=2)
    names = [[task.name for task in drawn.tasks] for drawn in found.drawn]
    assert names[0] == names[1] != names[2] == names[3]
    other = GpuClusters(GpuClustersSettings()).vector(4, 3)
    other.restore([1])
    other.reset(0.0, group=2)
    assert [[task.name for task in drawn.tasks] for drawn in other.drawn] == names
    assert other.state() == found.state() == [2]


def test_observations_are_shares() -> None:
    found = vector()
    clusters, task, allowed = found.observe(np.array([0, 1]))
    assert clusters.shape == (2, CLUSTERS, len(SUMS) + len(HOST))
    assert task.shape == (2, len(TASK) + len(OUTLOOK))
    assert (clusters[:, :, : len(SUMS)] == 1).all()
    assert task[0, 4] == pytest.approx(2.2)
    asked = found.drawn[0].tasks[0]
    assert task[0, 3] == pytest.approx(asked.milli / found._total[0, :, 3].mean())
    assert allowed.tolist() == found.mask.astype(float).tolist()
    found.step(first_allowed(found))
    clusters, task, _ = found.observe(np.array([0, 1]))
    assert 0 < (clusters[:, :, : len(SUMS)] < 1).any(axis=2).sum() <= 2
    assert task[0, 4] == pytest.approx(2.19)


def test_the_paper_shows_sums_alone() -> None:
    found = vector(sees="sums")
    clusters, task, _ = found.observe(np.array([0]))
    assert (clusters.shape[2], task.shape[1]) == (len(SUMS), len(TASK))


@pytest.mark.parametrize("attention", ["none", "literal", "tokens"])
@pytest.mark.parametrize("sees", ["sums", "hosts"])
@pytest.mark.parametrize(("among", "count"), [("clusters", 16), ("hosts", 64)])
def test_networks_score_every_action(attention: str, sees: str, among: str, count: int) -> None:
    torch.manual_seed(0)
    env = GpuClusters(GpuClustersSettings(attention=attention, sees=sees, among=among))
    policy = env.policy()
    clusters, task = torch.rand(3, count, env.shape.cluster), torch.rand(3, env.shape.task)
    allowed = torch.ones(3, count + 1)
    scores, values = policy(clusters, task, allowed)
    assert (scores.shape, values.shape) == ((3, count + 1), (3,))
    turned, _ = policy(clusters.flip(1), task, allowed)
    same = torch.allclose(turned[:, :count], scores[:, :count].flip(1), atol=1e-5)
    assert same == (attention == "tokens")  # a token's score goes with its cluster, wherever that stands
    allowed[:, 4] = 0
    assert (policy(clusters, task, allowed)[0].argmin(dim=1) == 4).all()


def test_a_run_learns_scores_and_ships(tmp_path: Path) -> None:
    algorithm = {"updates": 1, "problems": 2, "evaluate_every": 1}
    run = Run.make("ppo", "gpu-clusters", 1, algorithm, {"validation": 2}, tmp_path / "run")
    card = train(run)
    assert json.loads((tmp_path / "run" / "model-card.json").read_text())["version"] == card["version"]
    assert card["baselines"]["expert"]["D1"]["deployed"] >= card["scores"]["greedy"]["D1"]["deployed"] * 0.9
    assert card["scores"]["greedy"]["D1"]["wrong"] == 0
    policy = load_cluster_policy(tmp_path / "run" / "policy.onnx")
    assert policy.version == card["version"]
    found = vector(3)
    while found.running.any():
        shown = found.observe(np.arange(3))
        with torch.no_grad():
            expected = run.algorithm.solution(*map(torch.from_numpy, shown))[0].numpy()
        np.testing.assert_allclose(policy(*shown), expected, rtol=1e-4, atol=1e-5)
        found.step(np.where(found.mask, expected, -np.inf).argmax(axis=1))


@pytest.mark.parametrize("earns", ["thought", "count"])
@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize("among", ["clusters", "hosts"])
def test_the_rule_decides_as_the_vector_does(earns: str, renumbered: bool, among: str) -> None:
    torch.manual_seed(3)
    env = GpuClusters(GpuClustersSettings(earns=earns, renumbered=renumbered, among=among))
    policy, models = env.policy(), Models()

    def ask(*shown: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return policy(*map(torch.from_numpy, shown))[0].numpy()

    rule = LearnedRule(ask, env.view, Usual.of(models.asked(task) for task in env.source.usual))
    found = env.vector(2, 3)
    found.reset(0.0)
    play_greedy(policy, found)
    assert found.placed.tolist() == [by_rule(each, rule, 0, env.size)["deployed"] for each in found.drawn]


def test_without_data_the_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CES_DATA_DIR")
    with pytest.raises(RefusedError, match="CES_DATA_DIR is not set"):
        GpuClusters(GpuClustersSettings()).vector(1, 0)


def test_too_small_a_trace_is_refused() -> None:
    with pytest.raises(RefusedError, match="D5 needs 280 tasks"):
        GpuClusters(GpuClustersSettings(scenario="D5")).vector(1, 0)


@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize("earns", ["thought", "count"])
def test_the_adviser_is_a_rule(earns: str, renumbered: bool) -> None:
    env = GpuClusters(GpuClustersSettings(earns=earns, renumbered=renumbered))
    found, usual = env.vector(2, 3), map(Models().asked, env.source.usual)
    found.reset(0.0)
    adviser = Frugal(Usual.of(usual)) if earns == "count" else CLUSTER_RULES["expert"]
    while found.running.any():
        advice = found.advice(np.arange(2))
        with env.expert(found, limit=1, regret_cap=0.1, threads=1) as expert:
            regret, _ = expert.judge(np.arange(2))
        assert regret.argmin(axis=1).tolist() == advice.tolist()
        assert (regret == np.float32(0.1)).sum() == 2 * CLUSTERS
        found.step(advice)
    assert found.score.tolist() == [by_rule(each, adviser, 0)["deployed"] for each in found.drawn]


@pytest.mark.parametrize("attention", ["none", "literal", "tokens"])
@pytest.mark.parametrize("width", [1, ACTIONS])
def test_actors_and_critics_for_algorithms_with_pools(attention: str, width: int) -> None:
    env = GpuClusters(GpuClustersSettings(attention=attention))
    made = env.networks(width)
    observation = torch.rand(3, CLUSTERS, env.shape.cluster), torch.rand(3, env.shape.task), torch.ones(3, ACTIONS)
    action = made[0](*observation)
    assert action.shape == (3, width)
    assert made[1](*observation, action).shape == (3, 1)
