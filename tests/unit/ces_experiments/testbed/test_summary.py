"""What the experiment tells of many runs: tables, plots, and how much sooner one scheduler's jobs are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from experiment_runs import run_of

from ces_experiments.testbed.question import PLAIN
from ces_experiments.testbed.report import REPORT
from ces_experiments.testbed.summary import LeftOut, by_seed, left_out, reached, sooner, summary, times


@pytest.fixture
def results() -> dict[str, Any]:
    table = {
        ("imitation", "gossip"): [5.0, 10.0],
        (PLAIN, "gossip"): [10.0, 40.0],
        ("imitation", "etree"): [10.0, None],
        (PLAIN, "etree"): [None, 20.0],
    }
    runs = [
        run_of(seed, architecture, scheduler, seconds)
        for (scheduler, architecture), told in table.items()
        for seed, seconds in enumerate(told, 1)
    ]
    runs += [run_of(seed, name, "random", None, placed=False) for name in ("gossip", "etree") for seed in (1, 2)]
    machine = {"cpu": "a processor", "cores": 2, "python": "3.11", "command": "x", "commit": "y", "load_average": 0.1}
    return {
        "question": {
            "schedulers": ["random", "imitation", PLAIN], "architectures": ["gossip", "etree"], "seeds": [1, 2],
            "accuracy": 0.9, "limit_s": 90.0,
        },
        "machine": machine,
        "runs": {f"{run['seed']} {run['architecture']} {run['scheduler']}": run for run in runs},
    }  # fmt: skip


def test_how_much_sooner_pairs_runs_by_seed_and_architecture(results: dict[str, Any]) -> None:
    runs = list(results["runs"].values())
    found = sooner([run for run in runs if run["architecture"] == "gossip"], "imitation", PLAIN, 90)
    assert found is not None
    assert (found.pairs, found.least, found.most, found.cut_mine, found.cut_other) == (2, 2, 4, 0, 0)
    assert found.mean == pytest.approx(8**0.5)
    whole = sooner(runs, "imitation", PLAIN, 90)
    assert whole is not None
    assert (whole.pairs, whole.cut_mine, whole.cut_other) == (4, 1, 1)
    assert whole.mean == pytest.approx((2 * 4 * 9 * 20 / 90) ** 0.25)
    each = by_seed(runs, "imitation", PLAIN, ["gossip", "etree"], 90)
    assert {seed: found and found.mean for seed, found in each.items()} == pytest.approx(
        {1: 18**0.5, 2: (4 * 20 / 90) ** 0.5}
    )
    assert sooner(runs, "random", PLAIN, 90) is None


def test_only_an_accuracy_that_was_told_is_reached() -> None:
    assert reached(run_of(1, "gossip", "x", 5.0, best=0.9))
    assert not reached(run_of(1, "gossip", "x", 5.0, best=0.8999))  # its rounds were used up
    assert not reached(run_of(1, "gossip", "x", None))
    assert not reached(run_of(1, "gossip", "x", None, placed=False))
    cut = run_of(1, "gossip", "x", 88.0)
    cut["training"]["ended"] = False
    assert not reached(cut)
    exact = run_of(1, "gossip", "x", 5.0, best=0.9139) | {"accuracy": 0.91388889}  # workers tell four digits
    assert reached(exact)


def test_a_run_that_was_cut_counts_with_the_time_that_it_had(results: dict[str, Any]) -> None:
    runs = results["runs"]
    runs[f"1 etree {PLAIN}"] = run_of(1, "etree", PLAIN, 80.0)
    runs[f"1 etree {PLAIN}"]["training"]["ended"] = False
    found = sooner([runs["1 etree imitation"], runs[f"1 etree {PLAIN}"]], "imitation", PLAIN, 90)
    assert found is not None
    assert (found.mean, found.cut_mine, found.cut_other) == (pytest.approx(8), 0, 1)


def test_pairs_that_no_mean_has_are_counted(results: dict[str, Any]) -> None:
    runs = results["runs"]
    assert left_out(runs.values(), "random", PLAIN) == LeftOut(4, 0, 0)
    assert left_out(runs.values(), "imitation", PLAIN) == LeftOut(0, 0, 0)
    runs[f"1 gossip {PLAIN}"] = run_of(1, "gossip", PLAIN, None, placed=False)
    runs["2 etree imitation"] |= {"training": None, "failed": "a worker ended"}
    assert left_out(runs.values(), "imitation", PLAIN) == LeftOut(0, 1, 1)
    whole = sooner(runs.values(), "imitation", PLAIN, 90)
    assert whole is not None
    assert whole.pairs == 2
    assert by_seed(runs.values(), "imitation", PLAIN, ["gossip", "etree"], 90) == {1: None, 2: None}
    row = REPORT.tables(results)[0].rows[1]
    assert row[-4:] == ["-, -", "0", "1", "1"]
    failed = summary(results)["etree"]["imitation"]
    assert (failed["placed"], failed["reached"], failed["failed"], failed["seconds"]["n"]) == (2, 1, 1, 1)


def test_what_was_not_placed_or_not_reached_is_counted_as_that(results: dict[str, Any]) -> None:
    found = summary(results)
    assert (found["all"]["random"]["runs"], found["all"]["random"]["placed"]) == (4, 0)
    assert found["all"]["random"]["composite"] == {"n": 0}
    etree = found["etree"]["imitation"]
    assert (etree["placed"], etree["reached"], etree["seconds"]["max"]) == (2, 1, 90)
    assert times(run for run in results["runs"].values() if run["scheduler"] == "imitation") == ([5, 10, 10], 4)


def test_tables_and_plots_hold_every_scheduler(results: dict[str, Any], tmp_path: Path) -> None:
    sooner_table, planned, measured, took = REPORT.tables(results)
    assert [row[0] for row in sooner_table.rows] == ["random", "imitation"]
    assert sooner_table.rows[0][1:] == ["-", "-", "-", "-, -", "4", "0", "0"]
    assert sooner_table.rows[1][1:] == ["2.83 (2)", "~1.41 (2)", "~2.00 (4)", ">4.24, <0.94", "0", "0", "0"]
    assert "both had a place" in sooner_table.title
    assert len(planned.rows) == len(took.rows) == 9
    assert [row[0] for row in measured.rows] == ["random", "imitation", PLAIN]
    assert all(len(row) == len(table.columns) for table in REPORT.tables(results) for row in table.rows)
    REPORT.draw(results, tmp_path)
    drawn = {path.stem for path in tmp_path.iterdir()}
    assert drawn == {"planned", "time-to-accuracy"}


def test_without_the_plain_network_nothing_is_compared_with_it(results: dict[str, Any]) -> None:
    results["question"]["schedulers"].remove(PLAIN)
    assert len(REPORT.tables(results)) == 3
