"""What hosts find out about their links: tunnels over a switch that they share, which have a carrier even when dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from dataplane_row import MBIT, Row, ip, row_of, tc
from namespace_traffic import reaches

from ces_common.messages.agent_queries import LinkProbe
from ces_common.messages.reports import LinkStatus
from ces_edge_agent.ports import DataPlaneError

pytestmark = pytest.mark.needs("root")
PATIENCE_S = 60.0
LAN_MTU = 1450  # as on a cloud's network


@pytest.fixture
async def row() -> AsyncIterator[Row]:
    async with row_of(3, tunnelled=True, lan_mtu=LAN_MTU, bandwidth=20 * MBIT) as row:
        yield row


async def links(row: Row) -> dict[tuple[int, int], LinkStatus]:
    """(host, neighbour) -> what the host says of its link; without those that it knows nothing of yet."""
    found = {}
    for host, network in row.networks.items():
        for status in await network.links():
            found[host, int(status.peer.removeprefix("n"))] = status
    return found


async def until(row: Row, *up: tuple[int, int], down: tuple[tuple[int, int], ...] = ()) -> None:
    """Wait until just these links are up and these are down. Ends of a link are given once."""
    desired = {pair: "up" for a, b in up for pair in ((a, b), (b, a))}
    desired |= {pair: "down" for a, b in down for pair in ((a, b), (b, a))}
    said: dict[tuple[int, int], LinkStatus] = {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            while {pair: status.state for pair, status in said.items()} != desired:
                await asyncio.sleep(0.05)
                said = await links(row)
    except TimeoutError:
        pytest.fail(f"not {desired} but {said}")


async def test_a_dead_tunnel_shows_at_both_ends_and_no_other_does(row: Row) -> None:
    await row.apply()
    await until(row, (1, 2), (2, 3))
    await asyncio.to_thread(ip, "-n", row.underlay(3), "link", "set", "eth0", "down")
    await until(row, (1, 2), down=((2, 3),))
    said = await links(row)
    assert (said[2, 3].reason or "").startswith("no answer from n3 for ")
    assert (said[3, 2].reason or "").startswith("no answer from n2 for ")
    await row.apply()  # what is down stays in place, or it could not come up again
    await asyncio.to_thread(ip, "-n", row.underlay(3), "link", "set", "eth0", "up")
    await until(row, (1, 2), (2, 3))


async def test_tunnels_fit_into_the_lan_and_carry_full_frames_across_two_hops(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    row.reserve(1, one, two, 10 * MBIT)
    await row.apply()
    for a, b in pairwise(row.hosts):
        assert f"mtu {LAN_MTU - 50} " in ip("-n", row.namespace(a), "link", "show", f"to-n{b}")
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address)
    assert await asyncio.to_thread(reaches, two.file, one.file, one.address)


async def probe(row: Row, src: int, dst: int) -> tuple[float, float]:
    """What both ends of a link measure while it is filled, in Mbit/s: sent, received."""
    sent, received = await asyncio.gather(
        row.networks[src].probe(LinkProbe(peer=f"n{dst}", part="send", seconds=1.0)),
        row.networks[dst].probe(LinkProbe(peer=f"n{src}", part="receive", seconds=1.4)),
    )
    assert sent.round_trip_s is not None
    assert 0 < sent.round_trip_s < PATIENCE_S
    return sent.rate / MBIT, received.rate / MBIT


@pytest.mark.alone
async def test_a_probe_finds_what_a_wire_carries_and_that_another_carries_less(row: Row) -> None:
    await row.apply()
    await until(row, (1, 2), (2, 3))
    full = await probe(row, 1, 2)
    assert full == pytest.approx((row.bandwidth / MBIT,) * 2, rel=0.1)
    slow = ("rate", "8mbit", "burst", "16kb", "latency", "20ms")
    await asyncio.to_thread(tc, "-n", row.underlay(3), "qdisc", "add", "dev", "eth0", "root", "tbf", *slow)
    sent, received = await probe(row, 3, 2)
    assert sent == pytest.approx(row.bandwidth / MBIT, rel=0.1)
    assert received == pytest.approx(8 * (LAN_MTU - 36) / (LAN_MTU + 14), rel=0.1)
    with pytest.raises(DataPlaneError, match="no link to n9"):
        await row.networks[1].probe(LinkProbe(peer="n9", part="send", seconds=0.1))
