from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_common.messages.regions import RemoteStatus
from ces_common.messages.split import PartAnswer, PartState
from ces_common.states import JOB_OVER, JobState
from ces_manager.regions.split_course import heard, may_have_run, verdict, words

J = JobState
REGIONS = ("north", "south")


def part(number: int = 0, **more: object) -> PartState:
    about = {"job": "job-1", "attempt": 1, "part": number, "remote": f"{number:026}", "region": REGIONS[number]}
    return PartState.model_validate({**about, "tasks": [f"w-{number}"], **more})


def parts(one: dict[str, object], other: dict[str, object]) -> list[PartState]:
    return [part(0, **one), part(1, **other)]


COMMITTED = {"committed": True}
READY = {**COMMITTED, "ready": True}
STARTED = {**READY, "started": True}
LOST = {"lost": True, "over": True}


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({}, {}, ["commit", "commit"]),
        (COMMITTED, {}, ["status", "commit"]),
        (READY, {}, ["status", "commit"]),
        (COMMITTED, COMMITTED, ["status", "status"]),
        (READY, COMMITTED, ["status", "status"]),
        (READY, READY, ["start", "start"]),
        (STARTED, READY, ["status", "start"]),
        (STARTED, STARTED, ["status", "status"]),
        ({**STARTED, "over": True, "state": "succeeded"}, STARTED, [None, "status"]),
        (LOST, COMMITTED, [None, "release"]),
        ({"lost": True}, READY, ["release", "release"]),
    ],
)
def test_what_each_region_is_told_next(one: dict[str, object], other: dict[str, object], said: list[str]) -> None:
    assert words(parts(one, other), J.ELSEWHERE) == said


def test_a_job_that_is_over_is_released_until_every_region_says_that_nothing_is_left() -> None:
    assert words(parts(STARTED, {**STARTED, "over": True}), J.CANCELLED) == ["release", None]
    assert verdict(parts(STARTED, {**STARTED, "over": True}), J.CANCELLED).closed is False
    assert verdict(parts({"over": True}, {"over": True}), J.CANCELLED).closed is True


def test_one_that_lost_a_part_before_the_start_is_queued_again_once_nothing_is_left() -> None:
    assert verdict(parts(LOST, COMMITTED), J.ELSEWHERE).outcome == "goes on"
    again = verdict(parts({**LOST, "reason": "no room"}, {**COMMITTED, "over": True}), J.ELSEWHERE)
    assert (again.outcome, again.closed) == ("again", True)
    assert again.reason == "its part in region north: no room"


def test_one_that_may_have_run_fails_and_is_not_queued_again() -> None:
    assert verdict(parts({**READY, "lost": True}, READY), J.ELSEWHERE).outcome == "failed"
    assert verdict(parts({**READY, **LOST}, {**READY, "over": True}), J.ELSEWHERE).outcome == "failed"


def test_it_has_succeeded_once_every_part_has() -> None:
    done = {**STARTED, "state": "succeeded", "over": True}
    assert verdict(parts(done, STARTED), J.ELSEWHERE).outcome == "goes on"
    assert verdict(parts(done, done), J.ELSEWHERE).outcome == "succeeded"


@pytest.mark.parametrize("state", [J.FAILED, J.CANCELLED])
def test_a_part_that_failed_is_lost_and_says_why(state: JobState) -> None:
    answer = PartAnswer(fate="committed", ready=True, status=RemoteStatus(state=state, reason="it broke"))
    assert heard(part(**STARTED), answer).lost
    assert heard(part(**STARTED), answer).reason == "it broke"


class Owner:
    """A region as the protocol sees it: its books outlive whatever is lost on the way. ``runs``: its tasks do."""

    def __init__(self) -> None:
        self.state = "held"
        self.ready = self.runs = self.ever_ran = False
        self.gone = False

    def hear(self, word: str) -> PartAnswer:
        if word == "commit" and self.state == "held":
            self.state = "committed"
        elif word == "start" and self.state == "committed" and self.ready:
            self.state, self.runs, self.ever_ran = "started", True, True
        elif word == "release" and self.state != "done":
            self.end("cancelled")
        return self.tell()

    def tell(self) -> PartAnswer:
        if self.state == "expired":
            return PartAnswer(fate="released", over=self.gone)
        if self.state in ("failed", "done", "cancelled"):
            fate = {"failed": J.FAILED, "done": J.SUCCEEDED, "cancelled": J.CANCELLED}[self.state]
            return PartAnswer(fate="committed", ready=True, over=self.gone, status=RemoteStatus(state=fate))
        status = RemoteStatus(state=J.RUNNING if self.runs else J.PLANNED)
        fate_now = "held" if self.state == "held" else "committed"
        return PartAnswer(fate=fate_now, ready=self.ready, started=self.state == "started", status=status)  # type: ignore[arg-type]

    def end(self, how: str) -> None:
        if self.state not in ("failed", "done", "cancelled", "expired"):
            self.state = how
        self.runs = False

    def act(self, what: str) -> None:
        """Time, and what happens there by itself."""
        if what == "expire" and self.state == "held":
            self.end("expired")
        elif what == "ready" and self.state == "committed":
            self.ready = True
        elif what == "fail" and self.state in ("committed", "started"):
            self.end("failed")
        elif what == "finish" and self.state == "started":
            self.end("done")
        elif what == "gone" and not self.runs and self.state in ("failed", "done", "cancelled", "expired"):
            self.gone = True


STEP = st.tuples(
    st.sampled_from(["ask", "ask", "ask", "ready", "ready", "expire", "fail", "finish", "gone", "gone", "cancel"]),
    st.integers(0, 1),
    st.sampled_from(["arrives", "arrives", "arrives", "question lost", "answer lost"]),
)


def play(steps: Sequence[tuple[str, int, str]]) -> tuple[JobState, list[PartState], list[Owner], bool]:
    owners, known, state, closed = [Owner(), Owner()], parts({}, {}), J.ELSEWHERE, False
    for what, number, way in steps:
        owner = owners[number]
        if what == "cancel":
            if way == "answer lost":  # rarely
                state = J.CANCELLED if state is J.ELSEWHERE else state
        elif what != "ask":
            owner.act(what)
        elif not closed and (word := words(known, state)[number]) is not None:
            if word == "start":
                assert all(each.state not in ("held",) and each.ready for each in owners), "some network is not ready"
            answer = owner.hear(word) if way != "question lost" else None
            if answer is not None and way == "arrives":
                known[number] = heard(known[number], answer)
                found = verdict(known, state)
                closed = found.closed
                if found.outcome != "goes on":
                    ends = {"again": J.QUEUED, "failed": J.FAILED, "succeeded": J.SUCCEEDED}
                    state = ends[found.outcome]
        if any(each.runs for each in owners):
            assert all(each.state != "held" for each in owners), "a part runs whose peer is not committed"
        if state is J.QUEUED:
            assert not any(each.runs or each.ever_ran for each in owners), "it is queued again though it ran"
            assert all(each.gone for each in owners)
    return state, known, owners, closed


@settings(max_examples=400)
@given(st.lists(STEP, max_size=60))
def test_whatever_is_lost_nothing_starts_early_or_runs_twice_and_all_is_released(
    steps: list[tuple[str, int, str]],
) -> None:
    play(steps)
    what_follows = ("expire", "ready", "ask", "finish", "gone")
    tail = [(what, number, "arrives") for what in what_follows for number in (0, 1)] * 4
    state, known, owners, closed = play([*steps, *tail, *tail])
    assert state in JOB_OVER | {J.QUEUED}
    assert closed
    assert not any(owner.runs for owner in owners)
    assert all(owner.gone for owner in owners)
    if state is J.SUCCEEDED:
        assert all(owner.state == "done" for owner in owners)
    if state is J.QUEUED:
        assert not may_have_run(known)
