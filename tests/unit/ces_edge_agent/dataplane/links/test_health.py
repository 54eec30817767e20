"""When a link counts as down, and when as up again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.desired import DesiredNetwork, LinkDevice
from ces_common.messages.reports import LinkStatus
from ces_edge_agent.dataplane.links.health import ANSWERS, MISSES, PATIENCE_S, PROBE_EVERY_S, START_S, Health
from ces_edge_agent.dataplane.plan.derivation import Facts, derive
from ces_edge_agent.dataplane.plan.objects import Filter, Route
from ces_edge_agent.dataplane.plan.shaping import ARP, ETH_IP, pair_match

UP = LinkStatus(peer="b", state="up")


class Link:
    """A link with its clock: each tick sends a probe, which is answered or not."""

    def __init__(self) -> None:
        self.now = 100.0
        self.health = Health("b", "to-b")
        self.health.observe(self.now, None)

    def ticks(self, *answered: bool) -> LinkStatus | None:
        for each in answered:
            self.health.tick(self.now)
            if each:
                self.health.answered(self.now + 0.001, self.now)
            self.now += PROBE_EVERY_S
        return self.health.status()


def test_a_link_is_judged_by_the_answers_of_its_neighbour() -> None:
    link = Link()
    assert link.health.can_probe
    assert link.ticks(*[True] * ANSWERS) is None, "too early to say: the last answer is not judged yet"
    assert link.ticks(True) == UP
    assert link.ticks(*[False] * MISSES) == UP
    down = link.ticks(False)
    assert down == LinkStatus(peer="b", state="down", reason=f"no answer from b for {MISSES * PROBE_EVERY_S:.1f} s")
    assert link.ticks(*[False] * 50) == down, "a report that stays the same is not news"
    assert link.ticks(*[True] * ANSWERS) == down
    assert link.ticks(True) == UP


def test_silence_while_a_link_is_full_on_purpose_says_nothing() -> None:
    link = Link()
    assert link.ticks(*[True] * (ANSWERS + 1)) == UP
    link.health.excused_until = link.now + 10 * MISSES * PROBE_EVERY_S
    assert link.ticks(*[False] * 9 * MISSES) == UP
    link.health.excused_until = link.now
    assert link.ticks(*[False] * (MISSES - 1)) == UP
    status = link.ticks(False)
    assert status is not None
    assert status.state == "down"


def test_a_lenient_judge_waits_longer_for_an_answer_but_not_for_ever() -> None:
    link = Link()
    assert link.ticks(*[True] * (ANSWERS + 1)) == UP
    link.health.lenient_s = 10 * MISSES * PROBE_EVERY_S
    for _ in range(3):
        assert link.ticks(*[False] * 9 * MISSES, True) == UP
    status = link.ticks(*[False] * (11 * MISSES + 2))
    assert status is not None
    assert status.state == "down"


def test_a_neighbour_that_never_answered_may_just_be_starting() -> None:
    link = Link()
    assert link.ticks(*[False] * (MISSES + 1)) is None
    link.now += START_S
    status = link.ticks(False)
    assert status is not None
    assert status.state == "down"


@given(st.lists(st.booleans(), max_size=60))
def test_it_takes_so_many_misses_in_a_row_and_so_many_answers(answered: list[bool]) -> None:
    link, state, row = Link(), None, 0
    link.health.tick(link.now + START_S)
    link.health.observe(link.now, "gone")
    link.health.observe(link.now, None)
    for i, each in enumerate(answered):
        status = link.ticks(each)
        if i:  # judged with the next probe
            before = answered[i - 1]
            row = row + 1 if i > 1 and answered[i - 2] == before else 1
            if row >= (ANSWERS if before else MISSES):
                state = "up" if before else "down"
        assert (status.state if status else None) == state


def test_a_busy_agent_that_sends_no_probes_misses_none() -> None:
    link = Link()
    link.ticks(*[True] * (ANSWERS + 1))
    link.now += 3600
    assert link.ticks(False, False) == UP


def test_a_slow_round_trip_is_heard_and_one_that_took_too_long_is_not() -> None:
    link = Link()
    for late, state in ((1.0, "up"), (PATIENCE_S + 0.1, "down")):
        for _ in range(MISSES + ANSWERS):
            link.ticks(False)
            link.health.answered(link.now, link.now - late)
        status = link.health.status()
        assert status is not None
        assert status.state == state


def test_what_the_device_shows_comes_first_and_after_it_the_neighbour_is_probed_again() -> None:
    link = Link()
    link.ticks(*[True] * (ANSWERS + 1))
    link.health.observe(link.now, "has no carrier")
    assert not link.health.can_probe
    assert link.health.status() == LinkStatus(peer="b", state="down", reason="device to-b has no carrier")
    link.health.observe(link.now, None)
    assert link.ticks() is None
    assert link.ticks(*[True] * (ANSWERS + 1)) == UP


@pytest.mark.parametrize(("fault", "state"), [(None, "up"), ("is down", "down")])
def test_without_an_address_to_ask_at_the_device_is_believed(fault: str | None, state: str) -> None:
    health = Health("b", "to-b", probed=False)
    health.tick(100.0)
    assert health.status() is None
    health.observe(100.0, fault)
    health.tick(100.0 + START_S)
    assert not health.can_probe
    status = health.status()
    assert status is not None
    assert status.state == state


def test_probes_keep_to_their_wire_and_out_of_the_way_of_floods() -> None:
    link = LinkDevice(peer="n2", device="to-n2", kind="veth", bandwidth=10**8, best_effort=10**6, gateway="10.2.0.1")
    document = DesiredNetwork(node="n1", generation=1, router="10.1.0.1", links=[link])
    items = set(derive(document, Facts()).items.values())
    assert Route(254, "10.2.0.1/32", "to-n2", "10.2.0.1") in items
    echo = frozenset({(9, 0xFF, 1), *pair_match("10.1.0.1", "10.2.0.1", small_only=False)})
    assert Filter("to-n2", 1, ETH_IP, echo, ARP) in items
    nameless = derive(document.model_copy(update={"router": ""}), Facts())
    assert not [item for item in nameless.items.values() if isinstance(item, Filter) and item.match]
