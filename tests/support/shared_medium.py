"""What a cluster's tunnels travel over: a switch, or one channel of limited capacity, as a radio or a cable is."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ces_testbed.cluster import Cluster

PORT = "eth0"
CHANNEL = "air"
LOOK_S = 0.5
BURST_S, QUEUE_S = 0.015, 0.05  # at the channel's rate: as late as a busy machine's timer, and what a switch may hold


@dataclass(frozen=True)
class Medium:
    """``switch``: its namespace; ``rate`` in bit/s, of whole Ethernet frames."""

    switch: str
    rate: int

    def carried(self) -> tuple[float, int, int]:
        """Now, in seconds of a steady clock; bytes that went through so far, and packets that found no room."""
        told = _run("tc", "-n", self.switch, "-s", "qdisc", "show", "dev", CHANNEL)
        found = re.search(r"Sent (\d+) bytes .*dropped (\d+)", told)
        assert found is not None, told
        return time.monotonic(), int(found[1]), int(found[2])

    @contextmanager
    def watched(self) -> Iterator[list[tuple[float, int, int]]]:
        """What it carried, looked at every half second by a thread of its own for as long as the context is open."""
        seen = [self.carried()]
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_S):
                seen.append(self.carried())

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield seen
        finally:
            over.set()
            watcher.join()


def busiest_rate(seen: Sequence[tuple[float, int, int]], during_s: float) -> float:
    """The highest mean rate in bit/s of any stretch of at least ``during_s`` seconds; 0.0 if none is as long."""
    rates = [0.0]
    for i, (began, before, _) in enumerate(seen):
        rates += [(b - before) * 8 / (t - began) for t, b, _ in seen[i:] if t - began >= during_s][:1]
    return max(rates)


@contextmanager
def one_switch(cluster: Cluster) -> Iterator[str]:
    """The namespace of a switch that joins the cluster's hosts. What they say to the manager goes its own way."""
    names = [node.name for node in cluster.spec.topology.nodes]
    switch = f"{cluster.spec.name}-switch"
    at_switch = ("ip", "-n", switch, "link")
    try:
        _run("ip", "netns", "add", switch)
        _run(*at_switch, "add", "lan", "type", "bridge")
        _run(*at_switch, "set", "lan", "up")
        for name in names:
            host = cluster.hosts.host_namespace(name)
            # A burst of frames in one packet would be counted with the tunnel's headers once.
            _run("ip", "-n", host, "link", "add", PORT, "gso_max_segs", "1", "type", "veth",
                 "peer", "name", _port(name), "netns", switch)  # fmt: skip
            _run("ip", "-n", host, "link", "set", PORT, "up")
            for other in names:
                if other != name:
                    _run("ip", "-n", host, "route", "add", cluster.hosts.address(other), "dev", PORT)
            _run(*at_switch, "set", _port(name), "master", "lan", "up")
        yield switch
    finally:
        subprocess.run(["ip", "netns", "del", switch], check=False, capture_output=True)


@contextmanager
def one_medium(cluster: Cluster, rate: int) -> Iterator[Medium]:
    """A switch at which whatever one host sends to another waits for what all others send."""
    burst, queue = (str(int(rate / 8 * seconds)) for seconds in (BURST_S, QUEUE_S))
    with one_switch(cluster) as switch:
        _run("ip", "-n", switch, "link", "add", CHANNEL, "type", "ifb")
        _run("ip", "-n", switch, "link", "set", CHANNEL, "up")
        _run("tc", "-n", switch, "qdisc", "add", "dev", CHANNEL, "root", "tbf", "rate", f"{rate}bit",
             "burst", burst, "limit", queue)  # fmt: skip
        for node in cluster.spec.topology.nodes:
            port = _port(node.name)
            _run("tc", "-n", switch, "qdisc", "add", "dev", port, "ingress")
            _run("tc", "-n", switch, "filter", "add", "dev", port, "parent", "ffff:", "protocol", "ip",
                 "u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", CHANNEL)  # fmt: skip
        yield Medium(switch, rate)


def _port(node: str) -> str:
    return f"port-{node}"


def _run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
