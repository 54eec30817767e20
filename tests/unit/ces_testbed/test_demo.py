"""What the demonstration shows."""

from __future__ import annotations

from pathlib import Path

from ces_client import load_job
from ces_testbed.demo import demo_job


def test_the_demonstrations_job_is_the_example() -> None:
    example = Path(__file__).parents[3] / "examples" / "jobs" / "digits-ring.yaml"
    assert load_job(demo_job()) == load_job(example)
