"""How a waiting job's standing reads: what it waits for, who holds that, and until when about."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from ces_command import ces
from rich.console import Console

from ces_client import load_job
from ces_client.view import job_facts, job_live, plan_answer, queue_table, waiting_text
from ces_client.view.standing import job_list, start_text
from ces_client.view.words import moment
from ces_common.messages.api import PlanForecast, QueueEntry
from ces_common.messages.events import JobName, JobWaiting, Reason, Score, StandingView, new_event

NOW = datetime(2026, 11, 22, 13, 50, tzinfo=UTC)
SOON = NOW + timedelta(minutes=12)
SCORE = Score(fit=-2.125, priority=0.5, waiting=0.25, share=0, total=-1.375, scarce="bandwidth")
NARROW = Reason(
    code="bandwidth-per-flow",
    text="flow a -> b needs at least 12 Mbit/s; the widest free path (n3 -> n5) has 4 Mbit/s",
    resource="bandwidth",
    needed=12e6,
    available=4e6,
    where="n3 -> n5",
)
ANNA, BERT = JobName(id="1", name="anna"), JobName(id="2", name="bert")


def standing(**more) -> StandingView:
    return StandingView.model_validate({"job": "j", "position": 3, "score": SCORE, **more})


def entry(**more) -> QueueEntry:
    told = {"position": 3, "id": "j", "name": "digits", "tenant": "vision", "priority": 80}
    return QueueEntry.model_validate(told | {"submitted_at": NOW - timedelta(minutes=5)} | more)


def shown(renderable: object) -> list[str]:
    screen = Console(width=200, force_terminal=False)
    with screen.capture() as captured:
        screen.print(renderable)
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize(
    ("reason", "told", "said"),
    [
        (
            NARROW,
            {"holders": [BERT], "start_at": SOON},
            "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02",
        ),
        (
            NARROW,
            {"holders": [ANNA, BERT], "start_at": SOON, "reserved": True, "overdue": True},
            "waits for 12 Mbit/s on n3 -> n5, held by jobs anna and bert. "
            "Room is kept for it: it starts no later than 14:02",
        ),
        (NARROW, {"holders": [BERT]}, "waits for 12 Mbit/s on n3 -> n5, held by job bert"),
        (NARROW, {"start_at": NOW}, "waits for 12 Mbit/s on n3 -> n5"),
        (NARROW, {"reserved": True}, "waits for 12 Mbit/s on n3 -> n5. Room is kept for it"),
        (
            Reason(code="cpu-per-node", text="t", resource="cpu", needed=4000),
            {"overdue": True},
            "waits for 4 cores on one node. It is overdue: of those that are, the oldest goes first",
        ),
        (Reason(code="memory-total", text="t", resource="memory", needed=2**31), {}, "waits for 2 GiB"),
        (Reason(code="gpu-total", text="t", resource="gpu", needed=3), {}, "waits for 3 GPUs"),
        (
            Reason(code="quota", text="t", resource="cpu", needed=1500, where="vision"),
            {},
            "waits for 1.5 cores within the quota of tenant vision",
        ),
        (
            Reason(code="packing", text="the tasks do not fit on the nodes together"),
            {"holders": [BERT], "start_at": SOON},
            "waits: the tasks do not fit on the nodes together, held by job bert until about 14:02",
        ),
        (None, {}, "waits for its turn: others come first"),
        (
            Reason(code="cpu-total", text="the tasks need 9 cores", resource="cpu", needed=9000, forever=True),
            {},
            "waits: the tasks need 9 cores; no job's end can change that, only other nodes or links, or another job",
        ),
    ],
)
def test_a_sentence_says_what_it_waits_for_who_holds_it_and_until_when(reason, told, said):
    assert waiting_text(reason, standing(**told), NOW).plain == said


def test_without_a_standing_the_reason_speaks_for_itself():
    assert waiting_text(NARROW, None, NOW).plain == f"waits: {NARROW.text}"


def test_many_holders_are_counted():
    jobs = [JobName(id=str(i), name=f"j{i}") for i in range(6)]
    assert job_list(jobs[:1]) == "job j0"
    assert job_list(jobs[:3]) == "jobs j0, j1 and j2"
    assert job_list(jobs) == "jobs j0, j1, j2 and 3 more"


def test_when_a_job_is_expected_to_start():
    assert start_text(standing(start_at=SOON), NOW) == "about 14:02"
    assert start_text(standing(start_at=SOON, reserved=True), NOW) == "no later than 14:02"
    assert start_text(standing(start_at=NOW), NOW) == "–", "others may come before"
    assert start_text(standing(), NOW) == start_text(None, NOW) == "–"


def test_times_of_day_are_those_of_whoever_looks():
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert moment(SOON, there) == "23:02"
    assert moment(SOON + timedelta(hours=1), there) == "Mon 00:02"
    assert moment(SOON + timedelta(days=8), NOW) == "30 Nov 14:02"
    assert moment(SOON + timedelta(days=60), NOW) == "2027-01-21 14:02"


def test_the_queues_table():
    first = entry(reason=NARROW, standing=standing(holders=[BERT], start_at=SOON))
    later = entry(position=4, standing=standing(start_at=NOW))
    overdue = entry(position=1, standing=standing(overdue=True, reserved=True, start_at=SOON))
    head, *rows = shown(queue_table([first, later, overdue, entry()], NOW))
    assert head.split() == ["#", "JOB", "TENANT", "PRIO", "WAITS", "SCORE", "WHY", "START", "HELD", "BY"]
    assert rows[0].split()[:6] == ["3", "digits", "vision", "80", "5m00s", "-1.38"]
    assert NARROW.text in rows[0]
    assert [part.strip() for part in rows[0].split("  ") if part][-2:] == ["about 14:02", "bert"]
    assert "not its turn yet: fit -2.12" in rows[1]
    assert "overdue" in rows[2]
    assert "no later than 14:02" in rows[2]
    assert "not tried yet" in rows[3]


def test_a_waiting_job_is_described_with_its_standing(samples):
    told = standing(holders=[BERT], start_at=SOON, reason=NARROW)
    view = samples.job("queued", waiting=NARROW, standing=told)
    assert shown(job_live(view, NOW))[1] == "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02"


def test_a_suspended_job_says_for_whom_it_makes_room_and_what_it_waits_for(samples):
    why = "makes room for job urgent, whose priority is 90 instead of 10"
    told = standing(holders=[BERT], start_at=SOON, reason=NARROW)
    lines = shown(job_live(samples.job("suspended", waiting=NARROW, standing=told, reason=why), NOW))
    assert "suspended" in lines[0]
    assert lines[1:3] == [why, "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02"]
    assert shown(job_live(samples.job("suspended", reason=why), NOW))[1] == why


def test_describing_a_waiting_job_tells_its_place_and_score(connected, samples):
    view = samples.job("queued", waiting=NARROW, standing=standing(holders=[BERT], reason=NARROW))
    connected.on("GET", f"jobs/{samples.id}", view)
    out = ces("describe", "job", samples.id).stdout
    assert "waits for 12 Mbit/s on n3 -> n5, held by job bert" in out
    assert "number 3, score -1.38 (fit -2.12, priority +0.50, waiting +0.25, share +0.00; scarce: bandwidth)" in out
    assert NARROW.text in out


def test_the_queue_says_where_it_is_not_the_schedulers_own(connected):
    page = {"items": [entry().model_dump(mode="json")], "next": None, "remark": "no scheduler is there"}
    connected.on("GET", "queue", page)
    listed = ces("get", "queue")
    assert "digits" in listed.stdout
    assert listed.stderr == "no scheduler is there\n"
    assert [each["name"] for each in json.loads(ces("get", "queue", "-o", "json").stdout)] == ["digits"]


def test_the_event_of_a_waiting_job_reads_as_a_sentence(connected, samples):
    told = JobWaiting(job=samples.id, name="digits", reason=NARROW, standing=standing(holders=[BERT], start_at=SOON))
    event = new_event("ces/manager", "job", "waiting", samples.id, told, NOW).model_dump(mode="json")
    connected.on("GET", "events", samples.sse((7, "ces.v1.job.waiting", event)))
    out = ces("events").stdout
    assert "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02" in out


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"position": 4, "start_at": SOON, "holders": [BERT]},
            "it would be number 4 in the queue and start at about 14:02, after job bert",
        ),
        ({"position": 1, "start_at": SOON}, "it would be number 1 in the queue and start at about 14:02"),
        (
            {"position": 4, "start_at": NOW},
            "it would be number 4 in the queue and start as soon as it is its turn and room is found",
        ),
        ({"position": 4}, "it would be number 4 in the queue; when it would start cannot be foreseen"),
    ],
)
def test_a_dry_run_tells_when_the_job_would_start(job_file, told, said):
    answer = PlanForecast(feasible=False, version=7, solver="search", reason=NARROW, **told)
    assert shown(plan_answer(load_job(job_file), answer, NOW))[2] == said


def test_a_dry_run_says_nothing_of_a_start_that_nobody_told_or_that_never_comes(job_file):
    silent = PlanForecast(feasible=False, version=7, solver="search", reason=NARROW)
    never = silent.model_copy(update={"position": 1, "reason": NARROW.model_copy(update={"forever": True})})
    for answer in (silent, never):
        assert "would" not in "\n".join(shown(plan_answer(load_job(job_file), answer, NOW)))


def test_what_the_sentence_says_already_is_not_repeated(samples):
    reason = Reason(code="packing", text="the tasks do not fit on the nodes together")
    view = samples.job("queued", waiting=reason, standing=standing(reason=reason))
    assert reason.text not in "\n".join(shown(job_facts(view, NOW)))
