"""The data plane over several hosts, with real traffic."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dataplane_row import MBIT, Row, ip, row_of, tc
from namespace_traffic import connect, listen, measure, reaches, streams
from waiting import wait_for

from ces_common.messages.reports import FlowUsage
from ces_common.names import WORKER_DEVICE
from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY, in_namespace
from ces_experiments.network.flood import flood

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]

SURELY_S = 20.0  # for what must succeed: a first SYN that was lost is sent again after one second
HEADERS = 66 / 1514  # Ethernet, IP and TCP with timestamps, of a full frame


@pytest.fixture
async def row() -> AsyncIterator[Row]:
    async with row_of(3) as row:
        yield row


def host_state() -> list[str]:
    """Everything of the agent's own namespace that a data plane could disturb, without counters."""
    return [
        ip("-d", "link"),
        ip("addr"),
        ip("rule"),
        ip("route", "show", "table", "all"),
        re.sub(r"direct_packets_stat \d+", "", tc("qdisc", "show")),
        tc("class", "show", "dev", "lan"),
        re.sub(r"(fh|ht) [0-9a-f:]+", "", tc("filter", "show", "dev", "lan")),
        ip("neigh"),
        *(Path("/proc/sys/net/ipv4", name).read_text() for name in ("ip_forward", "conf/all/rp_filter")),
    ]


def furnish() -> None:
    """Give this namespace what a host may have of its own, with names and numbers much like ours."""
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")  # its addresses come and settle by themselves
    ip("link", "add", "lan", "type", "veth", "peer", "name", "to-lan")
    ip("link", "add", "to-n2", "type", "veth", "peer", "name", "to-n1")
    for device in ("lan", "to-lan", "to-n2", "to-n1"):
        ip("link", "set", device, "up")
    wait_for(lambda: ip("link").count("state UP") == 4, "the kernel says of each that it is up")
    ip("addr", "add", "192.0.2.1/24", "dev", "lan")
    ip("route", "add", "10.2.0.0/24", "via", "192.0.2.9")
    ip("route", "add", "198.51.100.0/24", "dev", "to-n2", "table", "300")
    ip("rule", "add", "from", "192.0.2.7", "table", "300", "priority", "300")
    ip("neigh", "add", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "lan")
    tc("qdisc", "add", "dev", "lan", "root", "handle", "1:", "htb", "default", "2")
    tc("class", "add", "dev", "lan", "parent", "1:", "classid", "1:2", "htb", "rate", "7mbit")
    tc("filter", "add", "dev", "lan", "parent", "1:", "protocol", "ip", "u32", "match", "ip", "dst", "10.2.0.2",
       "flowid", "1:2")  # fmt: skip
    tc("qdisc", "add", "dev", "to-n2", "root", "handle", "1:", "htb", "default", "65534")


async def test_allocated_rates_hold_both_ways_under_a_flood(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    strange, stranger = row.worker("strange", 1, "b"), row.worker("stranger", 3, "b")
    row.reserve(1, one, two, 40 * MBIT)
    row.reserve(2, two, one, 20 * MBIT)
    await row.apply()

    def traffic() -> tuple[list[float], list[float]]:
        connecting = []
        with (
            flood(strange, stranger, 40 * MBIT),
            streams((one.file, two.file, two.address), (two.file, one.file, one.address)) as opened,
        ):
            rates = measure(opened, 3.0)
            with listen(two.file, two.address) as server:
                for _ in range(5):
                    start = time.monotonic()
                    connect(one.file, two.address).close()
                    connecting.append(time.monotonic() - start)
                    server.accept()[0].close()
        return rates, connecting

    await row.networks[1].usage()
    rates, connecting = await asyncio.to_thread(traffic)
    assert rates[0] == pytest.approx(40 * MBIT * (1 - HEADERS), rel=0.06)
    assert rates[1] == pytest.approx(20 * MBIT * (1 - HEADERS), rel=0.06)
    assert max(connecting) < 0.5

    links, flows = await row.networks[1].usage()
    assert [flow.number for flow in flows] == [1]
    assert flows[0].peak == pytest.approx(40 * MBIT, rel=0.05)
    assert flows[0].total > 3 * rates[0] / 8
    assert links[0].peer == "n2"
    assert links[0].drops > 0
    # the flood got what is left for traffic without a reservation, and no more
    assert links[0].sent < (40 * MBIT + row.best_effort) * 1.05


async def test_bulk_sent_back_without_a_reservation_does_not_slow_a_flow(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    row.reserve(1, one, two, 40 * MBIT)
    await row.apply()

    with streams((one.file, two.file, two.address), (two.file, one.file, one.address)) as opened:
        there, back = await asyncio.to_thread(measure, opened, 2.0)
    assert there == pytest.approx(40 * MBIT * (1 - HEADERS), rel=0.06)
    assert back < row.best_effort * 1.05


@pytest.mark.parametrize("rate", [1 * MBIT, 5 * MBIT])
async def test_a_low_rate_is_even(row: Row, rate: int) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    row.reserve(1, one, two, rate)
    await row.apply()

    def traffic() -> list[float]:
        with streams((one.file, two.file, two.address)) as opened:
            return [measure(opened, 1.0)[0] for _ in range(2)]

    for measured in await asyncio.to_thread(traffic):
        assert measured == pytest.approx(rate * (1 - HEADERS), rel=0.1)


async def test_a_rate_changes_under_a_connection(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    row.reserve(1, one, two, 10 * MBIT)
    await row.apply()

    async def usage() -> list[list[FlowUsage]]:
        return [(await network.usage())[1] for network in row.networks.values()]

    with streams((one.file, two.file, two.address)) as opened:
        before = await asyncio.to_thread(measure, opened, 1.5)
        row.reserve(1, one, two, 30 * MBIT)
        await row.apply()
        await usage()
        after = await asyncio.to_thread(measure, opened, 1.5)
        (begins,), (passes,), ends = await usage()
        assert opened[0].failed is None
    assert before[0] == pytest.approx(10 * MBIT * (1 - HEADERS), rel=0.1)
    assert after[0] == pytest.approx(30 * MBIT * (1 - HEADERS), rel=0.1)
    # what each node says of it; on a busy machine even a sender that never pauses leaves the queue empty now and then
    assert begins.waited > 0
    assert (begins.rate, passes.rate, ends) == (30 * MBIT, 30 * MBIT, [])
    assert [begins.measured, passes.measured] == pytest.approx([30 * MBIT] * 2, rel=0.1)


async def test_jobs_are_apart(row: Row) -> None:
    one, two, beside = row.worker("one", 1, "a"), row.worker("two", 3, "a"), row.worker("beside", 1, "a")
    other, near = row.worker("other", 3, "b"), row.worker("near", 1, "b")
    await row.apply()

    def connections() -> dict[str, bool]:
        return {
            "peer two hops away": reaches(one.file, two.file, two.address, SURELY_S),
            "peer on the same host": reaches(one.file, beside.file, beside.address, SURELY_S),
            "back": reaches(two.file, one.file, one.address, SURELY_S),
            "stranger far away": reaches(one.file, other.file, other.address),
            "stranger on the same host": reaches(one.file, near.file, near.address),
        }

    assert await asyncio.to_thread(connections) == {
        "peer two hops away": True,
        "peer on the same host": True,
        "back": True,
        "stranger far away": False,
        "stranger on the same host": False,
    }


async def test_a_worker_reaches_no_host_and_cannot_pretend(row: Row) -> None:
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    strange, stranger = row.worker("strange", 1, "b"), row.worker("stranger", 3, "b")
    await row.apply()
    hosts = [row.namespace(1), row.namespace(3)]

    def connections() -> list[bool]:
        own, far = (DIRECTORY / name for name in hosts)
        return [reaches(one.file, own, "10.1.0.1"), reaches(one.file, far, "10.3.0.1")]

    assert await asyncio.to_thread(connections) == [False, False]
    # with another's address it does not get further either
    ip("-n", one.namespace, "addr", "add", f"{strange.address}/32", "dev", WORKER_DEVICE)
    ip("-n", one.namespace, "route", "replace", "default", "via", "169.254.1.1", "dev", WORKER_DEVICE,
       "onlink", "src", strange.address)  # fmt: skip
    assert not await asyncio.to_thread(reaches, one.file, stranger.file, stranger.address)
    assert not await asyncio.to_thread(reaches, one.file, two.file, two.address)


def test_nothing_else_on_the_host_is_touched() -> None:
    """The agents run in a namespace that stands for the host, so that nobody else changes it meanwhile."""
    prefix = f"dpt{secrets.token_hex(3)}"
    host, other = f"{prefix}-host", f"{prefix}-other"

    def state() -> list[str]:
        return [*host_state(), *(ip("-n", other, *what) for what in (["link"], ["addr"], ["route"], ["rule"]))]

    async def scenario() -> None:
        furnish()
        before = state()
        async with row_of(2) as row:
            one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
            row.reserve(1, one, two, 10 * MBIT)
            await row.apply()
            assert state() == before
            row.reserve(1, one, two, 20 * MBIT)
            await row.apply()
            for network in row.networks.values():
                await network.remove()
        assert state() == before

    for name in (host, other):
        ip("netns", "add", name)
    try:
        in_namespace(DIRECTORY / host, lambda: asyncio.run(scenario()))
    finally:
        for name in (host, other):
            ip("netns", "del", name)


async def test_tunnels_between_hosts() -> None:
    async with row_of(2, tunnelled=True) as row:
        one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
        row.reserve(1, one, two, 20 * MBIT)

        def underlays() -> list[str]:
            names = [row.underlay(host) for host in row.hosts]
            devices = [line.split(": ")[1] for name in names for line in ip("-n", name, "-o", "link").splitlines()]
            return devices + [
                ip("-n", name, *what) for name in names for what in (["-4", "-o", "addr"], ["route"], ["rule"])
            ]

        before = underlays()
        await row.apply()
        devices = ip("-n", row.namespace(1), "-o", "link")
        await row.apply()
        assert ip("-n", row.namespace(1), "-o", "link") == devices  # a second look finds the tunnel right
        with streams((one.file, two.file, two.address)) as opened:
            (rate,) = await asyncio.to_thread(measure, opened, 1.5)
        assert rate == pytest.approx(20 * MBIT * (1 - HEADERS), rel=0.06)
        assert "mtu 1450" in ip("-n", one.namespace, "link", "show", WORKER_DEVICE)
        assert underlays() == before
