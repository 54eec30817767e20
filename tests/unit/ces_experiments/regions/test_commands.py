"""``ces bench regions``: small runs, and what they must say."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import pytest
from bench_command import run_bench

from ces_experiments.regions.commands import regions

SMALL = (
    "--jobs", "6", "--nodes", "4", "--tasks", "1-2", "--seeds", "2", "--loads", "1.2", "--duration", "60",
    "--solver", "least-allocated",
)  # fmt: skip


bench = partial(run_bench, regions)


def test_tables_plots_and_each_run(tmp_path: Path) -> None:
    shown = bench(*SMALL, "--regions", "2", "--out", tmp_path).stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results["shapes"]) == {"2 regions, load 1.2, even homes", "2 regions, load 1.2, uneven homes"}
    for found in results["shapes"].values():
        assert list(found["ways"]) == ["central", "one-decider", "regions", "at-once", "alone"]
        assert found["beside"]["central"] == {}
        for way in ("regions", "alone"):
            more = found["beside"][way]["accepted"]
            means = [found["ways"][each]["accepted"]["mean"] for each in (way, "central")]
            assert more["mean"] == pytest.approx(means[0] - means[1], abs=1e-5)
            assert more["n"] == 2
    for text in (shown, (tmp_path / "tables.md").read_text()):
        assert "2 regions, load 1.2, even and uneven homes: regions of 4 nodes and 6 jobs each" in " ".join(
            text.split()
        )
        assert text.count("uneven homes: one-decider") == 1
        assert "what one region says besides" in text
    assert (tmp_path / "ways.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "runs.csv").open()))
    assert len(rows) == 2 * 2 * 5
    assert {row["seed"] for row in rows if row["way"] == "central"} == {row["seed"] for row in rows}


def test_growth_is_drawn_where_there_are_more_and_more(tmp_path: Path) -> None:
    words = (
        *SMALL,
        "--regions",
        "2-3",
        "--homes",
        "uneven",
        "--ways",
        "central,regions",
        "--seeds",
        "1",
        "--one-up-to",
        "2",
    )
    bench(*words, "--out", tmp_path)
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    shapes = json.loads((tmp_path / "results.json").read_text())["shapes"]
    assert [found["regions"] for found in shapes.values()] == [2, 3]
    assert [list(found["ways"]) for found in shapes.values()] == [["central", "regions"], ["regions"]]


@pytest.mark.parametrize(
    ("option", "value"),
    [("--regions", "65"), ("--homes", "some"), ("--ways", "central,guess"), ("--loads", "0"), ("--solver", "none")],
)
def test_bad_options_are_named(option: str, value: str, tmp_path: Path) -> None:
    assert option in bench(option, value, "--out", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()
