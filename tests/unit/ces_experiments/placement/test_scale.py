"""``ces bench scale``: small runs, and what they must say."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench_command import run_bench

from ces_core.model.generate import random_instance
from ces_experiments.placement import scale as scale_module
from ces_experiments.placement.commands import scale
from ces_experiments.placement.scale import Measured, Taken, alone, decided, summarise
from ces_sim.decision import BadDecisionError

bench = partial(run_bench, scale)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would run in processes of their own runs in this one."""

    def alone(*arguments: Any) -> Measured:
        return decided(*arguments, *([()] if len(arguments) == 4 else []))

    monkeypatch.setattr(scale_module, "alone", alone)


def test_a_process_of_its_own_answers() -> None:
    instances = [random_instance("thesis", 1, nodes=4, tasks=2)]
    found = alone(instances, "first-fit-decreasing", 1, 1.0, (1.0,))
    assert len(found.new) == len(found.known[1.0]) == 1
    assert found.new[0].composite == found.known[1.0][0].composite
    assert found.memory_before > 2**20


@pytest.mark.usefixtures("here")
def test_sizes_solvers_and_limits_are_all_there(tmp_path: Path) -> None:
    shown = bench(
        "--nodes", "4,8", "--tasks", "2", "--jobs", "2", "--solvers", "greedy", "--reference", "greedy",
        "--time-limits", "0.5,1", "--long", "1", "--out", tmp_path,
    ).stdout  # fmt: skip
    found = json.loads((tmp_path / "results.json").read_text())
    assert set(found["sizes"]) == {"4", "8"}
    for size in found["sizes"].values():
        assert set(size["entries"]) == {"greedy @ 500 ms", "greedy @ 1000 ms"}
        for entry in size["entries"].values():
            assert (entry["first_ms"]["n"], entry["new_ms"]["n"], entry["wall_ms"]["n"]) == (1, 1, 2)
            assert entry["memory_mib"]["mean"] > 10
    for text in (shown, (tmp_path / "tables.md").read_text()):
        assert text.count("greedy @ 500 ms") == 2
    for name in ("summary.png", "by-size.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_quality_is_against_the_best_of_all_runs() -> None:
    def run(*composites: float | None) -> Measured:
        taken = [Taken(1.0, composite) for composite in composites]
        return Measured(taken, {0.1: taken}, 2**20, 3 * 2**20)

    found = summarise({"a": run(0.5, None, None), "b": run(0.4, 0.7, None)}, run(0.9, 0.6, None))
    assert found["placed_by_somebody"] == 2
    entries = found["entries"]
    assert entries["a @ 100 ms"]["regret"]["mean"] == pytest.approx(0.4)
    assert entries["b @ 100 ms"]["regret"]["mean"] == pytest.approx(0.25)
    assert entries["a @ 100 ms"]["composite_or_0"]["mean"] == pytest.approx(0.5 / 3)
    assert entries["a @ 100 ms"]["memory_grown_mib"]["mean"] == 2


def test_what_broke_in_the_other_process_is_raised_here() -> None:
    instances = [random_instance("thesis", seed, nodes=4, tasks=2) for seed in (1, 2)]  # the second on another cluster
    with pytest.raises(BadDecisionError, match="solver first-fit-decreasing broke") as caught:
        alone(instances, "first-fit-decreasing", 1, 1.0)
    assert caught.value.instance == instances[1]
    assert caught.value.answer is not None


@pytest.mark.parametrize(
    ("option", "value"),
    [("--nodes", "1"), ("--topology", "tree"), ("--time-limits", ""), ("--reference", "oracle"), ("--jobs", "1")],
)
def test_bad_options_are_named(option: str, value: str, tmp_path: Path) -> None:
    assert option in bench(option, value, "--out", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()
