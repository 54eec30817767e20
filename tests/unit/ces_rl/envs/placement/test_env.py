"""The environment ``placement``: what is drawn, what is observed and what is shipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import made

from ces_core.model.generate import random_instance
from ces_rl.envs.placement.env import Placement, PlacementSettings
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.draw import draw, kinds, new_random
from ces_rl.problems.source import Stored, curriculum

SMALL = {"updates": 4, "problems": 6, "group": 4, "minibatch_size": 64, "evaluate_every": 2}
WIDTH = {"width": 16, "validation": 3}


def test_the_curriculum_rises_to_what_the_settings_ask_for() -> None:
    s = PlacementSettings()
    at = curriculum(s.odds, s.nodes, s.tasks, share=s.curriculum, first_tasks=0.4, first_odds=0.2)
    first, last = at(0.0), at(1.0)
    assert first.tasks[1] < last.tasks[1] == 8
    assert first.odds[0] > last.odds[0] == pytest.approx(1 / 3)


@pytest.mark.needs("torch")
def test_torch_and_onnx_runtime_agree_at_any_size(tmp_path: Path) -> None:
    from ces_core.learned.policy import load_policy
    from ces_rl.envs.placement.evaluation import scorer_of

    trainer = made("ppo", "placement", 3, SMALL, WIDTH)
    trainer.update()
    trainer.env.export(trainer.policy, tmp_path / "policy.onnx", "test-1", {"seed": 3})
    policy = load_policy(tmp_path / "policy.onnx")
    assert (policy.version, policy.card) == ("test-1", {"seed": 3})
    for nodes in (3, 10, 40):
        pool = draw(new_random(nodes), kinds({"tight": 1.0}, (nodes, nodes), (2, 5)), 7)
        simulation = PlacementSimulation(7, SlotSize.of(pool))
        simulation.start(pool, np.arange(7))
        seen = simulation.slots.nodes, simulation.slots.context, simulation.slots.mask
        mask = simulation.slots.mask
        np.testing.assert_allclose(policy.scores(*seen)[mask], scorer_of(trainer.policy)(*seen)[mask], atol=1e-4)
        assert np.isneginf(policy.scores(*seen)[~mask]).all()


def folder_of(tmp_path: Path, count: int) -> str:
    for seed in range(count):
        (tmp_path / f"{seed:02}.json").write_text(json.dumps(random_instance("tight", seed, nodes=5, tasks=3)))
    return str(tmp_path)


def test_own_instances_are_learned_on_and_every_tenth_is_held_out(tmp_path: Path) -> None:
    from ces_rl.problems.source import read_folder

    learned, held = read_folder(Path(folder_of(tmp_path, 11)))
    assert [name for name, _ in held] == ["00.json", "10.json"]
    assert len(learned) == 9
    env = Placement(PlacementSettings(instances=str(tmp_path)))
    vector = env.vector(6, 1)
    vector.reset(0.0, 2)
    problems = vector.simulation.slots.problem.reshape(3, 2)
    assert (problems[:, 0] == problems[:, 1]).all()
    assert vector.simulation.size.nodes == 5
    assert vector.running.all()


@pytest.mark.parametrize(
    ("text", "said"), [("{", "bad.json"), ("[]", "must be a JSON object"), ('{"nodes": [], "job": 3}', "job")]
)
def test_an_instance_that_cannot_be_read_is_named(text: str, said: str, tmp_path: Path) -> None:
    folder_of(tmp_path, 2)
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValueError, match=said):
        Placement(PlacementSettings(instances=str(tmp_path)))


def test_one_instance_is_too_few_and_two_sources_are_too_many(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds 1 instances"):
        Placement(PlacementSettings(instances=folder_of(tmp_path, 1)))
    with pytest.raises(ValueError, match="not both"):
        Placement(PlacementSettings(instances=str(tmp_path), topology="ring"))


def test_a_network_of_ones_own_is_learned_on_and_a_wrong_one_is_named() -> None:
    env = Placement(PlacementSettings(topology="ring", topology_jobs=5))
    vector = env.vector(4, 1)
    vector.reset(0.0)
    assert isinstance(vector.source, Stored)
    hops = vector.simulation.view(0)
    assert len(hops.residual) == 20  # ten wires, both ways
    with pytest.raises(ValueError, match=r"topology nowhere\.graphml"):
        Placement(PlacementSettings(topology="nowhere.graphml"))


def test_the_only_reward_is_the_composite_at_the_end() -> None:
    vector = Placement(PlacementSettings()).vector(20, 3)
    vector.reset(1.0)
    total = np.zeros(20)
    while vector.running.any():
        total += (rewards := vector.step(np.argmax(vector.mask, axis=1)))
        assert (rewards[vector.running] == 0).all()
    assert vector.success.any()
    np.testing.assert_allclose(total, np.where(vector.success, vector.score, 0.0), rtol=1e-6)


def test_before_learning_is_named_as_what_it_is() -> None:
    pytest.importorskip("torch")
    said: Any = Placement(PlacementSettings()).untrained
    assert "linear prior (-1 times known-end-above-least, -2 times end-blocked)" in said
    assert "needs no learning" in said
