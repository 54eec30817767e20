"""A rank of an experiment: stopped after a round it goes on from there, and its files come out of its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ces_experiments.rank import work_out
from ces_rl.gang import Gang
from ces_rl.parcels import Unpacking
from ces_rl.rank import CHECKPOINT
from ces_rl.run import StoppedError

VALUES: dict[str, Any] = {
    "regime": "thesis", "loads": "0.9", "nodes": 5, "jobs": 10, "repeats": 2, "seed": 5,
    "solvers": "greedy,best-fit", "time_limit": 0.0, "plots": False,
}  # fmt: skip


class Follower(Gang):
    """A rank that is not the first, of a gang of its own."""

    rank = 1

    def each(self, function: Any, items: Any) -> list[Any]:
        return [function(item) for item in items]


def test_it_stops_goes_on_and_sends_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHECKPOINT, str(tmp_path))
    with pytest.raises(StoppedError, match="stopped after 1 cells"):
        work_out("longrun", VALUES, Gang(), [15])
    assert len(list((tmp_path / "cells").iterdir())) == 1
    work_out("longrun", VALUES, Gang(), [])
    said = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["progress"]["step"] for line in said if line.startswith('{"progress"')] == [1, 1, 2, 3, 4]
    unpacking = Unpacking()
    for line in said:
        unpacking.take(line)
    assert unpacking.files.keys() == {"results.json", "tables.md"}
    assert json.loads(unpacking.files["results.json"])["benchmark"] == "longrun"


def test_others_print_nothing_that_is_not_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHECKPOINT, str(tmp_path))
    work_out("longrun", VALUES, Follower(), [])
    assert capsys.readouterr().out == ""
