"""A workload drifts away from what the live policy is good at, and one that learns from the log takes its place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from evolving_policies import MIB, NOON, decided
from typer.testing import CliRunner

from ces_core.evolution.decision_log import DecisionLog
from ces_core.evolution.folder import EvolutionFolder, basis_of
from ces_core.evolution.gate import Pairs
from ces_core.evolution.solvers import solver_of
from ces_core.evolution.standing import verdict_on
from ces_core.evolution.state import BASE
from ces_core.learned.schema import NODE
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_rl.evolve.commands import evolve

DAY = 86_400.0


def even_policy(path: Path) -> Path:
    """One that looks at nothing but how even the nodes will be: right while jobs talk little."""
    import torch

    from ces_rl.envs.placement.env import Placement, PlacementSettings

    env = Placement(PlacementSettings())
    network = env.policy()
    with torch.no_grad():
        network.score.weight.zero_()
        network.prior.weight.zero_()
        network.prior.weight[0, NODE["even-end-above-least"]] = -1.0
    env.export(network, path, "even-1", {})
    return path


def log_day(folder: EvolutionFolder, day: int, regime: str, flows: float, seeds: Iterable[int]) -> None:
    solver = solver_of(folder, folder.state(), BASE)
    log = DecisionLog(folder.log, 64 * MIB)
    for number, seed in enumerate(seeds):
        problem = read_instance(random_instance(regime, seed, nodes=10, tasks=5, flow_probability=flows))
        if solver.solve(problem, seed=1).plan is not None:
            log.append(decided(f"d{day}-{number}.1", problem, NOON + DAY * day + number, solver))
    log.close()


@pytest.mark.usefixtures("training_compiled")
@pytest.mark.needs("torch")
def test_a_drifted_workload_leads_to_a_promotion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First jobs that talk little on wide links, then jobs that talk much on narrow ones; seeds 1000 and up."""
    folder = EvolutionFolder(tmp_path / "evolution")
    basis = basis_of("imitation-greedy", even_policy(tmp_path / "even.onnx"))
    folder.change(lambda state: state.model_copy(update={"basis": basis}))
    log_day(folder, 0, "thesis", 0.0, range(1000, 1030))
    for day in (1, 2, 3):
        log_day(folder, day, "tight", 0.8, range(1000 + 1000 * day, 1040 + 1000 * day))
    log_day(folder, 4, "tight", 0.8, range(5000, 5160))

    def run(*words: str) -> str:
        answer = CliRunner().invoke(evolve, [*words, "--folder", str(folder.path)], env={"COLUMNS": "200"})
        assert answer.exit_code == 0, answer.output
        return answer.output

    monkeypatch.setattr(Pairs, "slower", 1.0)  # times are those of a machine that does something else, too
    assert "v1: placement-" in run("train", "--updates", "2", "--episodes", "32", "--seed", "1")
    run("replay")
    verdict = verdict_on(folder, folder.state(), "v1", NOON)
    assert verdict.interval.low > 0.0
    assert verdict.refused == 0
    assert "v1 is live, and base its shadow: gain +0.0" in run("promote")
    assert "v1 promoted" in run("status")
