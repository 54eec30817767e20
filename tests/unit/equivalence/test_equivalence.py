"""The tool that proves that nothing changed: it finds the same answers equal, and a changed answer."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from equivalence import core_adapter, recorder
from equivalence.__main__ import main
from equivalence.parts import PARTS
from equivalence.record import Part, digest, first_difference, text

ASKED = ("greedy", "kubernetes")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three instances and two solvers, two networks and one reroute."""

    def cut(part: Part, most: int) -> Part:
        def draw(share: float) -> Any:
            for number, case in zip(range(most), part.draw(share), strict=False):
                yield case | ({"ask": [*ASKED]} if "ask" in case else {"name": f"{case['name']}-{number}"})

        return dataclasses.replace(part, draw=draw)

    kept = {"placements": 3, "checks": 3, "reroutes": 1, "networks": 2}
    parts = {name: cut(PARTS[name], most) for name, most in kept.items()}
    for name in [*PARTS]:
        monkeypatch.delitem(PARTS, name)
    PARTS.update(parts)


@pytest.mark.usefixtures("few")
def test_a_record_is_equal_to_itself_and_a_changed_answer_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["record", str(tmp_path)]) == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert {name: part["cases"] for name, part in manifest["parts"].items()} == {
        "placements": 3, "checks": 3, "reroutes": 1, "networks": 2,
    }  # fmt: skip
    assert main(["check", str(tmp_path)]) == 0
    assert "0 differ" in capsys.readouterr().out

    right = core_adapter.solve

    def wrong(case: dict[str, Any], solver: str) -> dict[str, Any]:
        answer = right(case, solver)
        if solver == "kubernetes" and case["name"].endswith("-1"):
            answer["bound"] = 0.1 + 0.2
        return answer

    monkeypatch.setattr(core_adapter, "solve", wrong)
    assert main(["check", str(tmp_path), "placements"]) == 1
    told = capsys.readouterr().out
    assert "differs: placements, plain-1, kubernetes: answer.bound was null, is 0.30000000000000004" in told
    assert "6 answers" in told
    assert ", 1 differ" in told


@pytest.mark.usefixtures("few")
def test_an_answer_that_fails_now_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["record", str(tmp_path), "placements"])
    monkeypatch.setattr(core_adapter, "SOLVERS", {})
    assert main(["check", str(tmp_path)]) == 1
    assert "KeyError" in capsys.readouterr().out


def test_a_folder_without_a_record_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "holds no whole record" in capsys.readouterr().err
    assert not (tmp_path / recorder.MANIFEST).exists()


def test_a_renamed_solver_is_asked_by_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_adapter, "RENAMED", {"eager": "greedy", "eager-search": "search"})
    assert core_adapter.solver_of("eager").name == "greedy"
    assert core_adapter.solver_of("eager-search+foreseeing").name == "search"
    assert core_adapter.solver_of("smart+fill").name == "smart+fill"


def test_values_are_told_apart_bit_by_bit() -> None:
    assert text(0.1 + 0.2) != text(0.3)
    assert text(-0.0) != text(0.0)
    assert text({"b": 1, "a": 2}) == text({"a": 2, "b": 1})
    assert digest([1.0]) != digest([1])
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == "answer.a[1].b was 2, is 3"
