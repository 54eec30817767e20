"""How long resizes took, from a log that was made up."""

from __future__ import annotations

from typing import Any

import pytest
from resize_log import LOG, NOTES, committed, event, note

from ces_experiments.malleable.mix.resizes import resizes


def test_a_resize_is_taken_apart() -> None:
    (found,), given_up = resizes(LOG, {"j": NOTES})
    assert given_up == 0
    assert (found.job, found.before, found.size) == ("j", 4, 2)
    seconds = (found.commit, found.stop, found.saving, found.network, found.start)
    assert seconds == pytest.approx((0.25, 1.0, 0.25, 0.5, 1.0), abs=1e-3)
    assert (found.whole, found.control, found.still) == pytest.approx((2.75, 2.5, 2.5), abs=1e-3)


def test_nothing_is_taken_off_for_what_nobody_tells() -> None:
    (found,), _ = resizes(LOG, {})
    assert (found.control, found.still) == (found.whole, None)
    other = [note("told", 9.0), note("saved", 9.5), note("told", 20.0), note("saved", 21.0)]
    (found,), _ = resizes(LOG, {"j": other})
    assert (found.control, found.still) == (found.whole, None)


def test_jobs_are_told_apart() -> None:
    log = [each | {"data": each["data"] | {"job": job}} for each in LOG for job in ("a", "b")]
    found, _ = resizes(log, {"a": NOTES})
    assert {each.job: each.saving > 0 for each in found} == {"a": True, "b": False}


@pytest.mark.parametrize(
    "log",
    [
        [committed(1.0, 1.5), event("resize.ended", 2.0, done=False), event("job.cancelled", 2.0)],
        [committed(1.0, 1.5), event("resize.ended", 2.0, done=True), event("job.rescheduling", 3.0)],
        [committed(1.0, 1.5)],
    ],
)
def test_what_comes_to_no_end_is_counted(log: list[dict[str, Any]]) -> None:
    assert resizes([*log, event("job.running", 9.0)] if len(log) > 1 else log, {}) == ([], 1)
