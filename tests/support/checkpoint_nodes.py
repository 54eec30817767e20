"""The parts of agents that are concerned with checkpoints, over real connections."""

from __future__ import annotations

import tarfile
from pathlib import Path

from agent_parts import worker
from fake_runtime import FakeRuntime
from waiting import until

from ces_common.messages.checkpoints import Checkpoint
from ces_common.messages.desired import (
    CheckpointReader,
    CheckpointSource,
    DesiredCompute,
    DesiredCopy,
    DesiredNetwork,
    DesiredWorker,
)
from ces_common.natsauth.keys import Kind, new_seed, public_key
from ces_edge_agent.checkpoints import fetcher
from ces_edge_agent.checkpoints.sendings import SETTLE_S
from ces_edge_agent.checkpoints.service import RETRY_S, Checkpoints
from ces_edge_agent.checkpoints.shelf import Shelf
from ces_edge_agent.dataplane.none import NoNetwork
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.service import InputService

ME = "127.0.0.1"
INTERVAL_S = 60.0


class Node:
    """The part of an agent that is concerned with checkpoints. ``writes``: what the job's worker there last wrote."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.seed = name, folder / name, new_seed(Kind.USER)
        self.folder.mkdir()
        self.lent = True
        self.runtime, self.network = FakeRuntime(self.folder), NoNetwork(name)
        self.compute = StoredDocument(self.folder / "compute.json", DesiredCompute, name)
        self.networks = StoredDocument(self.folder / "network.json", DesiredNetwork, name)
        self.shelf, self.generation, self.now, self.changes = Shelf(self.folder / "copies"), 0, 0.0, 0
        self.checkpoints = Checkpoints(
            name,
            self.seed,
            self.runtime,
            self.network,
            self.shelf,
            self.compute,
            self.networks,
            INTERVAL_S,
            2**20,
            lambda: self.lent,
            self._changed,
        )
        self.fetcher = fetcher.Fetcher(name, self.seed, self.network, self.networks, self.shelf, 2**20)
        self.inputs = InputService(name, None, self.network, ME, self.folder / "port", self.checkpoints)

    def _changed(self) -> None:
        self.changes += 1

    def writes(self, text: str) -> None:
        self.runtime.host.checkpoints["j"] = text

    @property
    def has(self) -> str | None:
        return self.runtime.host.checkpoints.get("j")

    async def serve(self, *readers: Node, owner: str = "j", newest: bool = True) -> str:
        """Have these nodes fetch checkpoints of the job here; returns where."""
        known = [
            CheckpointReader(
                job="j.1", owner=owner, node=each.name, address=ME, key=public_key(each.seed), newest=newest
            )
            for each in readers
        ]
        desired = DesiredNetwork(node=self.name, generation=1, mode="none", checkpoint_readers=known)
        assert await self.inputs.follow(desired) == {}
        report = await self.inputs.report()
        assert report is not None
        return f"http://{ME}:{report.port}/.checkpoints/j"

    def want(self, *workers: DesiredWorker, copies: list[DesiredCopy] | None = None, folders: list[str]) -> None:
        self.generation += 1
        document = DesiredCompute(
            node=self.name,
            generation=self.generation,
            workers=list(workers),
            checkpoints=folders,
            copies=copies or [],
        )
        assert self.compute.offer(document.encode())

    async def look(self, after_s: float = 0.0) -> None:
        self.now += after_s
        await self.checkpoints.step(self.now)


def writer(**fields: object) -> DesiredWorker:
    return worker("w", job="j", checkpoint=True, **fields)


async def packed(node: Node, text: str) -> Checkpoint:
    """What the node says that it has packed once its worker has written this."""
    await node.look()
    node.writes(text)
    await node.look(INTERVAL_S)
    await node.look(SETTLE_S)
    (said,) = node.checkpoints.report.packed
    assert (said.job, said.checkpoint.name) == ("j", text)
    return said.checkpoint


def held(node: Node) -> list[str]:
    return [digest for each in node.checkpoints.report.held for digest in each.digests]


async def copied(node: Node, checkpoint: Checkpoint, url: str) -> None:
    source = CheckpointSource(node="first", url=url, checkpoint=checkpoint)
    node.want(copies=[DesiredCopy(job="j", checkpoint=checkpoint, source=source)], folders=[])
    await node.look(RETRY_S)
    await until(lambda: not node.checkpoints.copying)
    await node.look()


async def restored(node: Node, *sources: CheckpointSource) -> tuple[str | None, str | None, str | None]:
    """The checkpoint that a worker begins from on that node, where it was had, and what went wrong before."""
    beginner = writer(attempt=2, restore=True, checkpoints=list(sources))
    node.want(beginner, folders=["j"])
    archive = await node.checkpoints.restore(beginner, lambda: True)
    found = None
    if archive is not None:
        with archive, tarfile.open(fileobj=archive) as opened:
            found = opened.getnames()[0]
    await node.look()
    (begun,) = node.checkpoints.report.begun
    assert (begun.job, begun.attempt, begun.incarnation, begun.name) == ("j", 2, 1, found)
    return found, begun.source, begun.reason
