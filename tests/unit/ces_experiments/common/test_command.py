"""The road from options to a question, and from what was measured to files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.progress import Progress

from ces_experiments.common.command import Experiment, Option, carry_out
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, milliseconds, of, spread


def measured(question: Any, progress: Progress) -> Found:
    results = {"rows": {"one": {"wait_s": spread(question)}}}
    return Found(results, raw={"raw.csv": [{"wait_s": each} for each in question]}, failure="all is lost")


def tables(results: Any) -> list[Grid]:
    return [Grid.of("Waits.", "who", {"mean, s": of("wait_s", figure, "mean", 1)}, results["rows"].items())]


def test_everything_is_written_and_shown_before_bad_news_end_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        carry_out("waits", Experiment(tuple, measured, Report(tables)), (1.0, 2.0), tmp_path)
    said = capsys.readouterr()
    assert "all is lost" in said.err
    assert "results.json, tables.md, raw.csv" in said.out
    assert "| one | 1.5 |" in (tmp_path / "tables.md").read_text()
    assert [row["wait_s"] for row in csv.DictReader((tmp_path / "raw.csv").open())] == ["1.0", "2.0"]
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["benchmark"] == "waits"
    assert {"command", "commit", "stolen"} <= set(results["machine"])


def test_an_option_is_read_under_its_own_name() -> None:
    option = Option("how_long", str, "1", "seconds", of="long_s", read=lambda flag, text: (flag, float(text)))
    assert option.value("2") == ("--how-long", 2.0)
    other = option.named("how_short", "less")("3")
    assert (other.name, other.help, other.usual, other.value("3")) == ("how_short", "less", "3", ("--how-short", 3.0))


def test_latencies_are_in_milliseconds() -> None:
    assert milliseconds([]) == {}
    assert milliseconds([0.001, 0.003]) == {"p50": 2.0, "p90": 2.8, "p99": 3.0, "worst": 3.0, "count": 2}
