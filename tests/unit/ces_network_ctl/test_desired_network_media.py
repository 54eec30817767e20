"""What links that share a medium are told to leave to traffic that reserved nothing."""

from cluster_state import MBIT, node, view_of, wire

from ces_common.messages.records import LinkRecord, MediumRecord
from ces_common.shares import LEAST_RATE, best_effort_rate
from ces_network_ctl.desired_network import Planner

NODES = [node(name, number) for number, name in enumerate("abc", 1)]


def triangle(bandwidth: int, medium: str = "lan") -> list[LinkRecord]:
    return [link for ends in ("ab", "bc", "ac") for link in wire(*ends, bandwidth, kind="vxlan", medium=medium)]


def best_effort(links: list[LinkRecord], media: dict[str, int]) -> dict[tuple[str, str], int]:
    records = [MediumRecord(name=name, bandwidth=bandwidth) for name, bandwidth in media.items()]
    planned = Planner().plan(view_of(NODES, links, media=records))
    return {(name, link.peer): link.best_effort for name, each in planned.items() for link in each.links}


def test_links_of_one_medium_leave_together_what_one_link_would() -> None:
    found = best_effort(triangle(100 * MBIT), {"lan": 60 * MBIT})
    assert set(found.values()) == {best_effort_rate(10 * MBIT)}
    assert sum(found.values()) == best_effort_rate(60 * MBIT)


def test_a_link_slower_than_its_part_leaves_what_is_its_own() -> None:
    assert set(best_effort(triangle(MBIT), {"lan": 600 * MBIT}).values()) == {best_effort_rate(MBIT)}


def test_links_with_a_wire_of_their_own_are_not_asked_to_share() -> None:
    links = [*wire("a", "b"), *wire("b", "c", medium="air")]
    found = best_effort(links, {"air": 40 * MBIT})
    assert found["a", "b"] == best_effort_rate(100 * MBIT)
    assert found["b", "c"] == found["c", "b"] == best_effort_rate(20 * MBIT)


def test_no_part_is_too_small_to_speak() -> None:
    assert set(best_effort(triangle(100 * MBIT), {"lan": MBIT}).values()) == {LEAST_RATE}
