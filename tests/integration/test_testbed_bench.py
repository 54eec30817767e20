"""The experiment on emulated hosts runs from end to end and leaves nothing behind. How good the figures are is not for
tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ces_testbed.bench.testbed.question import PLAIN, Question
from ces_testbed.bench.testbed.report import grids
from ces_testbed.bench.testbed.run import run
from ces_testbed.netlink import namespaces

pytestmark = pytest.mark.needs("root")


@pytest.mark.timeout(900)
def test_two_schedulers_with_and_without_bandwidth_control(tmp_path: Path) -> None:
    question = Question(("greedy", PLAIN), ("parameter-server",), (1,), accuracy=0.6, limit_s=300)
    told: list[str] = []
    results = run(question, tmp_path, told.append)
    assert told == ["1 parameter-server greedy", f"1 parameter-server {PLAIN}"]
    for scheduler in question.schedulers:
        found = results["runs"][f"1 parameter-server {scheduler}"]
        assert 0 <= found["stolen"] <= 1
        assert found["solver"] == scheduler
        assert found["training"]["accuracy"] >= 0.6
        assert found["flows"], "flows over links are measured"
        assert 0 < found["background_delivered"] <= 1.1
    assert len(grids(results)) == 4
    assert (tmp_path / "results.json").is_file()
    assert namespaces(f"ces-testbed{os.getpid()}-") == []
