"""What a policy sees of regions and jobs."""

from __future__ import annotations

from math import isfinite, log1p
from typing import Any

import pytest

from ces_common.jobfile import JobFile
from ces_common.messages.regions import Summary
from ces_federation.choice import need_of
from ces_federation.sight import JOB, MOST, REGION, about_job, about_region

FILE = JobFile.model_validate(
    {
        "name": "x",
        "regions": ["any"],
        "tasks": [
            {"name": "w", "replicas": 3, "command": ["true"], "resources": {"cpu": "1", "memory": "1Gi"}},
            {"name": "ps", "command": ["true"], "resources": {"cpu": "3", "memory": "1Gi"}},
        ],
        "flows": {"edges": [{"src": "w-0", "dst": "ps-0", "bandwidth": {"min": "4Mbit", "max": "8Mbit"}}]},
    }
)
TOLD: dict[str, Any] = {
    "epoch": "e",
    "region": "b",
    "block": "10.65.0.0/16",
    "accepts": ["default"],
    "nodes": 4,
    "free": {"cpu": 12_000, "memory": 8 * 2**30},
    "total": {"cpu": 24_000, "memory": 32 * 2**30},
    "largest": {"cpu": 6000, "memory": 2**30},
    "rooms": [1, 1, 1, 1, 0, 0, 0],
    "queued": 2,
}


def seen(**more: Any) -> dict[str, float]:
    summary = Summary.model_validate({**TOLD, **more})
    return dict(zip(REGION, about_region(need_of(FILE), FILE, summary), strict=True))


def test_of_a_region_what_its_summary_tells_is_seen() -> None:
    assert seen() == pytest.approx(
        {
            "free cpu": 0.5,
            "free memory": 0.25,
            "cpu left": 6000 / 24_000,
            "memory left": 4 / 32,
            "cpu asked of what is free": 0.5,
            "memory asked of what is free": 0.5,
            "cpu of its freest node": 2,
            "memory of its freest node": 1,
            "nodes for the largest task": 0.25,  # of the buckets, only 4 cores are surely enough for 3
            "places for mean tasks": (0 + 1 + 2) / 4,  # tasks of 1.5 cores: 1, 2 and 4 cores hold 0, 1 and 2
            "jobs that wait": log1p(2) / 5,
            "nodes": log1p(4) / 5,
        }
    )


def test_of_a_job_its_shape_is_seen() -> None:
    assert dict(zip(JOB, about_job(FILE), strict=True)) == pytest.approx(
        {"tasks": 0.5, "largest task": 0.5, "flows": 1 / 16, "least bandwidth": log1p(4) / 5}
    )


@pytest.mark.parametrize(
    "more",
    [
        {"free": {}, "total": {}, "largest": {}, "nodes": 0, "rooms": []},
        {"free": {"cpu": 2**50}, "total": {"cpu": 1}, "largest": {"cpu": 2**50}, "queued": 10**6, "nodes": 10**6},
    ],
)
def test_whatever_a_region_tells_the_numbers_stay_within_bounds(more: dict[str, Any]) -> None:
    """One that lies only makes itself look better or worse, as it can by the rule too."""
    assert all(isfinite(value) and abs(value) <= MOST for value in seen(**more).values())
