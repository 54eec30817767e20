"""Nothing that comes from elsewhere steers the terminal of whoever looks: every view, every command, in every form."""

from __future__ import annotations

import ast
import json
import re
import types
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import httpx
import pytest
from ces_command import ces
from pydantic import AwareDatetime, BaseModel
from rich.text import Text
from typer.testing import CliRunner

import ces_client
import ces_testbed.cli
from ces_client.audit import PROMISES, Finding, Peak, Verdict
from ces_client.cli import app, output
from ces_client.view import audit, drain, flows, job, lists, plan, queue_status, tokens
from ces_common.jobfile import JobFile
from ces_common.messages import api, drains, identities, membership
from ces_common.messages.dashboard import HeldFlow
from ces_common.messages.events import QueueStatusView, Reason
from ces_common.states import AllocationState, JobState

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202edesrever\x7f\r"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NOW = datetime(2026, 11, 22, 13, 50, tzinfo=UTC)


def hostile(kind: Any) -> Any:
    """A value of this kind whose every text is hostile."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return hostile(parts[0])
    if origin in (Union, types.UnionType):
        return hostile(next(part for part in parts if part is not type(None)))
    if origin is Literal:
        return parts[0]
    if origin is list:
        return [hostile(parts[0])]
    if origin is dict:
        return {EVIL: EVIL if parts[1] is Any else hostile(parts[1])}
    if isinstance(kind, TypeVar) or kind is Any:
        return EVIL
    if issubclass(kind, BaseModel):
        return kind.model_construct(**{name: hostile(field.annotation) for name, field in kind.model_fields.items()})
    if issubclass(kind, Enum):
        return next(iter(kind))
    return {str: EVIL, int: 1, float: 1.0, bool: True, datetime: NOW, AwareDatetime: NOW}[kind]


def jobs() -> Iterator[api.JobView]:
    for state in JobState:
        yield hostile(api.JobView).model_copy(update={"state": state})


JOB_FILE = JobFile.model_validate(
    {
        "name": "a",
        "tasks": [{"name": "w", "replicas": 2, "command": ["x"]}],
        "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "2Mbit"}},
    }
)
VERDICT = Verdict(
    events=1, first=1, last=1, since=EVIL, until=EVIL, jobs={EVIL: 1}, plans=1, revisions=1, held=1, deadlines_kept=1,
    deadlines_missed=1, peaks=(Peak(EVIL, EVIL, 1, 1, 1, EVIL),), unjudged=(EVIL,),
    checked=dict.fromkeys(PROMISES, 1), findings=(Finding(1, "node-capacity", EVIL),),
)  # fmt: skip

# Each function of a view that gives a picture, with what it is given.
PICTURES: dict[Any, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    audit.verdict_view: [((VERDICT,), {})],
    drain.drain_view: [((hostile(drains.DrainForecast),), {})],
    flows.job_flows: [((hostile(api.JobFlowsView),), {"hops": True})],
    flows.held_table: [(([hostile(HeldFlow)],), {})],
    job.job_live: [((view, NOW), {}) for view in jobs()],
    job.job_line: [((view, NOW), {}) for view in jobs()],
    job.worker_table: [((view,), {}) for view in jobs()],
    job.plan_table: [((view,), {}) for view in jobs()],
    job.last_lines: [((hostile(api.JobView), {EVIL: [EVIL]}), {})],
    job.job_facts: [((view, NOW), {}) for view in jobs()],
    lists.job_table: [(([hostile(api.JobSummary)], NOW), {})],
    lists.node_table: [(([hostile(api.NodeView)], NOW), {})],
    lists.link_table: [
        (([hostile(api.LinkView).model_copy(update={"state": state})],), {}) for state in ("up", "down")
    ],
    lists.probe_table: [(([hostile(api.LinkProbeView)],), {})],
    lists.queue_table: [(([hostile(api.QueueEntry)], NOW), {})],
    lists.node_detail: [((hostile(api.NodeView), [hostile(api.LinkView)], NOW), {})],
    plan.flow_table: [(({EVIL: EVIL}, [hostile(api.FlowView)]), {})],
    plan.unenforced_note: [(([hostile(api.FlowView)],), {})],
    plan.plan_answer: [
        ((JOB_FILE, hostile(api.PlanForecast).model_copy(update={"feasible": feasible}), NOW), {})
        for feasible in (True, False)
    ],
    plan.committed_plan: [((hostile(api.PlanView), EVIL), {})],
    queue_status.reason_text: [((hostile(Reason),), {})],
    queue_status.waiting_text: [
        ((hostile(Reason), status, NOW), {}) for status in (hostile(QueueStatusView), None)
    ],
    queue_status.forecast_text: [((hostile(api.PlanForecast), NOW), {})],
    tokens.token_table: [(([hostile(identities.AccessTokenView)], NOW), {})],
    tokens.session_table: [(([hostile(identities.SessionView)], NOW), {})],
    tokens.identity_facts: [((hostile(identities.Identity),), {})],
}  # fmt: skip


def test_every_picture_is_tried():
    """Those that return something to print, of every module of views that takes the manager's answers."""
    shown = ("RenderableType", "Table", "Text", "Text | None")
    found = {
        function
        for module in (audit, drain, flows, job, lists, plan, queue_status, tokens)
        for name, function in getmembers(module, isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and function.__annotations__.get("return") in shown
    }
    assert found == set(PICTURES)


@pytest.mark.parametrize("width", [30, 80, 400])
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_no_picture_steers(picture, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments, options in PICTURES[picture]:
        output.show(picture(*arguments, **options))
        shown = capsys.readouterr().out
        assert shown
        assert STEERS.search(shown) is None


def test_what_steers_is_shown_and_styles_are_kept(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    output.show(Text.assemble(("fine", "red"), EVIL))
    shown = capsys.readouterr().out
    assert shown.startswith("\x1b[31mfine\x1b[0m")
    assert "\\x1b]0;owned\\x1b[2J\\x9b31m\\u202edesrever\\x7f" in shown


def commands(manager, samples, job_file: Path) -> list[list[object]]:
    """All that show what a manager answers, with answers that are hostile."""
    ended = [hostile(api.TaskView).model_copy(update={"state": AllocationState.FAILED})]
    view = hostile(api.JobView).model_copy(update={"id": samples.id, "state": JobState.FAILED, "placement": ended})
    path = f"jobs/{samples.id}"
    event = {"subject": EVIL, "time": EVIL, "data": {EVIL: EVIL}}
    manager.on("POST", "jobs", view, status=201)
    manager.on("GET", "jobs", [hostile(api.JobSummary)])
    manager.on("GET", path, view)
    manager.on("DELETE", path, view)
    manager.on("POST", f"{path}/pause", view)
    manager.on("GET", f"{path}/plan", hostile(api.PlanView))
    manager.on("GET", f"{path}/flows", hostile(api.JobFlowsView))
    manager.on("GET", f"{path}/logs", httpx.Response(200, text=f"{EVIL} | {EVIL}\nno task {EVIL}\n"))
    for stream in ("events", f"{path}/events"):
        manager.on("GET", stream, samples.sse((1, f"ces.v1.{EVIL}".replace("\r", ""), event)))
    manager.on("POST", "plans", hostile(api.PlanForecast))
    manager.on("GET", "nodes", [hostile(api.NodeView)])
    manager.on("GET", "applicants", [hostile(membership.Applicant)])
    manager.on("DELETE", "applicants/n1", hostile(membership.RefusedApplicants))
    manager.on("GET", "links", [hostile(api.LinkView)])
    manager.on("GET", "queue", {"items": [hostile(api.QueueEntry).model_dump(mode="json")], "remark": EVIL})
    manager.on("POST", "nodes/n1/drain", hostile(api.NodeView))
    manager.on("POST", "nodes/n1/forget", hostile(membership.ForgottenNode))
    manager.on("POST", "links/n1/n2/probe", hostile(api.LinkProbeView))
    manager.on("POST", "nodes/n1/cordon", samples.problem(409, EVIL, EVIL, [{"field": EVIL, "problem": EVIL}]))
    manager.on("POST", "nodes/n1/uncordon", httpx.Response(400, text=EVIL))
    manager.on("GET", "whoami", hostile(identities.Identity))
    manager.on("GET", "tokens", [hostile(identities.AccessTokenView)])
    manager.on("POST", "tokens", hostile(identities.NewAccessToken), status=201)
    manager.on("DELETE", "tokens/n", hostile(identities.AccessTokenView))
    listed = [["get", what] for what in ("jobs", "nodes", "applicants", "links", "queue")]
    of_job = [[what, samples.id] for what in ("wait", "flows", "logs", "cancel", "pause", "events")]
    of_node = [["node", what, "n1"] for what in ("drain", "forget", "cordon", "uncordon", "refuse")]
    more = [["submit", job_file], ["plan", job_file], ["describe", "job", samples.id], ["logs", samples.id, EVIL]]
    of_token = [["token", "list"], ["token", "create", "n", "--role", "admin"], ["token", "revoke", "n"], ["whoami"]]
    return [*listed, *of_job, *of_node, *of_token, *more, ["events"], ["probe", "n1", "n2"], ["describe", "node", EVIL]]


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_command_steers(connected, samples, job_file, form):
    for words in commands(connected, samples, job_file):
        result = CliRunner().invoke(app, [*map(str, words), "-o", form], color=True)
        assert result.output, words
        assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
        assert STEERS.search(result.output) is None, (words, result.output)


def test_json_says_exactly_what_came(connected, samples):
    connected.on("GET", "nodes", [samples.node("n0").model_copy(update={"labels": {"a": EVIL}})])
    shown = ces("get", "nodes", "-o", "json").stdout
    assert json.loads(shown)[0]["labels"] == {"a": EVIL}


def test_a_log_is_raw_only_where_that_is_asked_for_and_no_terminal_obeys_it(connected, samples, monkeypatch):
    connected.on("GET", f"jobs/{samples.id}/logs", httpx.Response(200, text=f"worker-0 | {EVIL}\n"))
    raw = ces("logs", samples.id, "--raw").stdout_bytes
    assert raw.decode() == f"worker-0 | {EVIL}\n"
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    refused = ces("logs", samples.id, "--raw", code=2)
    assert refused.stdout == ""
    assert "--raw: standard output is a terminal" in refused.stderr


FOLDERS = [Path(ces_client.__file__).parent, Path(ces_testbed.cli.__file__).parent]
PRINTERS = {"print", "Console", "typer.echo", "click.echo", "sys.stdout.write", "sys.stderr.write"}


def test_nothing_is_printed_past_the_console():
    """The one console and its neighbours make foreign text fit for a terminal; another way out would forget it."""
    found = [
        f"{file.name}:{node.lineno}"
        for folder in FOLDERS
        for file in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PRINTERS and file != Path(output.__file__)
    ]
    assert found == []
