"""A node whose workers are processes, with one allocation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from waiting import until

from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_common.messages.reports import WorkerStatus
from ces_edge_agent import linux
from ces_edge_agent.cards import NO_CARDS, MachineCards
from ces_edge_agent.deadline import Deadline, boot_clock, deadline_file, make_deadline_file, write_deadline
from ces_edge_agent.runtimes import record
from ces_edge_agent.runtimes.disk_meter import DISK
from ces_edge_agent.runtimes.process import ProcessRuntime

ENDPOINT = Endpoint(allocation="a1", job="j1.1", address="10.9.0.2", hostname="t0", hosts={"t0": "10.9.0.2"})
ORPHAN = "setsid sleep 613 & echo started; exec sleep 612"


class Node:
    """A process runtime that can be made anew, as after the agent's end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"rt{uuid4().hex[:8]}"
        self.runtime = ProcessRuntime(folder, self.name, isolate=False)
        self.deadline = deadline_file(folder)
        make_deadline_file(self.deadline)
        self.lease(3600)

    def lease(self, seconds: float, boot: str | None = None) -> None:
        """As an agent writes it down, whose lease ends so many seconds from now."""
        write_deadline(self.deadline, Deadline(boot or linux.boot_id(), boot_clock() + seconds))

    async def restart(
        self, isolate: bool = False, hide: tuple[Path, ...] = (), disk: int = DISK, cards: MachineCards = NO_CARDS
    ) -> ProcessRuntime:
        await self.runtime.close()
        self.runtime = ProcessRuntime(self.folder, self.name, isolate, hide=hide, disk=disk, cards=cards)
        await self.runtime.open()
        return self.runtime

    def directory(self, key: str = "a1.0") -> Path:
        return self.folder / "workers" / key

    async def status(self, key: str = "a1.0") -> WorkerStatus:
        return (await self.runtime.workers())[key]

    async def ended(self, key: str = "a1.0") -> WorkerStatus:
        """How the worker ended, once its shim is gone too: what is in its directory then changes by nobody else."""
        async with asyncio.timeout(60):
            while (status := await self.status(key)).state != "exited":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await until(lambda: record.claimant(self.directory(key)) is None)
        return status

    def groups(self) -> list[Path]:
        return list(Path("/sys/fs/cgroup").glob(f"*/ces/*{self.name}*"))

    def log(self) -> str:
        path = self.runtime.logs.path("a1")
        return path.read_text() if path.exists() else ""


@asynccontextmanager
async def node_in(folder: Path) -> AsyncIterator[Node]:
    """Its workers and sandboxes are gone afterwards."""
    node = Node(folder)
    await node.runtime.open()
    try:
        yield node
    finally:
        for key in await node.runtime.workers():
            await node.runtime.stop(key, 0)
            await node.runtime.remove(key)
        for allocation in await node.runtime.sandboxes():
            await node.runtime.remove_sandbox(allocation)


def worker(*command: str, memory: int = 256 * 2**20) -> DesiredWorker:
    return DesiredWorker(
        allocation="a1",
        incarnation=0,
        job="j1",
        job_name="job",
        task="t0",
        rank=0,
        command=list(command),
        cpu=1000,
        memory=memory,
    )
