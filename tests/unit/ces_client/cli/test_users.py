"""``ces user move``: what is sent, what is said, and what is refused before anything is."""

from __future__ import annotations

import json

import pytest
from ces_command import ces

ELSEWHERE = [
    (("--node", "n2"), {"node": "n2", "lat": None, "lon": None}, "at node n2"),
    (("--at", "-33.8,151.2"), {"node": None, "lat": -33.8, "lon": 151.2}, "at -33.8, 151.2"),
]


@pytest.mark.parametrize(("options", "at", "words"), ELSEWHERE)
def test_a_user_is_elsewhere(connected, samples, options, at, words):
    view = samples.job("running", users=[{"name": "cam", "at": at}])
    connected.on("PUT", f"jobs/{samples.id}/users/cam", view)
    assert f"user cam of job digits is {words} now" in ces("user", "move", f"{samples.id}/cam", *options).stdout
    (sent,) = connected.sent("PUT", f"jobs/{samples.id}/users/cam")
    assert json.loads(sent.content) == {"at": {name: value for name, value in at.items() if value is not None}}
    connected.on("GET", f"jobs/{samples.id}", view)
    assert words in ces("describe", "job", samples.id).stdout


def test_what_the_manager_remarks_is_said(connected, samples):
    view = samples.job("running", remark="the job stays where it is")
    connected.on("PUT", f"jobs/{samples.id}/users/cam", view)
    assert ces("user", "move", f"{samples.id}/cam", "--node", "n2").stdout == "the job stays where it is\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cam", "--node", "n2"], "is no job and user"),
        (["job/", "--node", "n2"], "is no job and user"),
        (["job/cam"], "give one of --at and --node"),
        (["job/cam", "--node", "n2", "--at", "1,2"], "give one of --at and --node"),
        (["job/cam", "--at", "here"], "is no position"),
        (["job/cam", "--at", "91,0"], "is no position"),
        (["job/cam", "--at", "nan,0"], "is no position"),
    ],
)
def test_what_is_written_wrong_is_refused(connected, arguments, words):
    assert words in ces("user", "move", *arguments, code=2).stderr


def test_when_ces_last_looked_is_told(connected, samples):
    look = {"looked_at": samples.submitted, "why": "link a -> b has changed", "outcome": "w-1 moves", "left": 94}
    connected.on("GET", f"jobs/{samples.id}", samples.job("running", last_look=look))
    shown = " ".join(ces("describe", "job", samples.id).stdout.split())
    assert "ago, since link a -> b has changed: w-1 moves; 94 requests may fall into further moves this hour" in shown
