"""A row of hosts whose links are encrypted: what its WireGuard is set to, and what passes while keys are replaced."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from dataplane_row import MBIT, Row, ip, row_of
from namespace_traffic import Stream

from ces_common.messages.reports import LinkStatus
from ces_edge_agent.dataplane.netlink.namespace import DIRECTORY
from ces_edge_agent.dataplane.wireguard import implementations
from ces_edge_agent.dataplane.wireguard.config import State
from ces_edge_agent.dataplane.wireguard.implementations import Kind

PATIENCE_S = 60.0
KINDS = [
    pytest.param("wireguard-go", marks=pytest.mark.needs("wireguard")),
    pytest.param("kernel", marks=pytest.mark.needs("wireguard-module")),
]


def have_only(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Have agents use this implementation of WireGuard."""
    monkeypatch.setattr(implementations, "kernel_has_it", lambda namespace: kind == "kernel")
    return kind


@asynccontextmanager
async def encrypted_row(hosts: int = 3) -> AsyncIterator[Row]:
    """On one switch; nothing of it is left afterwards."""
    async with row_of(hosts, lan_mtu=1500, bandwidth=50 * MBIT, encrypted=True) as row:
        yield row
    await until(lambda: gone(row), "no program of the row is left")


async def gone(row: Row) -> bool:
    return not any(programs(row, host) for host in row.hosts)


async def until(condition: Callable[[], Awaitable[bool]], what: str, patience_s: float = PATIENCE_S) -> None:
    try:
        async with asyncio.timeout(patience_s):
            while not await condition():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"not within {patience_s:g} s: {what}")


async def statuses(row: Row) -> dict[tuple[int, str], LinkStatus]:
    return {(host, each.peer): each for host, network in row.networks.items() for each in await network.links()}


async def all_up(row: Row) -> bool:
    found = await statuses(row)
    return len(found) == 2 * (len(row.hosts) - 1) and all(each.state == "up" for each in found.values())


def inside(row: Row, host: int) -> Path:
    return DIRECTORY / f"{row.namespace(host)}-wg"


def device(row: Row, host: int) -> str:
    (line,) = [line for line in ip("-n", inside(row, host).name, "-o", "link").splitlines() if ": wg-" in line]
    return line.split(": ")[1]


def state(row: Row, host: int, kind: Kind) -> State:
    return implementations.read(kind, device(row, host), inside(row, host))


def programs(row: Row, host: int) -> list[int]:
    """Processes of wireguard-go that run in the namespace that stands for the host."""
    try:
        wanted = (DIRECTORY / row.underlay(host)).stat().st_ino
    except FileNotFoundError:
        return []
    found = []
    for process in psutil.process_iter(["name", "status"]):
        if process.info["name"] != "wireguard-go" or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        try:
            if os.stat(f"/proc/{process.pid}/ns/net").st_ino == wanted:
                found.append(process.pid)
        except OSError:
            continue
    return found


class Watched:
    """A stream that runs, and the links meanwhile."""

    def __init__(self, row: Row, stream: Stream) -> None:
        self._row, self._stream = row, stream
        self.down: list[LinkStatus] = []

    @property
    def longest_s(self) -> float:
        """In which nothing of the stream arrived."""
        return self._stream.longest_s

    async def flows(self) -> None:
        """More arrives, and no link was called down."""
        before = self._stream.received

        async def more() -> bool:
            await self.look()
            return self._stream.received > before + 100_000

        await until(more, "the stream goes on")
        assert self._stream.failed is None
        assert self.down == []

    async def look(self) -> None:
        self.down += [each for each in (await statuses(self._row)).values() if each.state == "down"]
