"""How processes end: with all that they left behind, also where the lease ends them and no agent is there."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process_node import ENDPOINT, ORPHAN, Node, node_in, worker
from waiting import until

from ces_edge_agent import linux
from ces_edge_agent.deadline import LEASE_OVER, boot_clock
from ces_edge_agent.runtimes import record

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
root = pytest.mark.needs("root")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with node_in(tmp_path / "state") as node:
        yield node


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=root)])
async def test_nothing_outlives_the_program(node: Node, isolate: bool) -> None:
    runtime = await node.restart(isolate)
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("sh", "-c", ORPHAN))
    shim = record.claimant(node.directory())
    assert shim is not None
    await until(lambda: "started" in node.log())
    below = linux.descendants(shim)
    assert len(below) >= 2
    await runtime.stop("a1.0", 20)
    assert not {shim, *below} & set(linux.descendants(1))
    assert (await node.status()).exit_code == 143
    assert not node.groups()


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=root)])
@pytest.mark.parametrize("paused", [False, True])
async def test_a_killed_shim_takes_the_worker_with_it(node: Node, isolate: bool, paused: bool) -> None:
    runtime = await node.restart(isolate)
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("sh", "-c", ORPHAN))
    shim = record.claimant(node.directory())
    assert shim is not None
    await until(lambda: "started" in node.log())
    below = linux.descendants(shim)
    if paused:
        await runtime.pause("a1.0")
    os.kill(shim, signal.SIGKILL)
    await until(lambda: record.claimant(node.directory()) is None)
    status = await node.ended()
    assert (status.exit_code, status.reason) == (record.UNKNOWN_EXIT, "shim vanished")
    await until(lambda: not set(below) & set(linux.descendants(1)))
    assert not node.groups()


async def test_a_shim_that_comes_while_its_worker_is_looked_at_has_not_vanished(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = await node.restart()
    await runtime.ensure_sandbox(ENDPOINT)
    directory, look = node.directory(), record.claimant
    directory.mkdir()
    held: list[int | None] = []

    def comes_after_the_look(of: Path) -> int | None:
        found = look(of)
        if not held:
            held.append(record.claim(of))
        return found

    monkeypatch.setattr(record, "claimant", comes_after_the_look)
    try:
        states = [(await node.status()).state for _ in range(2)]
    finally:
        os.close(held[0] or 0)
    assert states == ["starting", "starting"]


POLITE = """
import os, signal, sys
def end(*_):
    os.write(1, b"told\\n")  # a print may be under way
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("started", flush=True)
while True: signal.pause()
"""


@pytest.mark.parametrize("state", ["running", "paused"])
@pytest.mark.parametrize(("command", "code"), [(("python", "-c", POLITE), 0), (("sh", "-c", ORPHAN), 143)])
async def test_a_lease_that_ends_ends_the_worker_with_all_it_left_behind(
    node: Node, state: str, command: tuple[str, ...], code: int
) -> None:
    await node.runtime.start(worker(*command))
    shim = record.claimant(node.directory())
    assert shim is not None
    await until(lambda: "started" in node.log())
    below = linux.descendants(shim)
    if state == "paused":
        await node.runtime.pause("a1.0")
    node.lease(0)
    status = await node.ended()
    assert (status.exit_code, status.reason, status.lapsed) == (code, LEASE_OVER, True)
    await until(lambda: not {shim, *below} & set(linux.descendants(1)))
    assert node.log().count("told") == (1 if code == 0 else 0)


async def test_a_worker_that_ended_before_its_lease_did_has_its_own_exit(node: Node) -> None:
    await node.runtime.start(worker("sh", "-c", "exit 3"))
    status = await node.ended()
    node.lease(0)
    assert (status.exit_code, status.reason, status.lapsed) == (3, None, False)
    assert await node.status() == status


async def test_an_agent_that_stops_a_worker_after_its_lease_gives_it_no_more_time(node: Node) -> None:
    await node.runtime.start(worker("python", "-c", POLITE.replace("sys.exit(0)", "pass")))
    await until(lambda: "started" in node.log())
    node.lease(0)
    await until(lambda: "told" in node.log())
    began = boot_clock()
    await node.runtime.stop("a1.0", 600)
    assert boot_clock() - began < 60
    status = await node.status()
    assert (status.exit_code, status.lapsed) == (137, True)
    assert node.log().count("told") == 1


async def test_a_lease_of_another_boot_is_none(node: Node) -> None:
    await node.runtime.start(worker("sleep", "616"))
    node.lease(3600, boot="another")
    assert (await node.ended()).lapsed
