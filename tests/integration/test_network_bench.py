"""The network benchmark measures something and leaves nothing behind. How good the figures are is not for tests."""

from __future__ import annotations

import os
import socket
import time

import pytest
from waiting import wait_for

from ces_experiments.network.experiment import MBIT, PATIENCE, changes, rate_of_flows
from ces_experiments.network.flood import DATAGRAM, DATAGRAM_FRAME, FLOOD_PORT
from ces_experiments.network.row import PREFIX, row_of
from ces_experiments.network.traffic import Datagrams, inside
from ces_testbed.netlink import namespaces, routing

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]


def test_flows_are_measured_and_namespaces_removed() -> None:
    found = rate_of_flows(10 * MBIT, 2)
    assert len(found["each_second"]) == 4
    assert all(2 <= len(flow) <= 2 * PATIENCE for flow in found["each_second"])
    assert abs(found["worst_second"]) < 50  # per cent: something flows, and something holds it back
    assert found["opening_ms"]["count"] > 0
    assert namespaces(f"{PREFIX}{os.getpid()}-") == []


def test_changes_break_no_connection() -> None:
    found = changes(2, seed=1)
    assert found["broken_connections"] == 0
    assert len(found["by_udp_ms"]) == len(found["by_tcp_ms"]) == len(found["stolen"]) == 2
    assert namespaces(f"{PREFIX}{os.getpid()}-") == []


def test_datagrams_count_from_when_the_kernel_had_them() -> None:
    grain_s = 1e-3
    with row_of(100 * MBIT) as row:
        worker = row.worker("one", 1, "a")
        with routing(worker.namespace) as ip:
            ip.link("set", index=1, state="up")
            ip.addr("add", index=1, address=worker.address, prefixlen=32)
        sent = []
        with inside(worker.namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
            counted = Datagrams(worker)
            try:
                for _ in range(3):
                    before = time.monotonic()
                    sender.sendto(bytes(DATAGRAM), (worker.address, FLOOD_PORT))
                    sent.append((before, time.monotonic()))
                    time.sleep(3 * grain_s)
                since = sent[1][0] - grain_s
                wait_for(lambda: len(counted.since(since)) >= 2, "both are counted that were sent since then")
                came = counted.since(since)
            finally:
                counted.close()
    assert [count for _, count in came] == [2 * DATAGRAM_FRAME, 3 * DATAGRAM_FRAME]
    for (before, after), (arrived, _) in zip(sent[1:], came, strict=True):
        assert before - grain_s <= arrived <= after + grain_s
