"""``ces audit --publish``: what is sent, and how it goes on and ends where it is repeated."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from audit_logs import START, WHOLE, numbered
from typer.testing import CliRunner

from ces_client import __version__
from ces_client.audit import PROMISES, Event, Finding
from ces_client.audit_report import report_of
from ces_client.cli import app, publication
from ces_client.cli import audit as audit_command
from ces_common.messages.api import LinkView, TaskView, TopologyView
from ces_common.messages.audits import MAX_FINDINGS, AuditReport, AuditView
from ces_common.messages.bounds import MAX_REASON

ID = "01JDPB8Q3M7V5Y2C4Z6K8N0R1A"


def ces(*words: str, code: int = 0):
    result = CliRunner().invoke(app, ["audit", *words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


@pytest.fixture
def published(connected: Any, samples: Any) -> list[AuditReport]:
    """What a cluster with one finished job is sent; its link is as wide as ``narrow`` says."""
    sent: list[AuditReport] = []

    def take(request: httpx.Request) -> httpx.Response:
        report = AuditReport.model_validate_json(request.content)
        sent.append(report)
        told = dict(report) | {"findings": [dict(each) for each in report.findings], "peaks": []}
        more = {"id": ID, "published_at": report.began_at, "published_by": "auditor"}
        view = AuditView.model_validate(told | more | {"findings_total": sum(report.kinds.values())})
        return httpx.Response(201, content=view.model_dump_json())

    tasks = [TaskView(name=f"t-{i}", rank=i, cpu=600, memory=10) for i in range(2)]
    view = samples.job("succeeded").model_copy(update={"id": "j", "name": "j", "placement": tasks})
    connected.on("GET", "jobs", [view])
    connected.on("GET", "jobs/j", view)
    log_is(connected, samples, numbered(WHOLE))
    connected.on("POST", "audits", take)
    link_is(connected, 100)
    return sent


def log_is(connected: Any, samples: Any, events: Sequence[Event]) -> None:
    """The stream begins after the event that is named to it."""

    def tell(request: httpx.Request) -> httpx.Response:
        after = int(request.headers["last-event-id"])
        later = [(each["sequence"], each["type"], each) for each in events if each["sequence"] > after]
        response: httpx.Response = samples.sse(*later, so_far=len(events))(request)
        return response

    connected.on("GET", "events", tell)


def asked_after(connected: Any) -> list[str]:
    """By each request for events, after which number."""
    return [request.headers["last-event-id"] for request in connected.sent("GET", "events")]


def link_is(connected: Any, bandwidth: int) -> None:
    link = LinkView(src="a", dst="b", bandwidth=bandwidth, reserved=0, kind="veth")
    connected.on("GET", "topology", TopologyView(version=1, nodes=[], links=[link]))


def test_the_outcome_is_published_and_shown(connected: Any, published: list[AuditReport]) -> None:
    result = ces("--publish")
    assert "nothing was wrong" in result.stdout
    assert f"published as audit {ID}" in result.stderr
    (report,) = published
    assert (report.version, report.first, report.last, report.events) == (__version__, 1, len(WHOLE), len(WHOLE))
    assert (report.kinds, report.findings, report.jobs, report.plans) == ({}, [], {"succeeded": 1}, 1)
    assert {peak.what for peak in report.peaks} == {"cpu", "memory", "link"}
    assert report.checked.keys() == PROMISES.keys()
    assert (report.checked["log"], report.checked["link-capacity"]) == (len(WHOLE), 1)
    link_is(connected, 52)
    told = json.loads(ces("--publish", "-o", "json", code=1).stdout)
    assert [each.text for each in published[1].findings] == ["link a -> b: 50 of 52 is overbooked"]
    assert (published[1].kinds, published[1].findings[0].job) == ({"link-capacity": 1}, "j")
    assert told["findings"][0]["link"] == published[1].findings[0].link == "a>b"


def test_all_findings_are_counted_and_as_many_listed_as_may_be() -> None:
    found = tuple(Finding(i, "step", "x" * 600, job="j") for i in range(1, MAX_FINDINGS + 50))
    counts = {
        "events": 500, "first": 1, "last": 500, "jobs": {"None": 1}, "plans": 0, "held": 0, "checked": {"step": 999}
    }  # fmt: skip
    verdict = SimpleNamespace(findings=found, peaks=(), unjudged=("y" * 600,), **counts)
    report = report_of(verdict, version="1", began_at="2026-01-01T09:00:00Z", took_s=1.0)  # type: ignore[arg-type]
    assert (len(report.findings), report.kinds) == (MAX_FINDINGS, {"step": MAX_FINDINGS + 49})
    assert {len(each.text) for each in report.findings} == {MAX_REASON}
    assert len(report.unjudged[0]) == MAX_REASON


class Pauses:
    """Of ``time.sleep``: what happens in them, one after the other; then SIGTERM comes, as from `compose stop`."""

    def __init__(self, *events: Any) -> None:
        self.left, self.slept = list(events), []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.left:
            self.left.pop(0)()
        else:
            os.kill(os.getpid(), signal.SIGTERM)


def test_audits_are_published_until_it_is_told_to_end(
    connected: Any, published: list[AuditReport], samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_is(connected, samples, numbered(START))
    pauses = Pauses(lambda: link_is(connected, 52), lambda: log_is(connected, samples, numbered(WHOLE)))
    monkeypatch.setattr(publication.time, "sleep", pauses)
    handler = signal.getsignal(signal.SIGTERM)
    result = ces("--publish", "--every", "10m")
    assert signal.getsignal(signal.SIGTERM) is handler
    assert [report.kinds for report in published] == [{}, {}, {"link-capacity": 1}]
    first, second, third = result.stdout.splitlines()
    checks = sum(published[0].checked.values())
    assert f" events 1 to {len(START)}: nothing was wrong in {checks} checks;" in first
    assert first.split()[1:-1] == second.split()[1:-1], "nothing has happened meanwhile"
    assert f" events 1 to {len(WHOLE)}: 1 finding (1 link-capacity);" in third
    assert "no more audits from here" in result.stderr
    assert all(590 < seconds <= 600 for seconds in pauses.slept)
    assert asked_after(connected) == ["0", str(len(START) - 1), str(len(START) - 1)]
    assert len(connected.sent("GET", "jobs/j")) == 1, "what a job asked for that is over is known"


@pytest.mark.parametrize("why", ["another log", "a shorter log", "old books"])
def test_it_begins_anew_where_it_cannot_go_on(
    connected: Any, published: list[AuditReport], samples: Any, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def change() -> None:
        if why == "old books":
            return
        others = [event | {"id": f"of-a-standby-{event['sequence']}"} for event in numbered(WHOLE)]
        log_is(connected, samples, others if why == "another log" else others[: len(START)])

    if why == "old books":
        monkeypatch.setattr(audit_command, "FRESH_S", 0.0)
    monkeypatch.setattr(publication.time, "sleep", Pauses(change))
    ces("--publish", "--every", "10m")
    assert [report.kinds for report in published] == [{}, {}]
    assert published[1].last == (len(START) if why == "a shorter log" else len(WHOLE))
    assert published[1].checked["log"] == published[1].events == published[1].last
    on = str(len(WHOLE) - 1)
    assert asked_after(connected) == (["0", "0"] if why == "old books" else ["0", on, "0"])


def test_books_that_a_bad_event_has_spoilt_are_not_gone_on_with(
    connected: Any, published: list[AuditReport], samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = numbered(WHOLE)
    del bad[-1]["data"]["state"]
    log_is(connected, samples, numbered(START))
    turns = (lambda: log_is(connected, samples, bad), lambda: log_is(connected, samples, numbered(WHOLE)))
    monkeypatch.setattr(publication.time, "sleep", Pauses(*turns))
    assert "no audit: The log cannot be audited" in ces("--publish", "--every", "10m").stderr
    assert [(report.last, report.kinds) for report in published] == [(len(START), {}), (len(WHOLE), {})]
    assert asked_after(connected) == ["0", str(len(START) - 1), "0"]


def test_what_cannot_be_had_now_is_tried_again(
    connected: Any, published: list[AuditReport], samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = connected._answers["GET", "events"]

    def recover() -> None:
        connected._answers["GET", "events"] = good

    connected.on("GET", "events", samples.sse())
    monkeypatch.setattr(publication.time, "sleep", Pauses(recover))
    result = ces("--publish", "--every", "1h", "-o", "json")
    assert "no audit: " in result.stderr
    assert "ended before all events so far had come" in result.stderr
    assert [json.loads(line)["published_by"] for line in result.stdout.splitlines()] == ["auditor"]
    assert len(published) == 1


def test_what_is_refused_is_not_tried_again(
    connected: Any, published: list[AuditReport], samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.on("POST", "audits", samples.problem(403, "Forbidden", "this needs the role operator"))
    monkeypatch.setattr(publication.time, "sleep", Pauses())
    assert "this needs the role operator" in ces("--publish", "--every", "10m", code=2).stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--every", "10m"], "an audit that nobody sees"),
        (["--publish", "--every", "10m", "--finished"], "not idle"),
        (["--publish", "--every", "9s"], "out of bounds"),
        (["--publish", "--every", "8d"], "out of bounds"),
        (["--publish", "--every", "often"], "duration"),
        (["--publish", "--log", __file__], "--log reads no cluster"),
    ],
)
def test_bad_input_is_named(connected: Any, words: list[str], problem: str) -> None:
    assert problem in ces(*words, code=2).stderr
    assert connected.requests == []
