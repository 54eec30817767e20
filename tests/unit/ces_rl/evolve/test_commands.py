"""``ces evolve``: from a log to a version that is live, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evolving_policies import NOON, added, begun, logged, poisoned
from typer.testing import CliRunner

from ces_core.evolution.decision_log import segments
from ces_core.evolution.folder import EvolutionFolder
from ces_core.evolution.pairing import Pair
from ces_core.evolution.state import BASE
from ces_rl.evolve.commands import evolve

pytestmark = pytest.mark.usefixtures("policy_compiled")


def run(folder: Path, *words: object) -> Any:
    given = [str(word) for word in words]
    return CliRunner().invoke(evolve, given, env={"CES_EVOLUTION": str(folder), "COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path) -> EvolutionFolder:
    return begun(tmp_path / "evolution")


def better(folder: EvolutionFolder, name: str) -> None:
    pairs = [Pair(f"x{number}.1", 0.02 + 0.001 * (number % 2), False, (1.0, 1.0)) for number in range(150)]
    folder.keep(folder.candidacy(name, folder.state()), pairs)


@pytest.mark.parametrize("words", [["status"], ["replay"], ["promote"], ["rollback"], ["freeze"]])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, words: list[str]) -> None:
    answer = run(tmp_path / "nowhere", *words)
    assert answer.exit_code == 2
    assert "is no folder of an evolving policy; name the one in CES_EVOLUTION" in answer.output
    assert not (tmp_path / "nowhere").exists()


def test_what_is_missing_is_said(folder: EvolutionFolder) -> None:
    assert "there is no candidate: ces evolve train makes one" in run(folder.path, "promote").output
    assert "there is no version 'v7'; known: none yet" in run(folder.path, "replay", "v7").output
    assert "there is no former version to come back" in run(folder.path, "rollback").output
    assert "no decisions are logged yet" in run(folder.path, "status").output


def test_a_foreign_log_is_refused_and_a_torn_one_counted(folder: EvolutionFolder) -> None:
    logged(folder.log, range(6))
    (segment,) = segments(folder.log)
    segment.write_bytes(segment.read_bytes()[:-5])
    assert "1 torn lines are left out" in run(folder.path, "status").output
    (folder.log / "decisions-0.log").write_text("a diary\n")
    answer = run(folder.path, "status")
    assert answer.exit_code == 2
    assert "decisions-0.log: line 1: is no log of decisions of CES" in answer.output


def test_a_candidate_is_compared_on_held_out_decisions_and_again_only_on_new_ones(folder: EvolutionFolder) -> None:
    count = logged(folder.log, range(12))
    name = added(folder, learned_until_s=NOON + 60.0).name
    answer = run(folder.path, "replay")
    assert answer.exit_code == 0, answer.output
    assert (
        f"compared now: {count - 2}; against it: {count - 2} decisions are compared, and 100 are least" in answer.output
    )
    assert "compared now: 0" in run(folder.path, "replay", name).output
    assert {pair.gain for pair in folder.pairs(folder.candidacy(name, folder.state()))} == {0.0}


def test_what_is_better_is_promoted_shown_taken_back_and_no_candidate_any_more(folder: EvolutionFolder) -> None:
    name = added(folder).name
    better(folder, name)
    assert "v1 is live, and base its shadow: gain +0.0205" in run(folder.path, "promote").output
    shown = run(folder.path, "status").output
    assert "live" in shown
    assert "v1 promoted: gain +0.0205" in shown
    assert "v1 is live already" in run(folder.path, "promote", name).output
    assert "base is live again: too hot" in run(folder.path, "rollback", "--why", "too hot").output
    assert "there is no candidate" in run(folder.path, "promote").output
    assert "taken back" in run(folder.path, "status").output


def test_what_speaks_against_a_version_is_said_and_may_be_overruled(folder: EvolutionFolder) -> None:
    added(folder)
    answer = run(folder.path, "promote")
    assert answer.exit_code == 2
    assert "v1 is not promoted:" in answer.output
    assert "0 decisions are compared, and 100 are least" in answer.output
    assert folder.state().live == BASE
    assert "v1 is live" in run(folder.path, "promote", "--force").output
    assert folder.state().history[-1].why.endswith("forced")


def test_a_freeze_stops_promotions_even_forced_ones(folder: EvolutionFolder) -> None:
    better(folder, added(folder).name)
    assert "evolution is frozen; base is live" in run(folder.path, "freeze", "--why", "holiday").output
    for words in (["promote"], ["promote", "--force"]):
        answer = run(folder.path, *words)
        assert (answer.exit_code, folder.state().live) == (2, BASE)
        assert "evolution is frozen" in answer.output
    assert "evolution goes on" in run(folder.path, "freeze", "--off").output
    assert "v1 is live" in run(folder.path, "promote").output


def test_a_policy_that_cannot_be_used_is_not_promoted(folder: EvolutionFolder, tmp_path: Path) -> None:
    (tmp_path / "odd.onnx").write_bytes(b"odd")
    added(folder, tmp_path / "odd.onnx")
    answer = run(folder.path, "promote", "--force")
    assert answer.exit_code == 2
    assert "is no ONNX file" in answer.output
    assert folder.state().live == BASE


@pytest.mark.needs("torch")
def test_a_poisoned_candidate_is_not_promoted(folder: EvolutionFolder, tmp_path: Path) -> None:
    logged(folder.log, range(170))
    added(folder, poisoned(tmp_path / "worst.onnx"))
    answer = run(folder.path, "replay")
    assert answer.exit_code == 0, answer.output
    assert "may be 0" in answer.output
    assert "is not promoted" in run(folder.path, "promote").output


@pytest.mark.usefixtures("training_compiled")
@pytest.mark.needs("torch")
def test_a_candidate_is_trained_on_the_log(folder: EvolutionFolder) -> None:
    count = logged(folder.log, range(40))
    answer = run(folder.path, "train", "--updates", 1, "--episodes", 4, "--seed", 2)
    assert answer.exit_code == 0, answer.output
    (version,) = folder.versions()
    assert (version.name, version.seed, version.synthetic) == ("v1", 2, version.decisions)
    assert 0.75 * count <= version.decisions < count
    assert "compare it: ces evolve replay v1" in answer.output
    replayed = run(folder.path, "replay", "v1")
    assert replayed.exit_code == 0, replayed.output
    assert f"compared now: {count - version.decisions}" in replayed.output
