"""What was disturbed from outside is put right, and what is no longer desired goes."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator

import pytest
from dataplane_row import MBIT, Row, ip, row_of, tc
from namespace_traffic import measure, reaches, streams

from ces_common.names import endpoint_device

pytestmark = pytest.mark.needs("root")


@pytest.fixture
async def row() -> AsyncIterator[Row]:
    async with row_of(2) as row:
        one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
        row.reserve(1, one, two, 10 * MBIT)
        await row.apply()
        yield row


def state(row: Row) -> dict[str, list[str]]:
    """Without the numbers that the kernel gives to tables of filters, without what passed before there were classes,
    and without the order of classes: the kernel's table of them grows and never shrinks."""
    name = row.namespace(1)
    found = {what: sorted(tc("-n", name, what, "show", "dev", "to-n2").splitlines()) for what in ("qdisc", "class")}
    found["qdisc"] = [re.sub(r"direct_packets_stat \d+", "", line) for line in found["qdisc"]]
    filters = tc("-n", name, "filter", "show", "dev", "to-n2").splitlines()
    found["filter"] = [re.sub(r"(fh|ht) [0-9a-f:]+", "", line) for line in filters if re.search("flowid|match", line)]
    found["route"] = ip("-n", name, "route", "show", "table", "all").splitlines()
    found["rule"] = ip("-n", name, "rule").splitlines()
    found["addr"] = ip("-n", name, "-4", "-o", "addr").splitlines()
    return found


DAMAGE = {
    "a class rate changed": "tc -n {host} class change dev to-n2 parent 1:ffff classid 1:2 htb rate 1mbit",
    "filters deleted": "tc -n {host} filter del dev to-n2 parent 1: prio 2",
    "all shaping deleted": "tc -n {host} qdisc del dev to-n2 root",
    "another shaper": "tc -n {host} qdisc replace dev to-n2 root handle 7: pfifo",
    "a filter there twice": "tc -n {host} filter add dev to-n2 parent 1: prio 2 protocol ip u32"
    " match ip src 10.1.0.2 match ip dst 10.2.0.2 flowid 1:2",
    "a link down": "ip -n {host} link set to-n2 down",
    "an endpoint deleted": "ip -n {host} link del {endpoint}",
    "the worker's end deleted": "ip -n {sandbox} link del ces0",
    "rules flushed": "ip -n {host} rule flush",
    "routes flushed": "ip -n {host} route flush table main",
    "router address deleted": "ip -n {host} addr del 10.1.0.1/32 dev lo",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_repaired(row: Row, damage: str) -> None:
    before = state(row)
    command = DAMAGE[damage].format(
        host=row.namespace(1), sandbox=row.workers[0].namespace, endpoint=endpoint_device("one")
    )
    await asyncio.to_thread(subprocess.run, command.split(), check=True)
    await row.apply()
    assert state(row) == before
    one, two = row.workers
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address)


async def test_a_sandbox_made_anew_is_connected_again(row: Row) -> None:
    one, two = row.workers
    ip("netns", "del", one.namespace)
    ip("netns", "add", one.namespace)
    await row.apply()
    assert await asyncio.to_thread(reaches, one.file, two.file, two.address)


async def test_a_data_plane_that_vanished_is_made_again() -> None:
    async with row_of(1) as row:
        one, beside = row.worker("one", 1, "a"), row.worker("beside", 1, "a")
        await row.apply()
        ip("netns", "del", row.namespace(1))
        await row.apply()
        assert await asyncio.to_thread(reaches, one.file, beside.file, beside.address)


async def test_what_a_job_had_goes_with_it(row: Row) -> None:
    before = state(row)
    extra = [row.worker("three", 1, "b"), row.worker("four", 2, "b")]
    row.reserve(7, extra[0], extra[1], 5 * MBIT)
    row.reserve(8, extra[1], extra[0], 5 * MBIT)
    await row.apply()
    assert state(row) != before
    row.workers = [worker for worker in row.workers if worker not in extra]
    row.flows = {1: row.flows[1]}
    await row.apply()
    assert state(row) == before
    assert endpoint_device(extra[0].name) not in ip("-n", row.namespace(1), "link")


def sent_bytes(row: Row, minor: str) -> int:
    shown = tc("-s", "-n", row.namespace(1), "class", "show", "dev", "to-n2", "classid", minor)
    found = re.search(r"Sent (\d+) bytes", shown)
    assert found, shown
    return int(found.group(1))


async def test_a_restarted_agent_keeps_what_is_right_and_removes_what_is_stale(row: Row) -> None:
    before = state(row)
    one, two = row.workers
    extra = [row.worker("three", 1, "b"), row.worker("four", 2, "b")]
    row.reserve(7, extra[0], extra[1], 5 * MBIT)
    await row.apply()
    with streams((one.file, two.file, two.address)) as opened:
        await asyncio.to_thread(measure, opened, 0.2)
        counted = sent_bytes(row, "1:2")
        await row.networks[1].close()
        row.workers = [one, two]
        row.flows = {1: row.flows[1]}
        row.networks[1] = row.network(1)
        await row.networks[1].open()
        await row.apply()
        (rate,) = await asyncio.to_thread(measure, opened, 0.5)
        assert opened[0].failed is None
    assert rate > MBIT
    assert sent_bytes(row, "1:2") > counted  # the class is the one that was there
    assert state(row) == before


async def test_a_missing_link_device_fails_the_node(row: Row) -> None:
    ip("-n", row.namespace(1), "link", "del", "to-n2")
    failed = await row.networks[1].apply(row.desired(1), row.sandboxes(1))
    assert "to-n2" in failed[""]
    assert "to-n2" in failed["a"]
