"""What every network must do, whether it enforces anything or not."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from dataplane_row import MBIT, Row, ip, tc

from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.reports import LinkStatus
from ces_common.names import WORKER_DEVICE
from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY
from ces_edge_agent.dataplane.none import NoNetwork
from ces_edge_agent.ports import DataPlaneError, Network

PATIENCE_S = 60.0


@dataclass
class Subject:
    """A network under test; ``make`` gives another one of the same node, as after a restart of its agent. ``state``:
    all that the kernel has of it, without counters; empty where nothing is enforced."""

    make: Callable[[], Network]
    desired: Callable[[], DesiredNetwork]
    sandboxes: Callable[[], Mapping[str, Path | None]]
    state: Callable[[], list[str]]
    enforces: bool
    row: Row


def kernel_state(namespace: str) -> list[str]:
    links = json.loads(ip("-n", namespace, "-j", "link"))
    devices = [str((link["ifindex"], link["ifname"], link["mtu"], "UP" in link["flags"])) for link in links]
    commands = [["-4", "-o", "addr"], ["rule"], ["route", "show", "table", "all"]]
    shaping = [
        tc("-n", namespace, what, "show", "dev", device)
        for device in ("to-n1", "to-n3")
        for what in ("qdisc", "class", "filter")
    ]
    return devices + [ip("-n", namespace, *command) for command in commands] + shaping


@pytest.fixture(params=["none", pytest.param("tc", marks=pytest.mark.needs("root"))])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    """The middle one of three hosts, with a worker of a job and flows that start, end and pass there."""
    row = Row(3)
    try:
        if request.param == "none":
            yield Subject(
                make=lambda: NoNetwork("n2"),
                desired=lambda: DesiredNetwork(node="n2", generation=1, mode="none"),
                sandboxes=lambda: {"here": None},
                state=list,
                enforces=False,
                row=row,
            )
            return
        await asyncio.to_thread(row.build)
        near, here, far = row.worker("near", 1, "a"), row.worker("here", 2, "a"), row.worker("far", 3, "b")
        row.reserve(1, near, here, 10 * MBIT)
        row.reserve(2, here, near, 10 * MBIT)
        row.reserve(3, near, far, 20 * MBIT)
        yield Subject(
            make=lambda: row.network(2),
            desired=lambda: row.desired(2),
            sandboxes=lambda: row.sandboxes(2),
            state=lambda: kernel_state(row.namespace(2)),
            enforces=True,
            row=row,
        )
    finally:
        await asyncio.to_thread(row.destroy)


@pytest.fixture
async def network(subject: Subject) -> AsyncIterator[Network]:
    network = subject.make()
    await network.open()
    yield network
    await network.close()


async def test_applying_again_changes_nothing(subject: Subject, network: Network) -> None:
    assert await network.apply(subject.desired(), subject.sandboxes()) == {}
    state = subject.state()
    assert await network.apply(subject.desired(), subject.sandboxes()) == {}
    assert subject.state() == state


async def test_a_restarted_agent_adopts_what_is_there(subject: Subject, network: Network) -> None:
    await network.apply(subject.desired(), subject.sandboxes())
    state = subject.state()
    await network.close()
    again = subject.make()
    await again.open()
    assert await again.apply(subject.desired(), subject.sandboxes()) == {}
    assert subject.state() == state
    await again.close()


async def test_opening_and_closing_twice_is_fine(subject: Subject, network: Network) -> None:
    await network.open()
    await network.close()
    await network.close()
    await network.open()
    assert await network.apply(subject.desired(), subject.sandboxes()) == {}


async def test_usage_names_links_and_the_flows_that_are_sent_over_them(subject: Subject, network: Network) -> None:
    await network.apply(subject.desired(), subject.sandboxes())
    links, flows = await network.usage()
    assert [link.peer for link in links] == (["n1", "n3"] if subject.enforces else [])
    assert sorted(flow.number for flow in flows) == ([2, 3] if subject.enforces else [])


def answer(row: Row, host: int) -> None:
    """Have an end of the wire to n2 that answers, without an agent."""
    for command in (
        ["link", "set", "lo", "up"],
        ["addr", "add", f"10.{host}.0.1/32", "dev", "lo"],
        ["link", "set", "to-n2", "up"],
        ["route", "add", "10.2.0.1/32", "dev", "to-n2"],
    ):
        ip("-n", row.namespace(host), *command)


async def test_links_are_up_while_the_neighbour_answers_over_them(subject: Subject, network: Network) -> None:
    await network.apply(subject.desired(), subject.sandboxes())
    if not subject.enforces:
        assert await network.links() == []
        return
    await asyncio.to_thread(answer, subject.row, 1)
    assert await network.links_changed.wait(PATIENCE_S)
    assert await network.links() == [LinkStatus(peer="n1", state="up")], "of the other nothing is known yet"
    for cut, reason in (("set", "has no carrier"), ("del", "is not there")):
        await asyncio.to_thread(ip, "-n", subject.row.namespace(1), "link", cut, "to-n2", *["down"] * (cut == "set"))
        assert await network.links_changed.wait(PATIENCE_S)
        assert await network.links() == [LinkStatus(peer="n1", state="down", reason=f"device to-n1 {reason}")]


async def test_a_network_that_is_given_no_key_encrypts_nothing_and_says_so(subject: Subject, network: Network) -> None:
    assert await network.encryption() is None
    with pytest.raises(DataPlaneError, match="encrypt"):
        await network.rotate_key()


async def test_a_missing_sandbox_is_reported_and_mended(subject: Subject, network: Network) -> None:
    failed = await network.apply(subject.desired(), {})
    assert set(failed) == ({"a"} if subject.enforces else set())
    assert await network.apply(subject.desired(), subject.sandboxes()) == {}
    await network.apply(subject.desired(), {name: Path("/run/netns/nowhere") for name in subject.sandboxes()})
    assert await network.apply(subject.desired(), subject.sandboxes()) == {}


async def test_what_listens_on_the_node_is_heard_in_its_data_plane(subject: Subject, network: Network) -> None:
    await network.apply(subject.desired(), subject.sandboxes())
    identity = network.identity
    address = subject.desired().router or "127.0.0.1"
    with await network.listen(address, 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            DataPlaneError, match=f"nothing can listen on {address}, port {port}: Address already in use"
        ):
            await network.listen(address, port)
        if subject.enforces:
            with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                socket.create_connection((address, port), timeout=0.2).close()  # from the host, which is elsewhere
        await network.apply(subject.desired(), subject.sandboxes())
        assert network.identity == identity
        if subject.enforces:
            await network.remove()
            await network.open()
            assert network.identity != identity, "whoever listens must listen anew"


async def test_removal_leaves_nothing(subject: Subject, network: Network) -> None:
    await network.apply(subject.desired(), subject.sandboxes())
    await network.remove()
    await network.remove()
    if subject.enforces:
        assert not (DIRECTORY / subject.row.namespace(2)).exists()
        for sandbox in subject.sandboxes().values():
            assert sandbox is not None
            assert WORKER_DEVICE not in ip("-n", sandbox.name, "link")
