"""A deadline as people see it: when it is, and whether it will be kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from client_views import NOW, SOON, entry, wide

from ces_client.view.deadline import deadline_text
from ces_client.view.job import job_facts
from ces_client.view.lists import job_table, queue_table
from ces_client.view.plan import plan_answer
from ces_common.deadline import Deadline
from ces_common.jobfile import JobFile
from ces_common.messages.api import PlanForecast
from ces_common.messages.events import Reason

LATER = SOON + timedelta(minutes=30)


@pytest.mark.parametrize(
    ("state", "fields", "text"),
    [
        ("running", {}, "14:02"),
        ("running", {"expected_end_at": SOON - timedelta(minutes=1)}, "14:02, ends about 14:01"),
        ("running", {"expected_end_at": LATER}, "14:02, late: ends about 14:32"),
        ("succeeded", {"finished_at": SOON}, "14:02, kept"),
        ("succeeded", {"finished_at": LATER}, "14:02, missed"),
        ("failed", {"finished_at": NOW, "expected_end_at": LATER}, "14:02"),
    ],
)
def test_whether_a_deadline_will_be_kept(samples, state, fields, text):
    assert deadline_text(samples.job(state, deadline_at=SOON, **fields), NOW) == text


def test_a_job_is_described_with_its_deadline_and_what_becomes_of_it(samples):
    view = samples.job("running", deadline_at=SOON, deadline=Deadline(within=60, policy="best-effort"))
    assert any(
        line.split() == ["deadline", "14:02", "(or", "it", "runs", "late)"] for line in wide(job_facts(view, NOW))
    )
    refused = view.model_copy(update={"deadline": Deadline(within=60)})
    assert "(or it is refused)" in "\n".join(wide(job_facts(refused, NOW)))


def test_lists_have_a_column_of_deadlines_where_there_are_any(samples):
    with_one = samples.job("running", deadline_at=SOON)
    assert "DEADLINE" not in wide(job_table([samples.job("running")], NOW))[0]
    assert "DEADLINE" in wide(job_table([with_one], NOW))[0]
    assert "14:02" in wide(job_table([with_one], NOW))[1]
    assert "DEADLINE" not in wide(queue_table([entry()], NOW))[0]
    assert "DEADLINE" in wide(queue_table([entry(deadline_at=SOON)], NOW))[0]


def test_a_dry_run_tells_when_the_job_would_have_ended():
    job = JobFile.model_validate({"name": "j", "tasks": [{"name": "w", "command": ["x"]}]})
    answer = PlanForecast(feasible=True, version=1, solver="s", assignments={"w-0": "n1"}, end_at=SOON)
    assert "it is expected to have ended at about 14:02" in wide(plan_answer(job, answer, NOW))
    reason = Reason(code="deadline", text="its earliest end is then")
    refused = answer.model_copy(update={"feasible": False, "reason": reason})
    assert "expected to have ended" not in "\n".join(wide(plan_answer(job, refused, NOW)))
