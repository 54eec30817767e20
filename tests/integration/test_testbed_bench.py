"""The experiment on emulated hosts runs from end to end and leaves nothing behind. How good the figures are is not for
tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ces_experiments.common.command import carry_out
from ces_experiments.testbed.question import PLAIN, Question
from ces_experiments.testbed.report import TESTBED, tables
from ces_testbed.netlink import namespaces

pytestmark = pytest.mark.needs("root")


@pytest.mark.timeout(900)
def test_two_schedulers_with_and_without_bandwidth_control(tmp_path: Path) -> None:
    question = Question(("greedy", PLAIN), ("parameter-server",), (1,), accuracy=0.6, limit_s=300)
    carry_out("testbed", TESTBED, question, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["runs"]) == ["1 parameter-server greedy", f"1 parameter-server {PLAIN}"]
    for scheduler in question.schedulers:
        found = results["runs"][f"1 parameter-server {scheduler}"]
        assert 0 <= found["stolen"] <= 1
        assert found["placed"], found["reason"]
        assert found["solver"] == scheduler
        assert found["training"]["accuracy"] >= 0.6
        assert found["flows"], "flows over links are measured"
        assert 0 < found["background_delivered"] <= 1.1
    assert len(tables(results)) == 4
    assert namespaces(f"ces-testbed{os.getpid()}-") == []
