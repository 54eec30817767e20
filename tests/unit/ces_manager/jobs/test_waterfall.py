from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.traces import SpanView
from ces_common.states import AllocationState, JobState
from ces_manager.jobs.waterfall import DEEPEST, Happened, happened, in_order, of_events

START = datetime(2026, 1, 1, tzinfo=UTC)


def view(id_: str, parent: str | None, start_us: int = 0) -> SpanView:
    return SpanView(id=id_, parent=parent, depth=0, name=id_, service="s", start_us=start_us, duration_us=1)


def job(seconds: float, state: JobState, attempt: int = 1) -> Happened:
    return Happened(START + timedelta(seconds=seconds), state, attempt)


def runs(seconds: float, task: str, attempt: int = 1, incarnation: int = 1) -> Happened:
    at = START + timedelta(seconds=seconds)
    return Happened(at, AllocationState.RUNNING, attempt, f"a-{task}", task, "n1", incarnation)


def test_children_stand_under_their_parents_in_order() -> None:
    told = [view("c", "a", 3), view("b", "a", 2), view("a", None, 1), view("d", "b", 9), view("lost", "untold", 4)]
    assert [(each.id, each.depth) for each in in_order(told)] == [
        ("a", 0),
        ("b", 1),
        ("d", 2),
        ("c", 1),
        ("lost", 0),
    ]


IDS = st.sampled_from("abcdefgh")


@given(st.dictionaries(IDS, st.tuples(st.none() | IDS, st.integers(-5, 5))))
def test_every_span_is_shown_once_whatever_is_told(parents: dict[str, tuple[str | None, int]]) -> None:
    shown = in_order([view(id_, parent, start) for id_, (parent, start) in parents.items()])
    assert sorted(each.id for each in shown) == sorted(parents)
    assert all(0 <= each.depth <= DEEPEST for each in shown)


def test_a_long_chain_is_set_in_only_so_far() -> None:
    chain = [view(str(n), str(n - 1) if n else None, n) for n in range(3 * DEEPEST)]
    assert [each.depth for each in in_order(chain)][-1] == DEEPEST


def test_phases_of_an_attempt_that_ran() -> None:
    events = [
        job(0, JobState.QUEUED),
        job(2, JobState.PLANNED),
        job(3, JobState.PREPARING),
        job(4, JobState.STARTING),
        runs(5, "w-0"),
        runs(6, "w-1"),
        job(6, JobState.RUNNING),
        job(9, JobState.SUCCEEDED),
    ]
    began, spans = of_events(events, 1)
    assert began == START
    assert [(each.depth, each.name, each.start_us, each.duration_us) for each in spans] == [
        (0, "attempt", 0, 6_000_000),
        (1, "queued", 0, 2_000_000),
        (1, "network", 2_000_000, 2_000_000),
        (1, "workers", 4_000_000, 2_000_000),
        (2, "w-0", 4_000_000, 1_000_000),
        (2, "w-1", 4_000_000, 2_000_000),
    ]
    assert [each.node for each in spans] == [None] * 4 + ["n1"] * 2


def test_what_goes_on_has_no_end() -> None:
    _, spans = of_events([job(0, JobState.QUEUED), job(1, JobState.PLANNED)], 1)
    assert [(each.name, each.duration_us) for each in spans] == [
        ("attempt", None),
        ("queued", 1_000_000),
        ("network", None),
    ]


def test_an_attempt_that_came_to_nothing_ends_there_and_the_next_has_its_own() -> None:
    events = [
        job(0, JobState.QUEUED),
        job(1, JobState.PLANNED),
        job(2, JobState.RESCHEDULING),
        job(5, JobState.QUEUED, 2),
        job(6, JobState.CANCELLED, 2),
    ]
    assert [(each.name, each.duration_us) for each in of_events(events, 1)[1]] == [
        ("attempt", 2_000_000),
        ("queued", 1_000_000),
        ("network", 1_000_000),
    ]
    began, spans = of_events(events, 2)
    assert began == START + timedelta(seconds=5)
    assert [(each.name, each.start_us, each.duration_us) for each in spans] == [
        ("attempt", 0, 1_000_000),
        ("queued", 0, 1_000_000),
    ]


def test_nothing_is_known_of_an_attempt_without_events() -> None:
    assert of_events([job(0, JobState.QUEUED)], 2) == (None, [])


def test_events_of_a_job_s_life_are_told_from_others() -> None:
    time = START.isoformat()
    changed = {"job": "j", "attempt": 2, "state": "queued"}
    assert happened({"type": "ces.v1.job.queued", "time": time, "data": changed}, {}) == job(0, JobState.QUEUED, 2)
    assert happened({"type": "ces.v1.job.waiting", "time": time, "data": changed}, {}) is None
    assert happened({"type": "ces.v1.plan.committed", "time": time, "data": changed}, {}) is None
    moved = {"allocation": "a-w", "task": "w", "node": "n1", "incarnation": 1}
    event = {"type": "ces.v1.allocation.running", "time": time, "data": moved}
    assert happened(event, {"a-w": 3}) == runs(0, "w", 3)
    assert happened(event, {}) is None
