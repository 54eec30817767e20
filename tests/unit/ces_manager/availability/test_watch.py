"""Who was there and who was away, and what is no failure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_manager.availability.evidence import Evidence
from ces_manager.availability.watch import Hop, NodeSeen, Watch

SILENT_S, LEASE_S, LOOK_S = 10.0, 30.0, 5.0
FRESH = NodeSeen(age_s=1.0, boot="b", machine="m", planned=False)


class Course:
    """Looks at a node ``n`` every five seconds. ``passes``: it was heard all the time; ``is_silent``: or not."""

    def __init__(self) -> None:
        self.watch, self.now, self.seen = Watch(SILENT_S, LEASE_S), 0.0, FRESH
        self.links: dict[Hop, bool] = {}
        self.look()

    def look(self, **more: NodeSeen) -> None:
        self.watch.look({"n": self.seen, **more}, self.links, self.now)

    def passes(self, seconds: float, **more: object) -> None:
        self.seen = replace(self.seen, age_s=1.0, **more)  # type: ignore[arg-type]
        until = self.now + seconds
        while self.now < until:
            self.now += LOOK_S
            self.look()

    def is_silent(self, seconds: float) -> None:
        until, since = self.now + seconds, self.now - self.seen.age_s
        while self.now < until:
            self.now += LOOK_S
            self.seen = replace(self.seen, age_s=self.now - since)
            self.look()

    def learned(self) -> Evidence:
        found = self.watch.take().get("n", Evidence())
        assert isinstance(found, Evidence)
        return found


@pytest.fixture
def course() -> Course:
    return Course()


def test_a_node_that_is_heard_is_there(course: Course) -> None:
    course.passes(300)
    assert course.learned() == Evidence(up_s=300)
    assert course.learned() == Evidence(), "what was taken is told once"


def test_an_outage_counts_from_when_it_was_last_heard(course: Course) -> None:
    course.passes(300)
    course.is_silent(600)
    course.passes(300)
    learned = course.learned()
    assert learned.down_s == pytest.approx(600, abs=2 * LOOK_S)
    assert learned.seconds == pytest.approx(1200, abs=LOOK_S)


def test_a_lost_heartbeat_or_two_are_nothing(course: Course) -> None:
    course.passes(300)
    course.is_silent(5)
    course.passes(300)
    assert course.learned().down_s == 0


def test_an_agent_that_starts_again_within_the_lease_has_not_failed(course: Course) -> None:
    """As for an upgrade: its workers went on."""
    course.passes(300)
    course.is_silent(20)
    course.passes(300, boot="another")
    assert course.learned().down_s == 0


def test_a_machine_that_starts_again_has(course: Course) -> None:
    course.passes(300)
    course.is_silent(20)
    course.passes(300, boot="another", machine="after a reboot")
    assert course.learned().down_s == pytest.approx(20, abs=LOOK_S)


def test_so_has_an_agent_whose_lease_has_ended_and_one_that_was_cut_off(course: Course) -> None:
    course.passes(300)
    course.is_silent(60)
    course.passes(300, boot="another")
    assert course.learned().down_s == pytest.approx(60, abs=2 * LOOK_S)
    course.is_silent(20)
    course.passes(300)
    assert course.learned().down_s == pytest.approx(20, abs=LOOK_S)


def test_a_node_that_is_cordoned_or_drained_is_not_looked_at(course: Course) -> None:
    course.passes(300, planned=True)
    course.is_silent(600)
    assert course.learned() == Evidence()
    course.seen = replace(course.seen, planned=False)  # uncordoned before it is back
    course.is_silent(100)
    learned = course.learned()
    assert (learned.up_s, learned.down_s) == (0, pytest.approx(95, abs=LOOK_S)), "from then on it is missed"


def test_an_outage_is_not_hidden_by_a_cordon(course: Course) -> None:
    course.passes(300)
    course.is_silent(20)
    course.seen = replace(course.seen, planned=True)
    course.is_silent(600)
    assert course.learned().down_s == pytest.approx(20, abs=LOOK_S)


def test_another_manager_says_nothing_of_what_was_before_it_looked(course: Course) -> None:
    course.watch = Watch(SILENT_S, LEASE_S)
    course.seen = replace(course.seen, age_s=3600.0)
    course.look()
    assert course.learned() == Evidence()
    course.is_silent(60)
    assert course.learned() == Evidence(down_s=60)


def test_a_link_is_looked_at_while_both_of_its_ends_are_heard(course: Course) -> None:
    hop = ("n", "m")
    course.links = {hop: True, ("m", "n"): False, ("n", "switch"): True}
    for seen, counted in ((FRESH, True), (replace(FRESH, age_s=60.0), False), (replace(FRESH, planned=True), False)):
        course.watch.take()
        course.now += LOOK_S
        course.look(m=seen)
        learned = course.watch.take()
        assert learned.get(hop) == (Evidence(up_s=LOOK_S) if counted else None)
        assert learned.get(("m", "n")) == (Evidence(down_s=LOOK_S) if counted else None)
        assert ("n", "switch") not in learned


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=12))
def test_no_time_is_counted_twice(parts: list[tuple[bool, int]]) -> None:
    course = Course()
    for silent, looks in parts:
        (course.is_silent if silent else course.passes)(looks * LOOK_S)
    learned = course.learned()
    assert learned.up_s >= 0
    assert learned.seconds <= course.now + FRESH.age_s
    assert learned.down_s <= sum(looks * LOOK_S for silent, looks in parts if silent) + LOOK_S * len(parts)
