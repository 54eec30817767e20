"""Data that lies on a node comes as fast as was reserved: alone, and while strangers flood the links both ways."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from dataplane_row import MBIT, Row, row_of, tc

from ces_common.names import DATA_PORT
from ces_edge_agent.inputs.service import InputService
from ces_experiments.network.flood import flood
from ces_experiments.network.rates import between
from ces_experiments.network.row import Worker
from ces_experiments.network.traffic import DISCARD, HEADERS, RECEIVED, connect, streams

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]

SETTLE_S, SECONDS = 2.0, 5
DROPPED = re.compile(r"class htb 1:2 .*?dropped (\d+)", re.DOTALL)  # of flow 1
ASK = b"GET /words/big HTTP/1.1\r\nHost: n1\r\n\r\n"


@contextmanager
def reading(worker: Worker, source: Worker) -> Iterator[socket.socket]:
    """A connection over which a file comes, as fast as it can."""
    connection = connect(worker, source, DATA_PORT)
    connection.settimeout(None)
    connection.sendall(ASK)

    def take() -> None:
        with suppress(OSError):
            while connection.recv(1) and connection.recv(DISCARD, socket.MSG_TRUNC):
                pass

    taking = threading.Thread(target=take)
    taking.start()
    try:
        yield connection
    finally:
        connection.shutdown(socket.SHUT_RDWR)
        taking.join()
        connection.close()


def frames(connection: socket.socket) -> tuple[float, int]:
    """Now, and the bytes of Ethernet frames that have come."""
    size, count = RECEIVED.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RECEIVED.size))
    return time.monotonic(), (HEADERS + size) * count


@dataclass(frozen=True)
class Came:
    """``alone`` and ``flooded``: rates of frames in the median second, in bit/s: one in which the machine stood still
    says nothing of the network; ``dropped``: packets of the flow at the node itself."""

    alone: float
    flooded: float
    dropped: int


def read_through(row: Row, reader: Worker, source: Worker, strangers: tuple[Worker, Worker]) -> Came:
    """Read alone for a while, then while strangers flood both ways by UDP and by TCP."""

    def rate(connection: socket.socket) -> float:
        time.sleep(SETTLE_S)
        seen = [frames(connection)]
        for _ in range(SECONDS):
            time.sleep(1.0)
            seen.append(frames(connection))
        return median(between(*pair) for pair in pairwise(seen))

    with ExitStack() as stack:
        connection = stack.enter_context(reading(reader, source))
        alone = rate(connection)
        for src, dst in (strangers, strangers[::-1]):
            stack.enter_context(flood(src, dst, row.bandwidth))
        for stream in stack.enter_context(streams(strangers, strangers[::-1])):
            stream.start()
        flooded = rate(connection)
        (told,) = re.findall(DROPPED, tc("-n", row.namespace(1), "-s", "class", "show", "dev", "to-n2"))
    return Came(alone, flooded, int(told))


@pytest.mark.parametrize("rate", [1 * MBIT, 20 * MBIT])
async def test_data_comes_at_the_reserved_rate(rate: int, tmp_path: Path) -> None:
    (tmp_path / "data" / "words").mkdir(parents=True)
    with (tmp_path / "data" / "words" / "big").open("wb") as file:
        file.truncate(1 << 28)
    async with row_of(3) as row:
        source, reader = row.data(1, "a"), row.worker("reader", 3, "a")
        strangers = row.worker("strange", 1, "b"), row.worker("stranger", 3, "b")
        row.reserve(1, source, reader, rate)
        await row.apply()
        keeper = InputService("n1", tmp_path / "data", row.networks[1], "", tmp_path / "port")
        try:
            assert await keeper.follow(row.desired(1)) == {}
            came = await asyncio.to_thread(read_through, row, reader, source, strangers)
        finally:
            keeper.close()
    assert came.alone == pytest.approx(rate, rel=0.05)
    assert came.flooded == pytest.approx(rate, rel=0.05)
    assert came.dropped == 0, "the node hands down no more at once than its own queue takes"
