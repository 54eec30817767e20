"""Profiles in words and tables."""

from __future__ import annotations

import pytest
from client_views import wide

from ces_client.view.profile import ms_text, profile_parts, span_text, warning_text
from ces_common.messages.work import ClassWork, GroupProfile, JobProfile, PredictedWork, SeenWork, Span

SEEN = SeenWork(node="roof1", tasks=2, steps=600, cpu=Span(ms=50, low=48, high=55), step=100, cores=0.5)
GROUP = GroupProfile(
    group="worker",
    seen=[SEEN],
    runs=3,
    classes={"integer": ClassWork(work=64.4, error=0.031), "memory": ClassWork(work=40)},
    predicted=[
        PredictedWork(node="gate1", cpu=Span(ms=25, low=24, high=1200), classes=["integer"]),
        PredictedWork(
            node="gate2", cpu=Span(ms=25, low=24, high=27), step=Span(ms=60, low=55, high=70), classes=["float"]
        ),
    ],
    doubts=["node gate1 was measured noisily"],
)


def test_times() -> None:
    assert [ms_text(each) for each in (0.416, 12.34, 999, 4100)] == ["0.416 ms", "12.3 ms", "999 ms", "4.1 s"]
    assert span_text(None) == "–"


@pytest.mark.parametrize(("error", "warned"), [(None, False), (0.1, False), (0.25, False), (0.26, True)])
def test_who_is_warned(error: float | None, warned: bool) -> None:
    assert (warning_text(error) is not None) is warned


def test_what_was_seen_what_it_may_be_and_what_is_predicted() -> None:
    shown = wide(profile_parts(JobProfile(job="1", name="digits", groups=[GROUP])))
    assert shown[0] == "digits"
    assert "worker, learned from 3 runs" in shown
    assert any("roof1" in each and "50 ms (48 ms to 55 ms)" in each and "100 ms" in each for each in shown)
    assert any("integer" in each and "64.4 ru" in each and "3.1%" in each for each in shown)
    assert "ru: milliseconds of the reference core, if all of the work is of that class" in shown
    assert any("gate1" in each and "25 ms (24 ms to 1.2 s)" in each and "–" in each for each in shown)
    assert any("gate2" in each and "60 ms (55 ms to 70 ms)" in each for each in shown)
    assert shown[-1] == "node gate1 was measured noisily"


def test_a_job_that_is_poorly_known_is_said_to_be() -> None:
    group = GroupProfile(group="w", classes={"float": ClassWork(work=1, error=0.5)})
    shown = wide(profile_parts(JobProfile(job="1", name="digits", groups=[group])))
    assert any("wrong by 50%" in each for each in shown)
