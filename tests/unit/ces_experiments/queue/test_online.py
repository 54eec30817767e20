"""``ces bench online``: small runs, and what they must say."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench_command import run_bench

from ces_experiments.queue.commands import online

SMALL = ("--jobs", "10", "--nodes", "4", "--tasks", "1-2", "--repeats", "2", "--loads", "0.5,2", "--time-limit", "0")


bench = partial(run_bench, online)


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


def test_each_run_and_each_job_is_kept(tmp_path: Path) -> None:
    found = run(tmp_path)["loads"]["2"]["solvers"]["greedy"]
    runs, jobs = (list(csv.DictReader((tmp_path / name).open())) for name in ("runs.csv", "jobs.csv"))
    mine = [float(row["accepted"]) for row in runs if (row["load"], row["solver"]) == ("2", "greedy")]
    assert sum(mine) / len(mine) == pytest.approx(found["accepted"]["mean"], rel=1e-5)
    assert len(runs) == 2 * 2 * 2
    assert len(jobs) == 10 * len(runs)
    for job in jobs:
        assert bool(job["started_s"]) != bool(job["left_s"])
        if job["started_s"]:
            assert float(job["waited_s"]) == float(job["started_s"]) - float(job["arrival_s"])


def test_a_trace_keeps_its_times_where_asked_and_ignored_columns_are_told(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("arrival_s,duration_s,tasks,cpu,memory\n7,10,1,4,8\n12,10,2,4,8\n90,20,2,4,8\n")
    words = (*SMALL, "--solvers", "greedy", "--no-plots", "--trace", tmp_path / "jobs.csv", "--as-timed")
    shown = bench(*words, "--out", tmp_path)
    assert "ignored columns: cpu, memory" in shown.stderr
    assert "Arrivals as timed" in shown.stdout
    jobs = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    assert [float(job["arrival_s"]) for job in jobs] == [0, 5, 83] * 2
    assert json.loads((tmp_path / "results.json").read_text())["loads"].keys() == {"as timed"}
    assert "--as-timed" in bench("--as-timed", "--out", tmp_path / "none", code=2).stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [("--policy", "lifo"), ("--regime", "tight,scarce"), ("--loads", "0"), ("--loads", ""), ("--jobs", "9")],
)
def test_bad_options_are_named(option: str, value: str, tmp_path: Path) -> None:
    assert option in bench(option, value, "--out", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()
