"""What regions know of each other at any moment, and since when."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.regions import Summary
from ces_experiments.regions.told import Teller, Telling, TimelyBoard
from ces_federation.board import OLD_S
from ces_federation.service import AT_LEAST_S, EVERY_S

BLOCK = {"a": IPv4Network("10.64.0.0/16"), "b": IPv4Network("10.65.0.0/16")}


def summary(queued: int, region: str = "b") -> Summary:
    return Summary(epoch="e", region=region, block=BLOCK[region], queued=queued)


def heard(teller: Teller, by: float) -> tuple[int, float]:
    found = teller.heard(by)
    assert found is not None
    return found[0].queued, found[1]


def test_a_change_is_told_at_once_but_not_more_often_than_the_service_does() -> None:
    teller = Teller(Telling(), 0.5, summary(0))
    assert teller.heard(0.4) is None
    assert heard(teller, 0.6) == (0, 0.5)
    teller.note(1.0, summary(1))
    teller.note(1.1, summary(2))
    assert heard(teller, 1.0) == (1, 1.0)
    assert heard(teller, 1.2) == (1, 1.0)
    teller.note(1.15, summary(3))
    assert heard(teller, 1.0 + AT_LEAST_S) == (3, 1.0 + AT_LEAST_S)
    last = 1.0 + AT_LEAST_S + EVERY_S
    assert heard(teller, last + 0.1) == (3, last)


def test_one_that_tells_by_the_clock_says_what_is_so_when_it_tells() -> None:
    teller = Teller(Telling(4.0, on_change=False), 1.0, summary(0))
    teller.note(2.0, summary(1))
    teller.note(6.0, summary(2))
    assert heard(teller, 4.9) == (0, 1.0)
    assert heard(teller, 5.5) == (1, 5.0)
    assert heard(teller, 9.0) == (2, 9.0)
    assert teller.times(10.0) == 3


def test_one_that_is_known_at_every_moment_is_never_late() -> None:
    teller = Teller(Telling(at_once=True), 1.9, summary(0))
    teller.note(3.0, summary(1))
    assert heard(teller, 2.9) == (0, 2.9)
    assert heard(teller, 3.0) == (1, 3.0)


@given(
    st.lists(st.floats(0, 60), min_size=1, max_size=20).map(sorted),
    st.floats(0, 60),
    st.sampled_from([Telling(), Telling(on_change=False), Telling(8.0, on_change=False)]),
    st.floats(0, 1.9),
)
def test_what_is_heard_was_so_when_it_was_told_and_is_no_older_than_the_clock(
    changes: list[float], by: float, telling: Telling, first: float
) -> None:
    teller = Teller(telling, first, summary(0))
    for number, at in enumerate(changes, start=1):
        teller.note(at, summary(number))
    found = teller.heard(by)
    if found is None:
        assert by < first
        return
    said, at = found
    assert max(first, by - telling.every_s - 1e-6) <= at <= by
    assert said.queued == sum(change <= at for change in changes)


def test_the_board_knows_what_was_under_way_long_enough_and_nothing_old() -> None:
    teller = Teller(Telling(OLD_S * 2, on_change=False), 1.0, summary(3))
    board = TimelyBoard("a", BLOCK["a"], {"a": teller, "b": teller}, wire_s=0.5)
    assert board.usable(1.4) == {}
    assert board.usable(1.5)["b"].queued == 3
    assert board.age_s("b", 2.5) == pytest.approx(1.0)
    assert board.usable(1.5 + OLD_S).keys() == {"b"}
    assert board.usable(1.6 + OLD_S) == {}
