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


@pytest.mark.parametrize("mtu", [1450, 1400, 1230])
def test_what_tunnels_promise_of_a_medium_fits_with_the_headers_around_it(mtu: int) -> None:
    """Full frames, one acknowledgement for two of them, and all that may go beside: 50 bytes more around each."""
    capacity, frame, acknowledgement, around = 100_000_000, mtu + 14, 66, 50
    flows = reservable_of_medium(capacity, tunnels=True)
    answers = flows / (2 * frame) * (acknowledgement + around)
    longer = 1 + around / frame
    assert (flows + best_effort_rate(capacity)) * longer + answers <= capacity
