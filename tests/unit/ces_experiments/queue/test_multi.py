"""``ces bench multi``: a small run, and what it must say."""

from __future__ import annotations

import csv
import json
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from bench_command import run_bench

from ces_core.queue.parameters import Parameters
from ces_core.queue.policies import GROUP
from ces_core.queue.reservations import Solve
from ces_core.queue.state import Decisions, Start, State
from ces_experiments.queue.commands import multi
from ces_experiments.queue.multi_measures import MEASURES, jain
from ces_experiments.queue.multi_report import AGAINST, best, tables

SMALL = (
    "--jobs",
    "12",
    "--nodes",
    "5",
    "--tasks",
    "1-2",
    "--repeats",
    "2",
    "--loads",
    "0.7",
    "--bound",
    "60",
    "--solver",
    "greedy",
)


bench = partial(run_bench, multi)


def figures(out: Path, *more: object) -> Any:
    bench(*SMALL, "--no-plots", "--out", out, *more)
    found = json.loads((out / "results.json").read_text())["regimes"]
    for loads in found.values():
        for told in loads.values():
            for policy in told["policies"].values():
                assert policy.pop("decision_ms")["n"] == policy.pop("cpu_s")["n"] == 2
    return found


def test_same_seed_same_figures_however_many_processes(tmp_path: Path) -> None:
    first = figures(tmp_path / "a")
    assert first == figures(tmp_path / "b", "--processes", 2)
    assert first != figures(tmp_path / "c", "--seed", 1)
    policies = first["tight"]["0.7"]["policies"]
    for policy in ("fcfs", "fcfs-backfill", "sjf", "priority", "easy", "drf", "las", "ces-multi"):
        for name in (policy, f"{policy} (least-allocated)"):
            assert policies[name].keys() == set(MEASURES) - {"decision_ms"} | {"ahead_s"}
    assert {"without sparing room", "without reservations", "without protection", "without a window"} < policies.keys()


def test_tables_and_plots_have_everything(tmp_path: Path) -> None:
    shown = bench(*SMALL, "--cycles", 3, "--time-limit", 0.005, "--out", tmp_path).stdout
    page = (tmp_path / "tables.md").read_text()
    for text in (shown, page):
        assert text.count("Regime tight, offered load 0.7") == 2
        assert "1000 waiting jobs on 100 nodes" in text
    assert (tmp_path / "tight.png").read_bytes().startswith(b"\x89PNG")


def test_the_best_of_the_others_is_found_by_each_measure_alone() -> None:
    def policy(wait: float, use: float) -> dict[str, Any]:
        told = {"mean": 1.0, "std": 0.0, "n": 1}
        return dict.fromkeys((*MEASURES, "ahead_s"), told) | {
            "wait_s": told | {"mean": wait},
            "cpu": told | {"mean": use},
        }

    policies = {"ces-multi": policy(1, 0.9), "sjf": policy(2, 0.5), "fcfs": policy(4, 0.8), "window of 1": policy(0, 1)}
    assert [best(policies, what, ("sjf", "fcfs")) for what in ("wait_s", "cpu")] == ["sjf", "fcfs"]
    question = {"jobs": 1, "trace": None, "nodes": 1, "repeats": 1, "seed": 1, "solver": "greedy", "bound_s": 9.0}
    question["misjudged"] = 0.0
    table = tables({"question": question, "regimes": {"tight": {"0.9": {"policies": policies}}}})[0]
    assert len(table.rows) == len(AGAINST)
    assert table.rows[0] == ["mean wait, s", "1", "2", "-50.0 %", "sjf"]


def test_many_jobs_are_few_shapes_again_and_cost_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ces_experiments.queue.multi.SHAPES", 10)
    monkeypatch.setattr("ces_experiments.queue.multi_report.MANY", 40)
    shown = bench(*SMALL, "--jobs", 40, "--policies", "ces-multi,sjf", "--no-plots", "--out", tmp_path).stdout
    assert "CPU time to simulate 40 jobs" in shown
    policies = json.loads((tmp_path / "results.json").read_text())["regimes"]["tight"]["0.7"]["policies"]
    assert set(policies) == {"ces-multi", "sjf"}


def test_each_run_and_each_job_is_kept_on_any_network(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "arrival_s,duration_s,tasks,user\n" + "".join(f"{9 * i},30,1,x\n" for i in range(30))
    )
    only = ("--policies", "sjf,ces-multi", "--no-plots", "--topology", "ring", "--out", tmp_path)
    shown = bench(*SMALL, *only, "--trace", tmp_path / "trace.csv", "--as-timed", "--processes", 2)
    assert "ignored columns: user" in shown.stderr
    assert "arrivals as timed: up to 12 jobs of trace.csv on a ring network of 5 nodes" in " ".join(
        shown.stdout.split()
    )
    found = json.loads((tmp_path / "results.json").read_text())["regimes"]["tight"]["as timed"]["policies"]["sjf"]
    runs, jobs = (list(csv.DictReader((tmp_path / name).open())) for name in ("runs.csv", "jobs.csv"))
    assert [(row["policy"], row["repeat"]) for row in runs] == [(p, r) for r in "01" for p in ("sjf", "ces-multi")]
    waits = [float(row["wait_s"]) for row in runs if row["policy"] == "sjf"]
    assert sum(waits) / 2 == pytest.approx(found["wait_s"]["mean"], rel=1e-5)
    arrivals = [float(row["arrival_s"]) for row in jobs if (row["policy"], row["repeat"]) == ("sjf", "1")]
    assert len(arrivals) == 12
    assert all(arrival % 9 == 0 for arrival in arrivals)
    assert {row["tenant"] for row in jobs} <= {f"tenant-{i}" for i in range(4)}


def test_misjudged_durations_are_stated_and_told(tmp_path: Path) -> None:
    only = ("--policies", "sjf,ces-multi")
    found = [figures(tmp_path / name, *only, "--misjudged", name) for name in ("0", "2")]
    assert found[0] != found[1]
    assert "durations misjudged by 2" in (tmp_path / "2" / "tables.md").read_text()


def test_fairness_is_one_where_all_have_the_same() -> None:
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("option", "value"), [("--solver", "nobody"), ("--regime", "wide"), ("--loads", "0"), ("--trace", "none.csv")]
)
def test_bad_options_are_named(option: str, value: str, tmp_path: Path) -> None:
    assert option in bench(option, value, "--out", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()


def last_come_first_served(
    state: State, parameters: Parameters, solve: Solve, fragmentation_aware: Solve | None = None
) -> Decisions:
    ledger, starts, refused = state.ledger.copy(), [], {}
    for job in sorted(state.waiting, key=lambda job: -job.submitted_s):
        result = solve(job, ledger.cluster)
        if result.plan is not None:
            ledger.hold(job.name, job.on(ledger.cluster), result.plan)
            starts.append(Start(job.name, result.plan))
        elif result.reason is not None:
            refused[job.name] = result.reason
    return Decisions(tuple(starts), refused=refused)


def test_a_policy_of_another_package_takes_part_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint("lcfs", f"{__name__}:last_come_first_served", GROUP), EntryPoint("broken", "none:x", GROUP)]
    monkeypatch.setattr("ces_core.queue.policies.entry_points", lambda group: points if group == GROUP else [])
    found = figures(tmp_path, "--policies", "lcfs,fcfs-backfill")["tight"]["0.7"]["policies"]
    assert found.keys() == {"lcfs", "fcfs-backfill"}
    assert found["lcfs"]["wait_s"] != found["fcfs-backfill"]["wait_s"]
    refused = bench(*SMALL, "--policies", "broken", "--out", tmp_path, code=2).stderr
    assert "--policies" in refused
    assert "none:x" in refused
