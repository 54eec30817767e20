"""Facts: each survives its CloudEvent's JSON, and what is no fact is refused with the field that is wrong."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common import subjects
from ces_common.messages.base import Message
from ces_common.messages.checkpoints import CheckpointRestored, CheckpointStored
from ces_common.messages.events import (
    EVENTS,
    AllocationChanged,
    CloudEvent,
    DeadlineJudged,
    DeadlineTold,
    JobChanged,
    JobWaiting,
    LinkChanged,
    MalformedEvent,
    NetworkPreparing,
    NetworkReady,
    NodeChanged,
    PartCommitted,
    PlanRefused,
    TopologyChanged,
    new_event,
    parse_event,
)
from ces_common.messages.identities import SessionChanged, TokenChanged
from ces_common.messages.moves import MoveChanged, MoveCommitted
from ces_common.messages.plans import (
    CpuCommitted,
    CpuProposed,
    CpuRejected,
    CpuReleased,
    FlowPlan,
    PlanCommitted,
    PlanProposed,
    PlanRejected,
    PlanRevised,
    PreemptionCommitted,
    PreemptionProposed,
    PreemptionRejected,
    ResizeCommitted,
    ResizeEnded,
    ResizeProposed,
    ResizeRejected,
    RevisionProposed,
    RevisionRejected,
)
from ces_common.messages.records import AllocationRecord, FlowRecord
from ces_common.messages.reports import FlowUsage
from ces_common.messages.secrets import SecretChanged
from ces_common.messages.users import UserMoved
from ces_common.states import AllocationState, JobState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SAMPLES: dict[type[Message], list[dict[str, Any]]] = {
    JobChanged: [{"job": "j", "name": "n", "attempt": 1, "state": "queued"}],
    DeadlineJudged: [{"job": "j", "attempt": 1, "version": 2, "kept": True, "end_at": NOW}],
    DeadlineTold: [
        {
            "job": "j",
            "name": "n",
            "deadline_at": NOW,
            "kept": False,
            "end_at": NOW,
            "refusal": {"code": "deadline", "text": "t"},
        }
    ],
    JobWaiting: [{"job": "j", "name": "n", "reason": {"code": "c", "text": "t", "needed": 1.5, "forever": True}}],
    AllocationChanged: [
        {"allocation": "a", "job": "j", "task": "t", "node": "n", "incarnation": 2, "state": "failed", "exit_code": 3}
    ],
    PlanProposed: [
        {
            "plan": "p",
            "job": "j",
            "attempt": 1,
            "version": 7,
            "solver": "greedy",
            "assignments": {"t": "n"},
            "flows": [{"src": "a", "dst": "b", "rate": 5, "path": ["n", "m"]}],
            "metrics": {"composite": 0.5},
            "considered": {"refused": {"t": {"n": "cpu"}}, "nothing": None},
        }
    ],
    PlanRefused: [
        {"job": "j", "attempt": 1, "version": 2, "reason": {"code": "c", "text": "t"}},
        {
            "job": "j",
            "attempt": 1,
            "version": 2,
            "reason": {"code": "c", "text": "t"},
            "queue_status": {
                "job": "j",
                "position": 3,
                "score": {"fit": -1.5, "priority": 0, "waiting": 0.25, "share": 0, "total": -1.25, "scarce": "cpu"},
                "reserved": True,
                "start_at": NOW,
                "held_by": ["k"],
            },
        },
    ],
    PlanCommitted: [
        {
            "plan": "p",
            "job": "j",
            "attempt": 1,
            "solver": "s",
            "allocations": [AllocationRecord(id="a", task="t", rank=0, node="n", address="10.0.0.2", port=1)],
            "flows": [FlowRecord(number=1, src="a", dst="b", min=1, max=2, rate=2, path=["n"])],
        }
    ],
    PlanRevised: [
        {"revision": "r", "job": "j", "attempt": 1, "cause": "room"},
        {
            "revision": "r",
            "job": "j",
            "attempt": 1,
            "cause": "link",
            "flows": [FlowRecord(number=1, src="a", dst="b", min=1, max=2, rate=2, path=["n"])],
            "short": [{"src": "w-0", "dst": "w-1", "min": 10, "rate": 0}],
        },
    ],
    RevisionProposed: [
        {
            "revision": "r",
            "version": 1,
            "cause": "link",
            "jobs": [
                {
                    "job": "j",
                    "attempt": 1,
                    "flows": [{"src": "w-0", "dst": "w-1", "rate": 5, "path": ["a", "b"]}],
                }
            ],
        }
    ],
    RevisionRejected: [{"revision": "r", "reason": "full"}],
    CheckpointStored: [
        {"job": "j", "node": "n", "attempt": 1, "incarnation": 2, "name": "step-7", "size": 9, "digest": "0a" * 32}
    ],
    CheckpointRestored: [
        {"job": "j", "node": "n", "attempt": 2, "incarnation": 1, "source": "m", "name": "step-7"},
        {"job": "j", "node": "n", "attempt": 2, "incarnation": 1, "reason": "no node has a copy"},
    ],
    ResizeProposed: [
        {
            "resize": "r",
            "job": "j",
            "attempt": 1,
            "version": 7,
            "solver": "greedy",
            "size": 2,
            "assignments": {"t-0": "n", "t-1": "m"},
            "flows": [{"src": "t-0", "dst": "t-1", "rate": 5, "path": ["n", "m"]}],
        }
    ],
    ResizeCommitted: [
        {
            "resize": "r",
            "job": "j",
            "attempt": 2,
            "before": 1,
            "size": 2,
            "allocations": [AllocationRecord(id="a", task="t-0", rank=0, node="n", address="10.0.0.2", port=1)],
            "flows": [FlowRecord(number=1, src="a", dst="b", min=1, max=2, rate=2, path=["n"])],
        }
    ],
    ResizeEnded: [{"resize": "r", "job": "j", "attempt": 2, "done": done} for done in (True, False)],
    ResizeRejected: [{"resize": "r", "job": "j", "attempt": 1, "reason": "full", "stale": True}],
    MoveCommitted: [
        {
            "move": "m",
            "job": "j",
            "attempt": 1,
            "task": "t-0",
            "kind": "stateful",
            "source": "n",
            "destination": "o",
            "old": "x",
            "new": AllocationRecord(id="a", task="t-0", rank=0, node="o", address="10.0.0.2", port=1),
            "back": AllocationRecord(id="b", task="t-0", rank=0, node="n", address="10.0.1.2", port=1),
            "flows": [FlowRecord(number=1, src="t-0", dst="t-1", min=1, max=2, rate=2, path=["o"])],
            "why": why,
        }
        for why in (None, "link a -> b has changed")
    ],
    MoveChanged: [
        {
            "move": "m",
            "job": "j",
            "attempt": 1,
            "task": "t-0",
            "allocation": "a",
            "previous": "starting",
            "state": state,
            "reason": "the node is lost",
            "dropped": dropped,
        }
        for state, dropped in (("done", []), ("starting", ["b"]))
    ],
    UserMoved: [{"job": "j", "user": "cam", "node": "n"}],
    CpuProposed: [{"change": "c", "job": "j", "attempt": 1, "version": 7, "cpu": 800}],
    CpuCommitted: [{"change": "c", "job": "j", "attempt": 1, "cpu": 800}],
    CpuReleased: [{"job": "j", "attempt": 1, "allocation": "a", "task": "t-0", "node": "n", "cpu": 300}],
    CpuRejected: [{"change": "c", "job": "j", "attempt": 1, "reason": "full", "stale": True}],
    PreemptionProposed: [
        {
            "preemption": "p",
            "version": 1,
            "job": "j",
            "attempt": 1,
            "victims": [{"job": "k", "attempt": 1, "how": how} for how in ("stop", "suspend")],
        }
    ],
    PreemptionCommitted: [{"preemption": "p", "job": "j", "victims": [{"job": "k", "attempt": 1, "how": "stop"}]}],
    PreemptionRejected: [{"preemption": "p", "job": "j", "reason": "it has changed", "stale": True}],
    PlanRejected: [{"plan": "p", "job": "j", "attempt": 1, "reason": "full"}],
    TokenChanged: [
        {"name": "ci", "role": "submitter", "tenants": ["a"]},
        {"name": "ops", "role": "operator", "tenants": None},
    ],
    SessionChanged: [{"holder": "ci", "role": "viewer", "tenants": ["a"]}, {"holder": "ops", "role": "operator"}],
    SecretChanged: [{"tenant": "vision", "name": "hub.token"}],
    NodeChanged: [
        {"node": "n", "change": change}
        for change in ("joined", "ready", "unreachable", "cordoned", "uncordoned", "drained", "changed")
    ],
    NetworkPreparing: [{"job": "j", "attempt": 1}],
    NetworkReady: [{"job": "j", "attempt": 1}, {"job": "j", "attempt": 1, "move": "m"}],
    PartCommitted: [{"job": "j", "attempt": 1, "home": "north"}],
    TopologyChanged: [{"links": 4, "media": 0}],
    LinkChanged: [{"src": "a", "dst": "b", "state": "down", "reason": "no carrier", "bandwidth": 1, "measured": 1}],
}


def good() -> dict[str, Any]:
    event = new_event("manager", "job", "queued", "j", JobChanged.model_validate(SAMPLES[JobChanged][0]), NOW)
    loaded: dict[str, Any] = json.loads(event.encode())
    return loaded


def test_every_model_has_a_sample() -> None:
    assert set(SAMPLES) == set(EVENTS.values())


@pytest.mark.parametrize(("aggregate", "kind"), EVENTS, ids=lambda part: str(part))
def test_every_event_survives_its_json(aggregate: str, kind: str) -> None:
    model = EVENTS[(aggregate, kind)]
    for sample in SAMPLES[model]:
        event = new_event("manager", aggregate, kind, "an-id", model.model_validate(sample), NOW)
        again = parse_event(event.encode())
        assert type(again.data) is model
        assert again.data == event.data
        assert (again.id, again.source, again.type, again.subject, again.time) == (
            event.id,
            "manager",
            f"ces.v1.{aggregate}.{kind}",
            "an-id",
            NOW,
        )
        assert again.bus_subject == subjects.event(aggregate, kind, "an-id")


def test_the_envelope_is_a_cloud_event() -> None:
    event = good()
    assert event["specversion"] == "1.0"
    assert event["datacontenttype"] == "application/json"
    assert {"id", "source", "type", "subject", "time", "data"} <= set(event)


def test_states_are_the_events_of_jobs_and_allocations() -> None:
    assert {kind for aggregate, kind in EVENTS if aggregate == "job"} == {*JobState, "waiting", "deadline"}
    assert {kind for aggregate, kind in EVENTS if aggregate == "allocation"} == set(AllocationState)


def test_an_event_is_made_with_its_own_data_only() -> None:
    ready = NetworkReady(job="j", attempt=1)
    with pytest.raises(TypeError, match=r"job\.queued carries JobChanged, not NetworkReady"):
        new_event("s", "job", "queued", "j", ready, NOW)
    with pytest.raises(KeyError):
        new_event("s", "job", "invented", "j", ready, NOW)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"id": ""}, "^id: "),
        ({"time": "yesterday"}, "^time: "),
        ({"specversion": "0.3"}, "^specversion: "),
        ({"type": 5}, "^type: "),
        ({"type": "ces.v1.job.invented"}, "unknown event type"),
        ({"type": "ces.v2.job.queued"}, "unknown event type"),
        ({"type": "job"}, "unknown event type"),
        ({"type": "a.b.c.d.e"}, "unknown event type"),
        ({"data": {"job": "j"}}, r"^data\.name: "),
        ({"data": {**SAMPLES[JobChanged][0], "state": "asleep"}}, r"^data\.state: "),
        ({"data": None}, "^data: "),
    ],
)
def test_a_malformed_event_names_the_field(change: dict[str, Any], what: str) -> None:
    with pytest.raises(MalformedEvent, match=what):
        parse_event(json.dumps(good() | change).encode())


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"a":' * 100_000, b'"\\ud800"'])
def test_what_is_no_json_object_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedEvent):
        parse_event(raw)


@given(st.binary(max_size=200))
def test_bytes_give_an_event_or_malformed(raw: bytes) -> None:
    with suppress(MalformedEvent):
        parse_event(raw)


@given(st.dictionaries(st.sampled_from([*good(), "sequence", "more"]), JSON, max_size=4))
def test_mutilated_events_give_an_event_or_malformed(change: dict[str, Any]) -> None:
    with suppress(MalformedEvent):
        assert isinstance(parse_event(json.dumps(good() | change).encode()), CloudEvent)


@given(st.sampled_from(list(EVENTS)), st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_any_data_gives_an_event_or_malformed(which: tuple[str, str], data: dict[str, Any]) -> None:
    kind = ".".join(which)
    with suppress(MalformedEvent):
        parse_event(json.dumps(good() | {"type": f"ces.v1.{kind}", "data": data}).encode())


def test_what_former_versions_stored_and_reported_is_read() -> None:
    plan = FlowPlan.model_validate({"src": "a", "dst": "b", "bandwidth": 5, "path": ["n"]})
    assert plan == FlowPlan(src="a", dst="b", rate=5, path=["n"])
    assert "bandwidth" not in plan.encode().decode()
    former = {"number": 1, "rate": 4.5, "peak": 6.0, "total": 7, "given": 10}
    assert FlowUsage.model_validate(former) == FlowUsage(number=1, measured=4.5, peak=6.0, total=7, rate=10)
    older = {"number": 1, "rate": 4.5, "peak": 6.0, "total": 7}
    assert FlowUsage.model_validate(older).rate == 0
