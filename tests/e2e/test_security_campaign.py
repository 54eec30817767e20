"""The security benchmark in small: a stolen credential beside a job that trains breaks no promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_experiments.common.command import carry_out
from ces_experiments.security.attacker import AT_THE_API, BEFORE_IT, ON_THE_BUS
from ces_experiments.security.kinds import KINDS
from ces_experiments.security.question import Question
from ces_experiments.security.report import SECURITY, tables

SMALL = Question(seconds=20, each=200, honest=5, trained=("ring",), hidden=32, rounds=40)


@pytest.mark.timeout(600)
def test_a_stolen_credential_breaks_no_promise(tmp_path: Path) -> None:
    carry_out("security", SECURITY, SMALL, tmp_path)  # which ends the program where one is broken
    results = json.loads((tmp_path / "results.json").read_text())
    fuzzed, campaign = results["fuzz"], results["campaign"]
    assert {row["kind"] for row in fuzzed["kinds"]} == {kind.name for kind in KINDS}
    said = {row["kind"]: row["tries"] for row in fuzzed["kinds"]}
    for kind in KINDS:
        assert said[kind.name] == SMALL.each if not kind.answers else said[kind.name] > 0, kind.name
    for found in (fuzzed, campaign):
        assert (found["changed"], found["attacked"]["lapses"]) == ([], 0)
        assert found["attacked"]["heartbeat_ms"]["count"] > 0
    assert {row["attack"] for row in campaign["attacks"]} == {*ON_THE_BUS, *AT_THE_API, *BEFORE_IT}
    assert campaign["jobs"] == {"ring": {"state": "succeeded", "attempt": 1, "restarts": 0}}
    assert campaign["audit"] == []
    assert all(grid.rows for grid in tables(results))
