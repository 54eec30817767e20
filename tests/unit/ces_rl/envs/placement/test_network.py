"""The two encoders of the placement policy: what they may and may not depend on, and that the pooled one has stayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainers import assert_same, made, taken_up
from typer.testing import CliRunner

from ces_client.cli.app import app
from ces_core.learned.policy import INPUTS, load_policy
from ces_core.learned.schema import schema_hash
from ces_core.model.errors import PolicyError
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_rl.envs.placement.links import LinkedSimulation
from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.source import packed

pytestmark = pytest.mark.needs("torch")

IMITATION = {"updates": 2, "episodes": 24, "limit": 200, "gradient_steps": 20, "batch_size": 64, "threads": 1}
FEW = {"updates": 2, "episodes": 6, "limit": 50, "gradient_steps": 3, "batch_size": 16, "threads": 1}
GRAPH = {"encoder": "graph", "width": 16, "validation": 2}


def outspoken(seed: int = 0) -> Any:
    """A graph policy whose messages have weight, which they have not in the beginning."""
    import torch

    from ces_rl.envs.placement.network import GraphPolicy

    torch.manual_seed(seed)
    policy = GraphPolicy(16)
    with torch.no_grad():
        policy.score.weight.mul_(10.0)
        for name, value in policy.named_parameters():
            if name.endswith("heard.weight"):
                value.normal_(0.0, 0.5)
    return policy


def seen(most: int = 9) -> list[Any]:
    """Decisions on networks of two sizes."""
    problems = [
        read_instance(random_instance("tight", seed, nodes=nodes, tasks=4, link_probability=0.4))
        for seed, nodes in ((1, 10), (2, 10), (3, 7))
    ]
    pool = packed(problems)
    simulation = LinkedSimulation(3, SlotSize.of(pool), most)
    simulation.start(pool, np.arange(3))
    simulation.step(np.argmax(simulation.slots.mask, axis=1))
    assert simulation.running.all()
    return list(simulation.observed(np.arange(3)))


def asked(policy: Any, observation: list[Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    import torch

    with torch.no_grad():
        scores, values = policy(*(torch.from_numpy(part) for part in observation))
    return scores.numpy(), values.numpy()


def test_the_default_learns_and_ships_what_it_always_has() -> None:
    """From before there was another encoder: as many decisions, the same weights, but for the last bits of other
    machines."""
    run = made("imitation", "placement", 3, IMITATION, {"validation": 5})
    assert sorted({name.partition(".")[0] for name, _ in run.policy.named_parameters()}) == [
        "beside", "context", "encoder", "node", "pooled", "prior", "score", "value",
    ]  # fmt: skip
    for _ in range(2):
        measured = run.update()
    assert run.steps == 254
    assert measured["regret"] == pytest.approx(0.00297663, rel=1e-4)
    size = np.sqrt(sum(float((value.double() ** 2).sum()) for value in run.policy.state_dict().values()))
    assert size == pytest.approx(12.1704795, rel=1e-6)
    assert (run.env.schema, run.env.inputs, run.env.unasked) == (schema_hash(), INPUTS, "")


def test_both_encoders_begin_as_the_same_policy_and_meet_the_same_problems() -> None:
    pooled, graph = (made("imitation", "placement", 5, FEW, GRAPH | {"encoder": each}) for each in ("pooled", "graph"))
    for vector in (pooled.vector, graph.vector):
        vector.reset(1.0)
    rows = np.arange(pooled.vector.slots)
    mine, others = pooled.vector.observe(rows), graph.vector.observe(rows)
    for one, other in zip(mine, others[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(asked(pooled.policy, list(mine)), asked(graph.policy, list(others)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_other_numbers_for_the_nodes_are_other_places_for_the_same_scores() -> None:
    policy, observation = outspoken(), seen()
    scores, values = asked(policy, observation)
    rng = np.random.default_rng(4)
    order = rng.permutation(10)  # new number -> old number
    new = np.argsort(order)
    nodes, context, mask, neighbours, links = observation
    renamed = np.where(neighbours < 0, neighbours, new[neighbours]).astype(np.int16)
    shuffled = rng.permutation(neighbours.shape[2])
    moved = [
        nodes[:, order],
        context,
        mask[:, order],
        renamed[:, order][:, :, shuffled],
        links[:, order][:, :, shuffled],
    ]
    found, valued = asked(policy, moved)
    np.testing.assert_allclose(found, scores[:, order], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(valued, values, rtol=1e-4, atol=1e-4)
    assert np.ptp(scores[mask > 0]) > 0.01


def test_room_for_more_nodes_and_neighbours_changes_nothing() -> None:
    policy, (nodes, context, mask, neighbours, links) = outspoken(), seen()
    scores, values = asked(policy, [nodes, context, mask, neighbours, links])
    rows = [(0, 0), (0, 6)]
    padded = [
        np.pad(nodes, [*rows, (0, 0)]),
        context,
        np.pad(mask, rows),
        np.pad(neighbours, [*rows, (0, 4)], constant_values=-1),
        np.pad(links, [*rows, (0, 4), (0, 0)]),
    ]
    found, valued = asked(policy, padded)
    np.testing.assert_allclose(found[:, : nodes.shape[1]], scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(valued, values, rtol=1e-4, atol=1e-4)


def test_messages_come_from_neighbours_and_theirs_but_no_further() -> None:
    """A chain of five nodes, all of them allowed. What is known of each is read before pooling, which tells of all."""
    import torch

    policy = outspoken()
    neighbours = np.array([[[1, -1], [0, 2], [1, 3], [2, 4], [3, -1]]], dtype=np.int16)
    links = np.zeros((1, 5, 2, 6), dtype=np.float32)
    hidden = torch.rand(1, 5, 16)
    other = hidden.clone()
    other[0, 4] += 1.0
    with torch.no_grad():
        for messages in policy.rounds:
            hidden, other = (messages(each, *map(torch.from_numpy, (neighbours, links))) for each in (hidden, other))
    changed = (hidden - other).abs().amax(-1)[0] > 1e-6
    assert changed.tolist() == [False, False, True, True, True]


def test_a_run_with_the_graph_encoder_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    def make() -> Any:
        return made("imitation", "placement", 2, FEW, GRAPH)

    whole = make()
    for _ in range(2):
        whole.update()
    assert_same(whole, taken_up(make, tmp_path, after=1, updates=2))
    assert any(bool(value.any()) for name, value in whole.policy.state_dict().items() if "heard.weight" in name)


def test_ppo_learns_with_the_graph_encoder() -> None:
    run = made("ppo", "placement", 1, {"updates": 1, "problems": 3, "group": 2, "minibatch_size": 16}, GRAPH)
    before = {name: value.clone() for name, value in run.policy.state_dict().items()}
    run.update()
    assert any(not (value == before[name]).all() for name, value in run.policy.state_dict().items())


def test_a_graph_policy_is_evaluated_and_written_but_no_solver_takes_it(tmp_path: Path) -> None:
    import onnxruntime

    run = made("imitation", "placement", 2, FEW, GRAPH)
    run.env.prepare(tmp_path)
    scores = run.env.evaluate(run.policy, thorough=True)
    assert set(scores) == {"greedy", "best of 64 draws"}
    greedy, drawn = (scores[way]["tight"] for way in scores)
    assert 0 <= greedy["solved"] <= drawn["solved"] <= 1
    policy = outspoken()
    run.env.export(policy, tmp_path / "policy.onnx", "test", {})
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    for most in (9, 4):
        observation = seen(most)
        named = dict(zip(run.env.inputs, observation, strict=True))
        np.testing.assert_allclose(session.run(["scores"], named)[0], asked(policy, observation)[0], atol=1e-3)
    with pytest.raises(PolicyError, match="trained to see other features"):
        load_policy(tmp_path / "policy.onnx")


def test_such_a_run_is_told_that_it_cannot_be_shipped(tmp_path: Path) -> None:
    flags = {"updates": 1, "episodes": 2, "limit": 20, "gradient-steps": 1, "width": 8, "validation": 1}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    folder = ["--out", str(tmp_path / "run")]
    trained = CliRunner().invoke(app, ["train", "imitation", "--encoder", "graph", *words, *folder])
    assert trained.exit_code == 0, trained.output + repr(trained.exception)
    assert "to compare only" in trained.stderr
    shipped = CliRunner().invoke(app, ["train", "ship", str(tmp_path / "run")])
    assert shipped.exit_code == 2
    assert "cannot be shipped: no scheduler shows a policy the links yet" in shipped.stderr
    refused = CliRunner().invoke(
        app, ["train", "imitation", "--encoder", "other", *words, "--out", str(tmp_path / "no")]
    )
    assert refused.exit_code == 2
