"""Subjects: what is built can be taken apart again, and no name can smuggle in a wildcard or a level."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ces_common import subjects
from ces_common.subjects import BadName


def test_the_subjects_of_the_design() -> None:
    assert subjects.event("job", "queued", "01J") == "ces.v1.evt.job.queued.01J"
    assert subjects.heartbeat("edge-1") == "ces.v1.hb.edge-1"
    assert subjects.report("edge-1", "applied") == "ces.v1.agent.edge-1.applied"
    assert subjects.rpc("manager", "snapshot") == "ces.v1.rpc.manager.snapshot"
    assert subjects.agent_rpc("edge-1", "logs") == "ces.v1.rpc.agent.edge-1.logs"
    assert subjects.dead_letter("scheduler") == "ces.v1.dead.scheduler"
    assert subjects.desired_key("edge-1", "compute") == "edge-1.compute"
    assert subjects.desired_subject("edge-1.network") == "$KV.ces_desired.edge-1.network"


def test_what_is_built_is_taken_apart_again() -> None:
    assert subjects.parse_heartbeat(subjects.heartbeat("N_1")) == "N_1"
    for kind in subjects.REPORT_KINDS:
        assert subjects.parse_report(subjects.report("n1", kind)) == ("n1", kind)
    for desired in subjects.DESIRED_KINDS:
        key = subjects.desired_key("n1", desired)
        assert subjects.parse_desired_key(key) == ("n1", desired)
        assert subjects.parse_desired_change(subjects.desired_change(key)) == key
        assert subjects.matches(subjects.desired_changes("n1"), subjects.desired_change(key))
        assert subjects.parse_fetch(subjects.fetch("n1", desired)) == key
        assert subjects.matches(subjects.ALL_FETCHES, subjects.fetch("n1", desired))


def test_a_node_is_answered_to_its_own_inbox_and_a_service_to_any() -> None:
    for subject in (subjects.heartbeat("n1"), subjects.fetch("n1", "compute")):
        assert subjects.answered_to(subject) == "_INBOX.n1."
    for subject in (subjects.rpc("manager", "snapshot"), subjects.agent_rpc("hb", "logs")):
        assert subjects.answered_to(subject) == "_INBOX."


@pytest.mark.parametrize("name", ["", "*", ">", "a.b", "a b", "a\n", "é", "$KV", "a/b", "x" * 200])
@pytest.mark.parametrize(
    "build",
    [
        lambda name: subjects.event(name, "t", "i"),
        lambda name: subjects.event("a", name, "i"),
        lambda name: subjects.event("a", "t", name),
        lambda name: subjects.events(name),
        subjects.heartbeat,
        lambda name: subjects.report(name, "status"),
        lambda name: subjects.rpc(name, "snapshot"),
        lambda name: subjects.rpc("manager", name),
        lambda name: subjects.agent_rpc(name, "logs"),
        lambda name: subjects.agent_rpc("n1", name),
        subjects.dead_letter,
        lambda name: subjects.desired_key(name, "compute"),
        subjects.desired_changes,
        lambda name: subjects.desired_change(f"{name}.compute"),
        lambda name: subjects.fetch(name, "compute"),
        lambda name: subjects.desired_subject(f"{name}.compute"),
        lambda name: subjects.desired_subject(f"n1.{name}"),
    ],
)
def test_no_name_can_be_more_than_one_token(build: Callable[[str], str], name: str) -> None:
    with pytest.raises(BadName):
        build(name)


@pytest.mark.parametrize(
    ("parse", "subject"),
    [
        (subjects.parse_heartbeat, "ces.v2.hb.a"),
        (subjects.parse_heartbeat, "ces.v1.hb.a.b"),
        (subjects.parse_heartbeat, "ces.v1.evt.a"),
        (subjects.parse_report, "ces.v1.agent.n1.gossip"),
        (subjects.parse_report, "ces.v1.agent.n1"),
        (subjects.parse_desired_key, "n1"),
        (subjects.parse_desired_key, "n1.storage"),
        (subjects.parse_desired_change, "ces.v1.hb.n1"),
        (subjects.parse_desired_change, "$KV.ces_desired.n1.compute"),
        (subjects.parse_fetch, "ces.v1.fetch.n1.storage"),
        (subjects.stream_of, "ces.v1.hb.n1"),
    ],
)
def test_foreign_subjects_are_refused(parse: Callable[[str], object], subject: str) -> None:
    with pytest.raises(BadName):
        parse(subject)


def test_an_agents_query_cannot_be_built_as_a_services() -> None:
    with pytest.raises(BadName, match="agent_rpc"):
        subjects.rpc("agent", "logs")


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.*", "a", False),
        ("a.>", "a", False),
        ("a.>", "a.b.c", True),
        ("*.b", "a.b", True),
        ("a.b.c", "a.b", False),
        (">", "a", True),
    ],
)
def test_patterns(pattern: str, subject: str, expected: bool) -> None:
    assert subjects.matches(pattern, subject) is expected


def test_every_stored_subject_names_its_stream() -> None:
    assert subjects.stream_of(subjects.event("job", "done", "1")) == subjects.EVENT_STREAM
    assert subjects.stream_of(subjects.events("job")) == subjects.EVENT_STREAM
    assert subjects.stream_of(subjects.ALL_EVENTS) == subjects.EVENT_STREAM
    assert subjects.stream_of(subjects.dead_letter("manager")) == subjects.DEAD_STREAM
