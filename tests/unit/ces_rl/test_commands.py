"""``ces train``: its flags, what it prints, and what it says where torch is missing."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ces_rl import commands, needs, plugins


def run_train(*words: object) -> Any:
    return CliRunner().invoke(commands.train, [str(word) for word in words], env={"COLUMNS": "200"})


def test_what_training_lacks_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "torch" else object())
    answer = run_train("ppo", "--updates", "1")
    assert answer.exit_code == 2
    assert "training needs torch: make install-train" in answer.output


@pytest.mark.needs("torch")
def test_a_folder_with_a_run_is_left_alone(tmp_path: Path) -> None:

    folder = tmp_path
    (folder / "checkpoint.pt").write_bytes(b"a run")
    answer = run_train("ppo", "--updates", "1", "--out", folder)
    assert answer.exit_code == 2
    assert "--resume" in answer.output
    assert [file.name for file in folder.iterdir()] == ["checkpoint.pt"]


@pytest.mark.parametrize(
    ("algorithm", "env"),
    [("ppo", "placement"), ("ppo", "thesis"), ("imitation", "placement"), ("cem", "start-weights"), ("es", "longrun")],
)
def test_every_setting_is_a_flag(algorithm: str, env: str) -> None:
    answer = run_train(algorithm, "--env", env, "--help")
    assert answer.exit_code == 0, answer.output
    for settings in (plugins.algorithm(algorithm).Settings, plugins.environment(env).Settings):
        for field in fields(settings):
            assert f"--{field.name.replace('_', '-')}" in answer.output


@pytest.mark.needs("torch")
def test_flags_reach_the_run_and_each_update_has_its_line(tmp_path: Path) -> None:
    words = ["ppo", "--env", "thesis", "--updates", 2, "--problems", 8, "--minibatch-size", 64, "--gae-lambda", 0.5,
             "--learning-rate", "0.001,0.0001", "--odds", "tight=2,scarce=1", "--tasks", "3,4", "--width", 8,
             "--validation", 2, "--ent-target", "none", "--out", tmp_path]  # fmt: skip
    answer = run_train(*words)
    assert answer.exit_code == 0, answer.output
    told = json.loads((tmp_path / "run.json").read_text())["settings"]
    assert (told["algorithm"]["gae_lambda"], told["algorithm"]["learning_rate"]) == (0.5, [0.001, 0.0001])
    assert told["algorithm"]["ent_target"] is None
    assert (told["env"]["odds"], told["env"]["tasks"]) == ({"tight": 2.0, "scarce": 1.0}, [3, 4])
    assert "update 1/2: policy_loss" in answer.output
    assert "update 2/2: policy_loss" in answer.output
    assert "before learning: random weights, no prior" in answer.output
    assert "log.csv" in answer.output
    shipped = run_train("ship", tmp_path, "--out", tmp_path / "shipped")
    assert shipped.exit_code == 0, shipped.output
    assert (tmp_path / "shipped" / "policy.onnx").exists()
    assert (tmp_path / "shipped" / "model-card.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ppo", "--env", "maze"], "there is no environment 'maze'; there are"),
        (["ppo", "--gae-lambda", "1.5"], "less than or equal to 1"),
        (["ppo", "--learning-rate", "0.1"], "--learning-rate"),
        (["ppo", "--odds", "tight"], "must look like name=number"),
        (["es", "--env", "longrun", "--pairs", "0"], "greater than or equal to 1"),
        (["ship", "nowhere"], "holds no run"),
    ],
)
def test_wrong_words_are_refused(words: list[str], said: str) -> None:
    answer = run_train(*words)
    assert answer.exit_code == 2
    assert said in " ".join(answer.output.replace("│", " ").split())


def test_help_names_every_algorithm_and_its_page_what_it_does() -> None:
    answer = run_train("--help")
    assert answer.exit_code == 0, answer.output
    for word in ("ppo", "imitation", "cem", "es", "ship", "Proximal policy optimisation"):
        assert word in answer.output


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--minutes", 1], "--minutes and --submit exclude each other"),
        (["--resume"], "--resume and --submit exclude each other"),
        (["--workers", "4:1"], "--workers 4:1: at least 1"),
    ],
)
def test_what_no_cluster_can_do_is_refused_before_anything_is_sent(flags: list[object], said: str) -> None:
    answer = run_train("es", "--env", "longrun", "--submit", *flags)
    assert answer.exit_code == 2
    assert said in " ".join(answer.output.split())
