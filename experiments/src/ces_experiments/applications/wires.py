"""What a wire adds to its delay: datagrams from one host to another, timed where they leave and by the kernel that gets
them, alone and beside traffic."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil

from ces_common.names import link_device
from ces_experiments.network.traffic import inside
from ces_testbed.delay_keeper import keeps_delays
from ces_testbed.errors import TestbedError
from ces_testbed.hosts import Hosts
from ces_testbed.netlink import index_of, routing
from ces_testbed.topology import Topology

DELAY_MS = 10
COUNT = 1000
EVERY_S = 0.002
BESIDE = (0, 20_000_000, 80_000_000)
"""bit/s of other traffic on the wire."""
SIZE = 1400
BURST_S = 0.002
PORT, OTHER_PORT = 5401, 5402
HERE, THERE = "10.98.0.1", "10.98.0.2"
NUMBER = struct.Struct("=I")
STAMP = struct.Struct("@ll")
SO_TIMESTAMPNS = 35  # socket(7)


def added() -> list[dict[str, Any]]:
    """For each rate of other traffic: what came later than the delay says, in ms; and the share of a core that the
    program of the wire took. Raises TestbedError."""
    nodes = [{"name": name, "cpu": 1, "memory": "1Gi"} for name in ("a", "b")]
    link = {"src": "a", "dst": "b", "bandwidth": "100Mbit", "delay": f"{DELAY_MS}ms"}
    hosts = Hosts(f"wire{os.getpid()}", Topology.model_validate({"nodes": nodes, "links": [link]}))
    try:
        hosts.up()
        for node, peer, address in (("a", "b", HERE), ("b", "a", THERE)):
            with routing(hosts.data_plane(node)) as ip:
                ip.addr("add", index=index_of(ip, link_device(peer)), address=address, prefixlen=24)
        (pid,) = keeps_delays(hosts.cluster)
        return [_added(hosts, psutil.Process(pid), rate) for rate in BESIDE]
    finally:
        hosts.down()


def _added(hosts: Hosts, keeper: psutil.Process, rate: int) -> dict[str, Any]:
    with (
        inside(hosts.data_plane("a"), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender,
        inside(hosts.data_plane("b"), _receiver) as receiver,
        _traffic(hosts, rate),
    ):
        came: dict[int, int] = {}
        reader = threading.Thread(target=_read, args=(receiver, came))
        reader.start()
        before, begun = sum(keeper.cpu_times()[:2]), time.monotonic()
        left = []
        for number in range(COUNT):
            left.append(time.time_ns())
            sender.sendto(NUMBER.pack(number), (THERE, PORT))
            time.sleep(EVERY_S)
        share = (sum(keeper.cpu_times()[:2]) - before) / (time.monotonic() - begun)
        reader.join()
    if not came:
        raise TestbedError("nothing came over the wire")
    late = np.array([came[number] - left[number] for number in came]) / 1e6 - DELAY_MS
    p50, p95, p99 = np.percentile(late, (50, 95, 99))
    return {
        "beside": rate, "n": len(late), "lost": COUNT - len(late), "p50_ms": float(p50), "p95_ms": float(p95),
        "p99_ms": float(p99), "most_ms": float(late.max()), "core": share,
    }  # fmt: skip


def _receiver() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.bind((THERE, PORT))
    made.settimeout(2.0)
    return made


def _read(receiver: socket.socket, came: dict[int, int]) -> None:
    """Until nothing comes any more: the moment at which the kernel had each."""
    while len(came) < COUNT:
        try:
            data, ((_, _, stamp),), _, _ = receiver.recvmsg(NUMBER.size, socket.CMSG_SPACE(STAMP.size))
        except TimeoutError:
            return
        seconds, nanoseconds = STAMP.unpack(stamp)
        came[NUMBER.unpack(data)[0]] = seconds * 1_000_000_000 + nanoseconds


@contextmanager
def _traffic(hosts: Hosts, rate: int) -> Iterator[None]:
    """Datagrams in small bursts, to where nobody listens."""
    stop = threading.Event()

    def send() -> None:
        with inside(hosts.data_plane("a"), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as other:
            due, each = time.monotonic(), max(1, round(rate * BURST_S / 8 / SIZE))
            while not stop.is_set():
                for _ in range(each):
                    other.sendto(bytes(SIZE), (THERE, OTHER_PORT))
                due += each * SIZE * 8 / rate
                time.sleep(max(0.0, due - time.monotonic()))

    thread = threading.Thread(target=send)
    if rate:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if rate:
            thread.join()
