"""``ces bench online``: small runs, and what they must say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ces_core.bench.commands import online
from ces_core.bench.online import Question, paced

SMALL = ("--jobs", "10", "--nodes", "4", "--tasks", "1-2", "--repeats", "2", "--loads", "0.5,2", "--time-limit", "0")


def bench(*arguments: object, code: int = 0) -> Any:
    app = typer.Typer()
    app.command()(online)
    run = CliRunner().invoke(app, [str(word) for word in arguments])
    assert run.exit_code == code, run.output + repr(run.exception)
    return run


def without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_times(each) for key, each in value.items() if key != "wall_ms"}
    return value


def run(out: Path, *more: object) -> dict[str, Any]:
    bench(*SMALL, "--solvers", "greedy,random", "--no-plots", "--out", out, *more)
    return json.loads((out / "results.json").read_text())


def test_same_seed_same_figures(tmp_path: Path) -> None:
    first, again = run(tmp_path / "a"), run(tmp_path / "b")
    assert without_times(first["loads"]) == without_times(again["loads"])
    assert without_times(first["loads"]) != without_times(run(tmp_path / "c", "--seed", "1")["loads"])
    assert set(first["loads"]) == {"0.5", "2"}
    for load in first["loads"].values():
        assert set(load["solvers"]) == {"greedy", "random"}
        assert load["solvers"]["greedy"]["accepted"]["n"] == 2


def test_tables_and_plots_have_everything(tmp_path: Path) -> None:
    shown = bench(*SMALL, "--solvers", "greedy,random", "--policy", "fcfs", "--out", tmp_path).stdout
    page = (tmp_path / "tables.md").read_text()
    for text in (shown, page):
        assert text.count("Offered load") == 2
        assert text.count("policy fcfs,") == 2
    for name in ("summary.png", "by-load.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_trace_is_found_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs.csv").write_text("submit_time,duration,num_gpu\n0,10,1\n5,10,64\n9,20,2\n")
    assert "CES_DATA_DIR" in bench(*SMALL, "--trace", "jobs.csv", "--out", tmp_path / "out", code=2).stderr
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    question = run(tmp_path / "out", "--trace", "jobs.csv")["question"]
    assert question["trace"] == "jobs.csv"
    (tmp_path / "jobs.csv").write_text("submit_time,duration\n0,10\n")
    said = bench(*SMALL, "--trace", "jobs.csv", "--out", tmp_path / "none", code=2).stderr
    assert "--trace" in said
    assert "trace.tasks" in said
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--policy", "lifo"), ("--regime", "tight,scarce"), ("--loads", "0"), ("--loads", ""), ("--jobs", "9")],
)
def test_bad_options_are_named(option: str, value: str, tmp_path: Path) -> None:
    assert option in bench(option, value, "--out", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()


def test_the_pace_offers_the_load() -> None:
    question = Question((1.0,), "tight", 5, "random", 50, (1, 2), 60.0, 60.0, "fcfs", 1, 3, ("greedy",), None)
    cluster, jobs = question.cluster(0), question.workload(0)
    for load in (0.5, 2.0):
        arriving = paced(jobs, cluster, load)
        span = arriving[-1].arrival_s
        work = [
            sum(job.duration_s * sum(getattr(task, what) for task in job.tasks) for job in arriving)
            for what in ("cpu", "memory")
        ]
        free = cluster.node_free[:2].sum(axis=1)
        assert max(work / free / span) == pytest.approx(load)
        gaps = {round(b.arrival_s / a.arrival_s, 6) for a, b in zip(jobs, arriving, strict=True)}
        assert len(gaps) == 1
