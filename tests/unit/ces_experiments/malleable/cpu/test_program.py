"""The program that spends CPU time: a real process, started as the jobs start it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ces_experiments.malleable.cpu.jobs import CpuJob


def test_it_spends_what_it_is_told_to_and_says_so() -> None:
    python, *rest = CpuJob("000", 0.0, 1, 0.3).file("100m", "one").tasks[0].command
    assert python == "python"
    run = subprocess.run([sys.executable, *rest], capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(run.stdout)["burnt"]
    assert told["ended"] - told["began"] >= 0.9 * told["spent_s"]
    assert 0.1 < told["spent_s"] <= 0.35
    assert run.stderr == ""


def test_it_starts_with_little() -> None:
    """Its own start is part of what it spends, so a start that takes more than that ends at once."""
    _, *rest = CpuJob("000", 0.0, 1, 0.001).file("100m", "one").tasks[0].command
    run = subprocess.run([sys.executable, *rest], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(run.stdout)["burnt"]["spent_s"] == pytest.approx(0.0, abs=0.005)
