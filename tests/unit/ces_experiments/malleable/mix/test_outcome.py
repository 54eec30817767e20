"""What a run comes to, and what runs of the same seeds tell together."""

from __future__ import annotations

from typing import Any

import pytest
from resize_log import LOG, NOTES, event

from ces_experiments.malleable.mix.jobs import MALLEABLE, draw
from ces_experiments.malleable.mix.outcome import fates, paired, parts, record, summary
from ces_experiments.malleable.mix.report import REPORT
from ces_experiments.malleable.mix.run import failure_of

JOBS = dict(zip("jkmn", draw(1, 4, 4), strict=True))


def test_on_time_is_who_succeeds_within_its_deadline() -> None:
    due = JOBS["j"].within_s
    log = [event("job.queued", 5.0, job) for job in JOBS]
    log += [
        event("job.running", 6.0),
        event("job.rescheduling", 7.0),
        event("job.queued", 8.0),
        event("job.succeeded", 5.0 + due),
        event("job.succeeded", 5.1 + JOBS["k"].within_s, "k"),
        event("job.failed", 20.0, "m", reason="deadline: it cannot end in time"),
        event("job.cancelled", 30.0, "n"),
        event("job.succeeded", 9.0, "stranger"),
    ]
    found = {fate.name: fate for fate in fates(log, JOBS, "1")}
    assert [fate.fate for fate in found.values()] == ["succeeded", "succeeded", "refused", "cancelled"]
    assert [fate.on_time for fate in found.values()] == [True, False, False, False]
    assert found["000"].took_s == pytest.approx(due)
    assert [fate.size for fate in found.values()] == [job.asked(1) for job in JOBS.values()]


def test_steps_that_are_lost_are_those_of_later_starts() -> None:
    found = record([event("job.queued", 0.0), *LOG], {"j": JOBS["j"]}, MALLEABLE, {"j": NOTES})
    assert (found["starts"], found["lost"], found["given_up"]) == (1, 2, 0)
    (resize,) = found["resizes"]
    assert resize["whole"] - resize["control"] == pytest.approx(0.25, abs=1e-3)
    (job,) = found["jobs"]
    assert (job["fate"], job["on_time"], job["size"]) == ("succeeded", job["took_s"] <= job["within_s"], None)


def run(seed: int, way: str, took_s: list[float | None], resizes: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Jobs with 30 s each; None: refused."""
    jobs = [
        {"name": str(i), "fate": "refused" if took is None else "succeeded", "took_s": took or 10.0, "within_s": 30,
         "size": None, "on_time": took is not None and took <= 30}
        for i, took in enumerate(took_s)
    ]  # fmt: skip
    rest = {"given_up": 0, "starts": 2, "lost": 1, "load_average": 0.5, "stolen": 0.01, "took_s": 100}
    return {"seed": seed, "way": way, "jobs": jobs, "resizes": resizes or [], **rest}


def resize(seconds: float, still: float | None) -> dict[str, Any]:
    parts = dict.fromkeys(("commit", "stop", "saving", "network", "start"), seconds / 4)
    return {"job": "j", "before": 1, "size": 2, **parts, "whole": seconds, "control": seconds * 3 / 4, "still": still}


RUNS = [
    run(11, MALLEABLE, [10.0, 20.0], [resize(1.0, 2.0), resize(3.0, None)]),
    run(11, "1", [20.0, None]),
    run(12, "1", [10.0, 40.0]),
    run(12, MALLEABLE, [10.0, 20.0]),
    run(13, "1", [10.0, 20.0]),
]


def test_pairs_are_of_the_same_seed() -> None:
    found = paired(RUNS)["1"]
    assert found["seeds"] == {"11": [2, 1], "12": [2, 1]}
    assert (found["share"]["n"], found["share"]["mean"], found["share"]["std"]) == (2, 0.5, 0.0)
    assert found["took_s"]["mean"] == pytest.approx((-10.0 + (0.0 - 20.0) / 2) / 2), "of jobs that both ended"


def test_jobs_are_counted_by_what_became_of_them() -> None:
    found = summary(RUNS)
    assert list(found) == [MALLEABLE, "1"]
    assert {key: found["1"][key] for key in ("jobs", "on_time", "late", "refused", "failed", "resizes")} == {
        "jobs": 6, "on_time": 4, "late": 1, "refused": 1, "failed": 0, "resizes": 0,
    }  # fmt: skip
    assert (found[MALLEABLE]["resizes"], found[MALLEABLE]["lost"]) == (2, 2)
    assert found["1"]["took_s"]["n"] == 5


def test_times_of_resizes() -> None:
    found = parts(RUNS)
    assert found["whole"] == pytest.approx({"n": 2, "p50": 2.0, "p95": 2.9, "most": 3.0})
    assert found["still"]["n"] == 1
    assert parts(RUNS[1:]) == {}


@pytest.mark.parametrize("runs", [RUNS, RUNS[:1], RUNS[1:2]])
def test_tables_and_a_picture_of_whatever_was_run(runs: list[dict[str, Any]]) -> None:
    audit = {"events": 5, "plans": 2, "findings": []}
    results = {"runs": runs, "question": {"jobs": 2, "nodes": 4}, "setting": {"cores": 4}, "audit": audit}
    text = "\n".join(grid.as_markdown() for grid in REPORT.tables(results))
    assert "rigid, sized for 100% of their time" in text or runs == RUNS[:1]
    assert ("the control plane's share" in text) == bool(runs[0]["resizes"])
    assert REPORT.pictures is not None
    assert list(REPORT.pictures(results)) == ["mix.png"]


def test_differences_are_told_with_their_confidence() -> None:
    audit = {"events": 5, "plans": 2, "findings": []}
    results = {"runs": RUNS, "question": {"jobs": 2, "nodes": 4}, "setting": {"cores": 4}, "audit": audit}
    _, differences, *_ = REPORT.tables(results)
    ((way, seeds, share, longer, each),) = differences.rows
    assert (way, seeds, share) == ("rigid, sized for 100% of their time", "2", "+50.0 ± 0.0")
    assert (longer, each) == ("-10.0 ± 0.0", "2 - 1, 2 - 1")


def test_what_makes_a_run_bad_news() -> None:
    assert failure_of([], RUNS[:1], 2) is None
    assert failure_of([], RUNS[:1], 1) == "2 jobs were on time, and 1 by the audit"
    assert failure_of([{"event": 7, "text": "too much"}], RUNS, 0) == "1 findings, first: event 7: too much"
