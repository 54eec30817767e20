"""What a run comes to, and what runs of the same seeds tell together."""

from __future__ import annotations

from typing import Any

import pytest
from cpu_log import LOG
from resize_log import START, event

from ces_experiments.malleable.cpu.jobs import CpuJob
from ces_experiments.malleable.cpu.outcome import GOT_LEAST, got, paired, record, starved, summary
from ces_experiments.malleable.cpu.report import REPORT
from ces_experiments.malleable.cpu.run import failure_of

JOB = CpuJob("000", 0.0, 2, 4.0)
AUDIT = {"events": 5, "plans": 2, "findings": []}


def burnt(began: float, ended: float, spent_s: float) -> dict[str, float]:
    return {"began": START + began, "ended": START + ended, "spent_s": spent_s}


def test_what_workers_spend_stands_beside_what_they_hold() -> None:
    told = {"j": {"w-0": burnt(2, 40, 4.0), "w-1": burnt(2, 42, 4.0)}}
    (job,) = record(LOG, {"j": JOB}, "even", told)["jobs"]
    assert (job["fate"], job["took_s"], job["waited_s"], job["again"]) == ("succeeded", 50.0, 2.0, 0)
    assert job["levels"] == [[1.0, 100], [10.0, 200], [20.0, 50]]
    assert job["held_s"] == pytest.approx((0.8 + 2.2 + 0.95) + (0.8 + 2.4 + 1.0))
    assert (job["spent_s"], job["ran_s"], job["known_s"]) == (8.0, 78.0, 8.0)


def test_a_job_without_an_end_or_a_place_is_told_too() -> None:
    log = [event("job.queued", 0.0), event("job.cancelled", 9.0)]
    (job,) = record(log, {"j": JOB, "lost": JOB}, "100m", {})["jobs"]
    assert (job["fate"], job["took_s"], job["waited_s"]) == ("cancelled", 9.0, 9.0)
    assert (job["held_s"], job["known_s"]) == (0, 0.0)
    (job,) = record(log[:1], {"j": JOB}, "100m", {})["jobs"]
    assert (job["fate"], job["took_s"]) == ("queued", 0.0)


def run(seed: int, way: str, took_s: list[float | None], share: float = 1.0) -> dict[str, Any]:
    """Jobs of which each held 4 CPU-seconds in 40 s; None: cancelled."""
    jobs = [
        {"name": str(i), "fate": "cancelled" if took is None else "succeeded", "took_s": took or 99.0, "waited_s": 1.0,
         "again": 0, "levels": [[0.0, 100], [5.0, 200]],
         "spent_s": 4 * share, "held_s": 4.0, "ran_s": 40.0, "known_s": 0.5}
        for i, took in enumerate(took_s)
    ]  # fmt: skip
    return {"seed": seed, "way": way, "jobs": jobs, "services_s": 20.0, "took_s": 100, "load_average": 0.5, "stolen": 0}


RUNS = [
    run(11, "even", [10.0, 20.0]),
    run(11, "100m", [20.0, 30.0]),
    run(12, "100m", [40.0, None]),
    run(12, "even", [20.0, 80.0]),
    run(13, "100m", [10.0, 20.0]),
]


def test_pairs_are_of_the_same_seed_and_job() -> None:
    found = paired(RUNS)["even", "100m"]
    assert found["seeds"] == {"11": [15.0, 25.0], "12": [20.0, 40.0]}
    assert found["took_s"]["mean"] == pytest.approx((-10.0 - 20.0) / 2)
    assert found["part"]["mean"] == pytest.approx((-0.4 - 0.5) / 2)
    assert found["p95"]["mean"] == pytest.approx((-10.0 - 20.0) / 2)
    assert list(paired(RUNS)) == [("even", "100m")]
    both = paired([*RUNS, run(11, "patient", [10.0, 10.0])])
    assert list(both) == [("even", "100m"), ("patient", "100m"), ("patient", "even")]
    assert both["patient", "even"]["seeds"] == {"11": [10.0, 15.0]}


def test_a_way_is_told_over_its_runs() -> None:
    found = summary(RUNS)
    assert list(found) == ["even", "100m"]
    assert (found["100m"]["jobs"], found["100m"]["succeeded"]) == (6, 5)
    assert found["100m"]["took_s"]["mean"] == pytest.approx(24.0)
    assert found["100m"]["p95"] == pytest.approx(38.0)
    assert (found["even"]["cpu"], found["even"]["changes"]["mean"]) == (pytest.approx(100.0), 1.0)
    assert (found["even"]["got"], found["even"]["services"]) == (1.0, pytest.approx(0.2))


def test_a_machine_that_was_too_busy_is_seen() -> None:
    busy = run(11, "100m", [10.0], GOT_LEAST - 0.01)
    assert starved(busy)
    assert not starved(run(11, "100m", [10.0], GOT_LEAST))
    assert got([busy, RUNS[0]]) == pytest.approx((4 * (GOT_LEAST - 0.01) + 8) / 12)
    assert got([run(11, "100m", [])]) is None
    _, _, each = tables([busy, RUNS[0]])
    assert [row[0] for row in each.rows] == ["11 \\*", "11"]
    assert "too busy" in each.title
    assert "too busy" not in tables(RUNS)[-1].title


def tables(runs: list[dict[str, Any]]) -> Any:
    setting = {"host": 200}
    return REPORT.tables({"runs": runs, "question": {"jobs": 2, "nodes": 4}, "setting": setting, "audit": AUDIT})


@pytest.mark.parametrize("runs", [RUNS, RUNS[:1], RUNS[1:2], [run(11, "even", [None])]])
def test_tables_and_a_picture_of_whatever_was_run(runs: list[dict[str, Any]]) -> None:
    text = "\n".join(grid.as_markdown() for grid in tables(runs))
    assert ("100m, fixed" in text) == any(each["way"] == "100m" for each in runs)
    assert REPORT.pictures is not None
    assert list(REPORT.pictures({"runs": runs})) == ["cpu.png"]


def test_differences_are_told_with_their_confidence() -> None:
    _, differences, _ = tables(RUNS)
    ((rule, way, seeds, took, part, p95, each),) = differences.rows
    assert (rule, way, seeds, took) == ("even", "100m, fixed", "2", "-15.0 ± 63.5")
    assert part.startswith("-45.0 ± ")
    assert (p95, each) == ("-15.0 ± 63.5", "15.0 - 25.0, 20.0 - 40.0")


def test_what_makes_a_run_bad_news() -> None:
    assert failure_of(AUDIT, RUNS[:2]) is None
    assert failure_of(AUDIT, RUNS) == "1 jobs did not succeed, so that means leave them out"
    found = AUDIT | {"findings": [{"event": 7, "text": "too much"}]}
    assert failure_of(found, RUNS) == "1 findings, first: event 7: too much"
