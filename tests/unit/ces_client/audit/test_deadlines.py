"""The auditor counts deadlines that were kept and missed, and finds plans of jobs that were refused."""

from __future__ import annotations

from typing import Any

import pytest
from audit_logs import INVENTORY, Fact, audit, done, found, job, numbered, plan, ready, started


def deadline(at: str, refused: bool = False) -> Fact:
    data: dict[str, Any] = {"job": "j", "name": "j", "deadline_at": f"2026-01-01T{at}+00:00", "kept": not refused}
    return "job.deadline", data | ({"refusal": {"code": "deadline", "text": "t"}} if refused else {})


@pytest.mark.parametrize(("at", "kept", "missed"), [("01:00:00", 1, 0), ("00:00:05", 0, 1)])
def test_jobs_that_succeed_in_time_and_later_are_counted(at: str, kept: int, missed: int) -> None:
    facts = [*ready("a", "b"), job("queued", None), deadline(at), *started(), *done()]
    verdict = audit(numbered(facts), INVENTORY)
    assert (verdict.findings, verdict.deadlines_kept, verdict.deadlines_missed) == ((), kept, missed)


def test_a_refused_job_gets_no_plan() -> None:
    refused = [job("queued", None), deadline("01:00:00", refused=True)]
    assert found([*refused, job("failed", "queued")]) == ""
    assert "job j was refused, and has a plan" in found([*refused, plan()])


def test_one_that_had_a_plan_is_not_refused() -> None:
    facts = started()
    assert "job j is refused although it had a plan" in found([*facts, deadline("01:00:00", refused=True), *done()])
