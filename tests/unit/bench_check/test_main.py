"""Both trees' benchmarks in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_check import __main__ as check
from bench_check.benchmarks import Benchmark, Results
from bench_check.trees import TREE, CheckError


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Who ran, in order; the former commit takes twice as long, and its heartbeats were not measured."""
    ran: list[str] = []

    def measured(tree: Path, benchmark: Benchmark, out: Path) -> Results:
        ran.append("present" if tree == TREE else "former")
        spread = {"p50": 100.0 if tree == TREE else 200.0, "p99": 300.0}
        return {"submit_to_running_ms": spread} | ({"heartbeat_ms": spread} if tree == TREE else {})

    monkeypatch.setattr(check, "installed", lambda name: tmp_path)
    monkeypatch.setattr(check, "measured", measured)
    return ran


def test_the_trees_take_turns_and_the_table_says_what_changed(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main(["main", "--rounds", "2", "--only", "control-plane"]) == 0
    assert runs == ["former", "present", "present", "former"]
    lines = {line.split("│")[1].strip(): line for line in capsys.readouterr().out.splitlines() if "│" in line}
    assert "0.50 to 0.50" in lines["submit to running, p50, ms"]
    assert "better" in lines["submit to running, p50, ms"]
    assert "1.00 to 1.00" in lines["submit to running, p99, ms"]
    assert "better" not in lines["submit to running, p99, ms"]
    assert lines["heartbeat round trip, p99, ms"].count("-") >= 3


def test_a_commit_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> Path:
        raise CheckError(f"git rev-parse: no {name}")

    monkeypatch.setattr(check, "installed", missing)
    assert check.main(["gone"]) == 2
    assert "no gone" in capsys.readouterr().err
