"""What an agent needs, without a machine: a clock, a network that does as it is told, documents in a few words."""

from __future__ import annotations

import socket
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.desired import DesiredCompute, DesiredNetwork, DesiredWorker, Endpoint
from ces_common.messages.reports import FlowUsage, LinkKeys, LinkStatus, LinkUsage
from ces_common.service import Hint
from ces_edge_agent.lease import Clocks
from ces_edge_agent.ports import DataPlaneError


class FakeTime:
    """Time that passes when told to. ``boot`` names the boot of the machine."""

    def __init__(self) -> None:
        self.steady = 1000.0
        self.wall = 1_800_000_000.0
        self.boot = "first"

    def clocks(self) -> Clocks:
        return Clocks(steady=lambda: self.steady, wall=lambda: self.wall, boot=self.boot, machine=self.boot)

    def passes(self, seconds: float) -> None:
        self.steady += seconds
        self.wall += seconds

    def reboot(self, seconds: float) -> None:
        """The machine is down for so long; its steady clock starts again."""
        self.boot += "+"
        self.steady = 10.0
        self.wall += seconds


class FakeNetwork:
    """Applies everything but what is in ``failing`` (attempt key, or "" for the node, -> reason). ``listened``:
    addresses and ports that were asked for; ``deaf``: none can be had; ``made``: how often the data plane was made."""

    def __init__(self) -> None:
        self.failing: dict[str, str] = {}
        self.applied: list[DesiredNetwork] = []
        self.sandboxes: list[set[str]] = []
        self.links_changed = Hint()
        self.keys: LinkKeys | None = None
        self.rotations = 0
        self.states: list[LinkStatus] = []
        self.made, self.deaf = 1, False
        self.listened: list[tuple[str, int]] = []

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def apply(self, desired: DesiredNetwork, sandboxes: Mapping[str, Path | None]) -> dict[str, str]:
        self.applied.append(desired)
        self.sandboxes.append(set(sandboxes))
        return dict(self.failing)

    async def usage(self) -> tuple[list[LinkUsage], list[FlowUsage]]:
        return [LinkUsage(peer="b", sent=1.0, received=2.0)], []

    async def links(self) -> list[LinkStatus]:
        return self.states

    async def encryption(self) -> LinkKeys | None:
        return self.keys

    async def rotate_key(self) -> None:
        if self.keys is None:
            raise DataPlaneError("this machine has no WireGuard")
        self.rotations += 1

    async def probe(self, query: LinkProbe) -> LinkProbed:
        if query.peer != "b":
            raise DataPlaneError(f"no link to {query.peer}")
        return LinkProbed(rate=1e6 * query.seconds, round_trip_s=0.002)

    @property
    def identity(self) -> Hashable:
        return self.made

    async def listen(self, address: str, port: int) -> socket.socket:
        if self.deaf:
            raise DataPlaneError(f"nothing can listen on {address}, port {port}")
        self.listened.append((address, port))
        return socket.create_server(("127.0.0.1", 0))

    async def dial(self, address: str, port: int, source: str, timeout_s: float) -> socket.socket:
        raise DataPlaneError(f"{address}, port {port}, does not answer")

    async def remove(self) -> None:
        return None


def worker(allocation: str, incarnation: int = 1, **fields: Any) -> DesiredWorker:
    defaults = {
        "allocation": allocation,
        "incarnation": incarnation,
        "job": "j",
        "job_name": "j",
        "task": f"t-{allocation}",
        "rank": 0,
        "command": ["serve"],
        "cpu": 100,
        "memory": 2**20,
    }
    return DesiredWorker.model_validate(defaults | fields)


def compute(
    *workers: DesiredWorker,
    generation: int = 1,
    node: str = "n",
    epoch: str = "e",
    checkpoints: list[str] | None = None,
) -> DesiredCompute:
    return DesiredCompute(node=node, epoch=epoch, generation=generation, workers=list(workers), checkpoints=checkpoints)


def network(
    *allocations: str, generation: int = 1, node: str = "n", epoch: str = "e", job: str = "j.1"
) -> DesiredNetwork:
    endpoints = [
        Endpoint(allocation=each, job=job, address=f"10.0.0.{i + 2}", hostname=f"t-{each}")
        for i, each in enumerate(allocations)
    ]
    return DesiredNetwork(node=node, epoch=epoch, generation=generation, endpoints=endpoints)
