"""Runs from beginning to end: what they leave, when they go on, and what is shipped."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ces_rl.algorithms.base import RefusedError
from ces_rl.run import Run, RunExistsError, fingerprint, ship, train

SMALL = {"updates": 2, "problems": 6, "group": 4, "minibatch_size": 64, "evaluate_every": 2}
WIDTH = {"width": 16, "validation": 3}
REGIMES = {"thesis", "tight", "scarce"}


def small(folder: Path, **settings: Any) -> Run:
    return Run.make("ppo", "placement", 1, SMALL | settings, WIDTH, folder)


@pytest.mark.needs("torch")
def test_a_run_leaves_policy_card_and_log_and_goes_on_only_when_told(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def go(resume: bool) -> dict[str, Any]:
        return train(small(tmp_path), resume=resume, news=lambda done, total, _: seen.append((done, total)))

    card = go(resume=False)
    assert seen == [(1, 2), (2, 2)]
    assert json.loads((tmp_path / "model-card.json").read_text()) == json.loads(json.dumps(card))
    assert card["complete"]
    assert card["scores"]["greedy"].keys() == REGIMES
    assert list((tmp_path / "tensorboard").iterdir())
    with pytest.raises(RunExistsError, match="--resume"):
        go(resume=False)
    again = go(resume=True)
    assert again["version"] == card["version"]


@pytest.mark.needs("torch")
def test_a_thesis_run_leaves_a_policy_that_the_core_takes(tmp_path: Path) -> None:
    from ces_core.learned.thesis.policy import BANDWIDTH, MAPPING, load_thesis_policy

    settings = {"updates": 2, "problems": 24, "minibatch_size": 64, "evaluate_every": 2}
    card = train(Run.make("ppo", "thesis", 1, settings, WIDTH, tmp_path))
    policy = load_thesis_policy(tmp_path / "policy.onnx", MAPPING, BANDWIDTH)
    assert policy.version == card["version"]
    assert policy.card["settings"]["env"]["heuristic"] == [0.8, 0.1]
    assert card["scores"]["greedy"].keys() == REGIMES


@pytest.mark.needs("torch")
def test_card_and_log_say_what_there_was_before_learning(tmp_path: Path) -> None:
    said: list[str] = []
    card = train(small(tmp_path), say=said.append)
    before = card["before learning"]
    assert "linear prior" in before["what"]
    assert before.keys() - {"what"} == card["scores"].keys() - {"instances"} == {"greedy", "best of 64"}
    assert before["greedy"].keys() == REGIMES
    assert any("before learning" in line for line in said)
    rows = list(csv.DictReader((tmp_path / "log.csv").open(newline="")))
    assert [row["updates"] for row in rows] == ["0", "1", "2"]
    assert float(rows[0]["greedy/tight/regret"]) == pytest.approx(before["greedy"]["tight"]["regret"], nan_ok=True)
    assert all(rows[2][name] for name in ("policy_loss", "value_loss", "approx_kl", "success", "greedy/thesis/solved"))


@pytest.mark.needs("torch")
def test_a_run_in_two_parts_is_the_run_in_one(tmp_path: Path) -> None:
    """Weights, log and the scores before learning."""
    whole = train(small(tmp_path / "whole", updates=3))
    part = tmp_path / "part"
    first = small(part, updates=3)
    assert train(first, minutes=0.0)["updates"] == 0
    goes = small(part, updates=3)
    goes.restore()
    goes.algorithm.update()
    goes.save()
    card = train(small(part, updates=3), resume=True)
    assert (card["version"], card["steps"]) == (whole["version"], whole["steps"])
    assert json.dumps(card["before learning"]) == json.dumps(whole["before learning"])
    rows = list(csv.DictReader((part / "log.csv").open(newline="")))
    assert rows[-1]["updates"] == "3"
    with pytest.raises(ValueError, match="other settings"):
        train(small(part, updates=9), resume=True)


@pytest.mark.needs("torch")
def test_minutes_are_kept_with_the_last_evaluation_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of the test: an evaluation takes 30 s, an update 50 s, and there are five minutes."""
    from ces_rl import run as module

    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    made = small(tmp_path, updates=100, evaluate_every=100)

    def update(own: Any = made.algorithm.update) -> dict[str, float]:
        now[0] += 50.0
        found: dict[str, float] = own()
        return found

    def evaluate(solution: Any, *, thorough: bool, own: Any = made.env.evaluate) -> Any:
        now[0] += 30.0
        return own(solution, thorough=thorough)

    monkeypatch.setattr(made.algorithm, "update", update)
    monkeypatch.setattr(made.env, "evaluate", evaluate)
    said: list[str] = []
    card = train(made, minutes=5.0, say=said.append)
    assert card["updates"] == 4  # 30 + 4 * 50 + 36 for the last evaluation; a fifth would end after 300
    assert now[0] <= 300.0
    assert not card["complete"]
    assert "stopped after 4 of 100 updates, to end within 5 minutes" in said


@pytest.mark.needs("torch")
def test_an_unfinished_run_can_be_shipped(tmp_path: Path) -> None:
    from ces_core.learned.policy import load_policy

    run = small(tmp_path / "run", updates=3)
    train(run, minutes=0.0)
    run.algorithm.update()
    run.save()
    opened = Run.open(tmp_path / "run")
    assert opened.algorithm.updates == 1
    card = ship(opened, tmp_path / "shipped")
    policy = load_policy(tmp_path / "shipped" / "policy.onnx")
    assert (policy.version, card["updates"], card["complete"]) == (card["version"], 1, False)
    assert policy.card["before learning"]["what"] == card["before learning"]["what"]
    with pytest.raises(ValueError, match="holds no run"):
        Run.open(tmp_path)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("algorithm", "env", "said"),
    [
        ("ppo", "longrun", "ppo does not learn longrun: .* use cem or es"),
        ("imitation", "start-weights", "imitation does not learn start-weights: .* use cem or es"),
        ("imitation", "thesis", "imitation does not learn thesis: nobody can say .* use ppo or es"),
        ("cem", "thesis", r"cem does not learn thesis: it has \d+ numbers, and cem finds at most 500: use es or ppo"),
        ("es", "start-weights", "es does not learn start-weights: it has several objectives"),
    ],
)
def test_pairs_that_make_no_sense_are_refused_with_the_reason(algorithm: str, env: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        Run.make(algorithm, env, 0, {}, {}, Path("nowhere"))


@pytest.mark.needs("torch")
@pytest.mark.parametrize(("algorithm", "env"), [("cem", "placement"), ("es", "placement"), ("es", "thesis")])
def test_searches_for_numbers_learn_policies_too(algorithm: str, env: str, tmp_path: Path) -> None:
    settings = {"updates": 1} | ({"draws": 4} if algorithm == "cem" else {"pairs": 2})
    run = Run.make(algorithm, env, 1, settings, WIDTH, tmp_path)
    untrained = fingerprint(run.algorithm.solution)
    card = train(run)
    assert not card["version"].endswith(untrained)
    assert (tmp_path / "policy.onnx").exists()
