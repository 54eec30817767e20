"""``ces bench latency`` and ``energy`` on small games, and the facts that it is made of."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest
from gpu_tasks import bench

from ces_core.model.instance import read_instance
from ces_experiments.common.console import ContradictionError
from ces_experiments.latency import commands
from ces_experiments.latency.energy import weighed
from ces_experiments.latency.experiment import Answer, Game, Truth, consistent
from ces_experiments.latency.game import game_instance
from ces_experiments.latency.networks import ABILENE, BACKBONES, NOBEL_GERMANY


def test_a_game_is_answered_and_proven(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--networks", "abilene", "--players", "1", "--seeds", 1, "--exact-limit", 20, "--out", out)
    shown = bench(commands.latency, *words).stdout
    assert "abilene, 1 player" in shown
    (case,) = json.loads((out / "results.json").read_text())["cases"].values()
    assert case["games"] == 1
    assert (out / "decisions.csv").read_text().startswith("network,players,seed,limit_s,objective,")


def test_games_are_weighed_and_drawn(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--networks", "abilene", "--players", 1, "--seeds", 2, "--weights", "0.05,0.9", "--time-limit", 0.02)
    shown = bench(commands.energy, *words, "--out", out).stdout
    assert "abilene: 2 of 2 games" in shown
    (found,) = json.loads((out / "results.json").read_text())["networks"].values()
    assert found["by_weight"]["0.05"]["power_change_w_gain"]["mean"] == 0
    assert found["by_weight"]["0.9"]["power_change_w_gain"]["mean"] < 0, "it draws less where less counts"
    assert {"weights.png", "front.png", "plans.csv"} <= {file.name for file in out.iterdir()}


def test_what_energy_leaves_is_shared_in_equal_parts() -> None:
    told = weighed(game_instance("abilene", 1, 0), 0.4)["job"]["objective"]
    assert told == pytest.approx({"balance": 0.2, "bandwidth": 0.2, "time": 0.2, "energy": 0.4})


@pytest.mark.parametrize(("name", "nodes", "wires"), [("nobel-germany", 17, 26), ("abilene", 12, 15)])
def test_the_backbones_are_whole(name: str, nodes: int, wires: int) -> None:
    backbone = BACKBONES[name]
    graph = nx.Graph(backbone.wires)
    assert (len(backbone.places), len(backbone.wires), graph.number_of_edges()) == (nodes, wires, wires)
    assert set(graph.nodes) == set(backbone.places)
    assert nx.is_connected(graph)


def test_delays_follow_from_distances() -> None:
    """Berlin and Hamburg are some 250 km apart, New York and Washington some 330."""
    assert NOBEL_GERMANY.delay_ms("Berlin", "Hamburg") == pytest.approx(1.25, abs=0.1)
    assert ABILENE.delay_ms("NYCMng", "WASHng") == pytest.approx(1.65, abs=0.1)


def test_a_game_has_what_its_players_need() -> None:
    problem = read_instance(game_instance("nobel-germany", 3, 0))
    assert (len(problem.tasks), len(problem.flows)) == (7, 18)
    assert problem.goals is not None
    assert [chain.hard for chain in problem.goals.chains] == [True, False, False, False, False, False]


def test_an_answer_above_the_proof_ends_the_measurement() -> None:
    answer = Answer(Game("abilene", 1, 0), 0.02, 0.9, None, 20.0, 20.0)
    with pytest.raises(ContradictionError, match=r"none is above 0\.8"):
        consistent(answer, Truth(0.8, 0.8, impossible=False, cpu_s=1.0))
