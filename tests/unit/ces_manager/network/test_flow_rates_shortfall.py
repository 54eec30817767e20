"""When a flow gets less than it was given for a reason that is not its program's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.api import FlowSample
from ces_manager.network.flow_rates import SAMPLES, SHORT, short_hop

GIVEN = 10_000_000
START = datetime(2030, 1, 1, tzinfo=UTC)


def hop(rate: float, waited: float = 0.0, count: int = SAMPLES, given: int = GIVEN) -> list[FlowSample]:
    times = [START + timedelta(seconds=2 * i) for i in range(count)]
    return [FlowSample(at=at, measured=rate * GIVEN, waited=waited, rate=given) for at in times]


SHARES = st.floats(0, 1.2)
HOPS = st.lists(st.tuples(SHARES, st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("hops", "link"),
    [
        ([hop(1, 1.0), hop(1)], None),  # it has what it was given, and would send more
        ([hop(0.3), hop(0.3)], None),  # it sends little
        ([hop(0.5, 0.75), hop(0.5)], None),  # it pauses
        ([hop(0.5, 1.0), hop(0.5)], 0),  # it waits, and the first link does not take it
        ([hop(1, 1.0), hop(0.5)], 0),  # sent over the first link, and did not arrive
        ([hop(1, 1.0), hop(1), hop(0.5)], 1),  # sent on over the second, and did not arrive
        ([hop(0.5), hop(0.5, 1.0)], 1),  # its sender has slowed down, since it waits at the second
        ([hop(0.5, 1.0, count=SAMPLES - 1), hop(0.5)], None),  # too early to tell
        ([hop(0.5, 1.0, given=0), hop(0.5, given=0)], None),  # an agent that does not say what it gave
        ([hop(1, 1.0), []], None),  # one that reports nothing
    ],
)
def test_the_link_that_falls_short_is_named(hops: list[list[FlowSample]], link: int | None) -> None:
    assert short_hop(hops) == link


def test_one_good_report_clears_it() -> None:
    recovered = [*hop(0.5, 1.0), *hop(1, 1.0, count=1)]
    assert short_hop([recovered]) is None
    assert short_hop([[*recovered, *hop(0.5, 1.0)]]) == 0


@given(HOPS)
def test_who_leaves_nothing_waiting_is_never_short(drawn: list[tuple[float, float]]) -> None:
    assert short_hop([hop(rate, min(waited, 0.5)) for rate, waited in drawn]) is None


@given(HOPS)
def test_who_gets_what_was_given_everywhere_is_never_short(drawn: list[tuple[float, float]]) -> None:
    assert short_hop([hop(max(rate, SHORT), waited) for rate, waited in drawn]) is None


@given(HOPS)
def test_a_link_is_named_only_beside_a_node_that_sends_too_little(drawn: list[tuple[float, float]]) -> None:
    link = short_hop([hop(rate, waited) for rate, waited in drawn])
    assert link is None or min(rate for rate, _ in drawn[link : link + 2]) < SHORT
