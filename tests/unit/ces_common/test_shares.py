"""Shares of a link and of a medium."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.shares import HEADROOM, best_effort_rate, reservable, reservable_of_medium, return_rate


@given(st.integers(6_500_000, 10**12))
def test_shares_of_one_full_flow_each_way_fit_the_link(capacity: int) -> None:
    """From 6.5 Mbit/s on; below, the floors outweigh the headroom."""
    flow = reservable(capacity)
    assert flow <= capacity * (1 - HEADROOM)
    assert flow + return_rate(flow) + best_effort_rate(capacity) <= capacity


@pytest.mark.parametrize(
    ("kind", "mtu"), [("vxlan", 1450), ("vxlan", 1400), ("vxlan", 1230), ("wireguard", 1370), ("wireguard", 1150)]
)
def test_what_tunnels_promise_of_a_medium_fits_with_the_headers_around_it(kind: str, mtu: int) -> None:
    """Full frames, one acknowledgement for two of them, and all that may go beside, each with the headers around it."""
    capacity, frame, acknowledgement = 100_000_000, mtu + 14, 66
    flows = reservable_of_medium(capacity, [kind])
    answers = flows / (2 * frame) * on_the_wire(kind, acknowledgement)
    assert (flows + best_effort_rate(capacity)) * on_the_wire(kind, frame) / frame + answers <= capacity


def on_the_wire(kind: str, frame: int) -> int:
    """The length of the Ethernet frame outside."""
    if kind == "vxlan":
        return frame + 50
    packet = frame + 36  # IPv4, UDP and VXLAN headers
    return -(-packet // 16) * 16 + 32 + 42  # padded; WireGuard's header and tag; Ethernet, IPv4 and UDP headers


def test_the_longest_headers_of_a_medium_count() -> None:
    assert reservable_of_medium(1000, []) == reservable_of_medium(1000, ["veth"]) == 950
    assert reservable_of_medium(1000, ["veth", "vxlan"]) == 900
    assert reservable_of_medium(1000, ["wireguard", "vxlan"]) == 830
