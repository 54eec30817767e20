"""Packs, copies and fetches the checkpoints of this node's malleable jobs, as its desired state says."""

from __future__ import annotations

import asyncio
import errno
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import IO, Final

import structlog

from ces_common.messages.checkpoints import Checkpoint, CheckpointReport, HeldCopies, PackedCheckpoint
from ces_common.messages.desired import CheckpointSource, DesiredCompute, DesiredCopy, DesiredNetwork, DesiredWorker
from ces_common.service import Hint
from ces_edge_agent.checkpoints.archive import TooLarge, Unfit
from ces_edge_agent.checkpoints.beginnings import Beginnings
from ces_edge_agent.checkpoints.download import PACKING_S, NotFetched
from ces_edge_agent.checkpoints.fetcher import Fetcher, Wants
from ces_edge_agent.checkpoints.sendings import Sendings
from ces_edge_agent.checkpoints.shelf import Outdated, Shelf, digest_of
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.store import File, NotNow, Unreadable
from ces_edge_agent.ports import DataPlaneError, Network, Runtime, RuntimeUnavailable

log = structlog.get_logger()
LOOK_S: Final = 1.0
RETRY_S: Final = 5.0  # before a copy is tried again
REST: Final = 10.0  # times as long as the last one took is no checkpoint of the job packed
KEPT: Final = 2  # archives of a job of this node's own: while a new one is packed, the one before may be fetched


class Checkpoints:
    """``seed``: of the key with which the node has joined. ``interval_s``: between two looks at whether a job has a new
    checkpoint; ``limit``: bytes of one. ``lent``: whether the device's owner, if it has one, does without it; else it
    packs and copies nothing, but for the node that a job goes to. ``changed`` is called whenever there is something to
    report."""

    def __init__(
        self,
        node: str,
        seed: str,
        runtime: Runtime,
        network: Network,
        shelf: Shelf,
        compute: StoredDocument[DesiredCompute],
        networks: StoredDocument[DesiredNetwork],
        interval_s: float,
        limit: int,
        lent: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self._node, self._runtime, self._shelf, self._compute = node, runtime, shelf, compute
        self._interval_s, self._limit, self._lent, self._changed = interval_s, limit, lent, changed
        self.hint = Hint()
        self._due: dict[str, float] = {}  # job -> when to look for a new checkpoint
        self._shown: dict[str, tuple[str, Checkpoint]] = {}  # job -> the checkpoint that was packed last
        self._asked: dict[str, asyncio.Task[Checkpoint | None]] = {}  # job -> the newest, for another node
        self._complaints: dict[str, str] = {}
        self._packed: dict[str, Checkpoint] = {}
        self._copying: dict[str, asyncio.Task[None]] = {}  # job
        self._not_before: dict[str, float] = {}
        self._empty = False  # whether nothing is kept here, nor anything to be told
        self._packing = asyncio.Lock()
        self._sendings = Sendings()
        self._fetcher = Fetcher(node, seed, network, networks, shelf, limit)
        self._beginnings = Beginnings(self._fetcher, shelf, limit, self.hint.set)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._report = CheckpointReport(node=node)

    @property
    def report(self) -> CheckpointReport:
        return self._report

    @property
    def copying(self) -> set[str]:
        """The jobs of which a copy is being fetched."""
        return {job for job, task in self._copying.items() if not task.done()}

    async def run(self) -> None:
        opened = False
        while True:
            try:
                if not opened:
                    await asyncio.to_thread(self._shelf.open)
                    opened = True
                await self.step(asyncio.get_running_loop().time())
            except (OSError, RuntimeUnavailable) as error:
                log.warning("checkpoints are not looked after", error=str(error))
            await self.hint.wait(LOOK_S)

    async def step(self, now: float) -> None:
        """Pack and copy what is due, remove what nobody counts on, and report."""
        document, self._loop = self._compute.current, asyncio.get_running_loop()
        if document is None or (self._empty and not document.checkpoints and not document.copies):
            return
        lent = self._lent()
        # What lies here before a checkpoint was fetched is not the worker's.
        writers = {each.job: each for each in document.workers if lent and each.checkpoint and not each.restore}
        for job, worker in writers.items():
            if self._due.setdefault(job, now + self._interval_s) <= now and not self._sendings.puts_off(job, now):
                self._due[job], began = now + self._interval_s, monotonic()
                await self._pack(worker)
                self._due[job] = now + max(self._interval_s, REST * (monotonic() - began))
        if lent:
            self._copy(document, now)
        await self._tidy(document)
        self._tell(document)

    # What is packed here

    async def _pack(self, worker: DesiredWorker) -> None:
        """Put the job's newest checkpoint on the shelf, unless it is there."""
        job = worker.job
        try:
            checkpoint = await self._shelved(job, (worker.attempt, worker.incarnation))
        except (Unfit, Outdated, OSError) as error:
            self._complain(job, str(error))
            return
        if checkpoint is not None:
            self._packed[job] = checkpoint
            self._complaints.pop(job, None)

    async def _shelved(self, job: str, writer: tuple[int, int]) -> Checkpoint | None:
        """The job's newest checkpoint, from now on on the shelf; None where there is none. It is packed once. Raises
        Unfit, Outdated, OSError, RuntimeUnavailable."""
        async with self._packing:
            limit = min(self._limit, await asyncio.to_thread(self._shelf.room))
            mark, last = self._shown.get(job, (None, None))
            if last not in await asyncio.to_thread(self._shelf.all, job):
                mark = last = None
            with self._shelf.blank() as file:
                try:
                    packed = await self._runtime.pack_checkpoint(job, file, limit, mark)
                except TooLarge as error:
                    if limit < self._limit:
                        raise OSError(errno.ENOSPC, "the disk has no room for it") from error
                    raise
                if packed is None:
                    return last
                digest, size = await asyncio.to_thread(digest_of, file)
                attempt, incarnation = writer
                checkpoint = Checkpoint(
                    attempt=attempt, incarnation=incarnation, name=packed.name, size=size, digest=digest
                )
                await asyncio.to_thread(self._shelf.put, job, checkpoint, file)
            self._shown[job] = packed.mark, checkpoint
            return checkpoint

    async def _newest(self, job: str) -> Checkpoint | None:
        """The same of a job whose worker was here, however many ask for it; it goes on where these do not wait."""
        asked = self._asked.get(job)
        if asked is None or asked.done():
            asked = self._asked[job] = asyncio.create_task(self._shelved_as_last(job))
        return await asyncio.shield(asked)

    async def _shelved_as_last(self, job: str) -> Checkpoint | None:
        there = await asyncio.to_thread(self._shelf.all, job)
        return await self._shelved(job, there[0].writer if there else (0, 0))

    @contextmanager
    def serve(self, job: str, digest: str, reader: str) -> Iterator[File]:
        """What another node has asked for; an empty ``digest`` stands for the newest. In any thread but the event
        loop's. Raises Unreadable."""
        if digest:
            file = self._shelf.archive(job, digest)
            if file is None:
                raise Unreadable("there is no such checkpoint here")
            size = _size(file)
            with file, self._sendings.sending(job, size):
                yield File(file, size, digest)
            return
        document, loop = self._compute.current, self._loop
        if loop is None or document is None or document.checkpoints is None:
            raise NotNow("this node does not know yet what lies here")
        if job not in document.checkpoints:
            raise Unreadable("no checkpoints of this job lie here")
        log.info("the newest checkpoint is asked for", job=job, reader=reader)
        packing = asyncio.run_coroutine_threadsafe(self._newest(job), loop)
        try:
            checkpoint = packing.result(PACKING_S)
        except Unfit as error:
            raise Unreadable(f"it cannot be packed: {error}") from error
        except (Outdated, RuntimeUnavailable, OSError) as error:
            packing.cancel()
            raise NotNow(f"it cannot be packed now: {str(error) or 'it takes too long'}") from error
        file = None if checkpoint is None else self._shelf.archive(job, checkpoint.digest)
        if checkpoint is None or file is None:
            raise Unreadable("the job has written no checkpoint here")
        with file:
            yield File(file, checkpoint.size, checkpoint.digest)

    # Copies of what is packed elsewhere

    def _copy(self, document: DesiredCompute, now: float) -> None:
        """Begin to fetch what is to be copied here, one checkpoint of a job at a time."""
        for copy in document.copies:
            there = {each.digest for each in self._shelf.all(copy.job)}
            if copy.source is None or copy.checkpoint.digest in there or copy.job in self.copying:
                continue
            if self._not_before.get(copy.job, now) <= now:
                self._not_before[copy.job] = now + RETRY_S
                self._copying[copy.job] = asyncio.create_task(self._copy_one(copy, copy.source))

    async def _copy_one(self, copy: DesiredCopy, source: CheckpointSource) -> None:
        def still() -> bool:
            document = self._compute.current
            return document is not None and copy in document.copies and self._lent()

        try:
            with self._shelf.blank() as file:
                await self._fetcher.fetch(copy.job, source, file, still)
                await asyncio.to_thread(self._shelf.put, copy.job, copy.checkpoint, file)
        except (NotFetched, Outdated, OSError, DataPlaneError) as error:
            self._complain(copy.job, f"{source.node}: {error}")
        else:
            self._complaints.pop(copy.job, None)
            self.hint.set()

    async def restore(self, worker: DesiredWorker, still: Wants) -> IO[bytes] | None:
        """From what the worker is to begin; see Beginnings."""
        return await self._beginnings.restore(worker, still)

    # What is kept and told

    async def _tidy(self, document: DesiredCompute) -> None:
        if document.checkpoints is None:
            return
        wanted: dict[str, set[str]] = defaultdict(set)
        for job in document.checkpoints:
            own = await asyncio.to_thread(self._shelf.all, job)
            wanted[job].update(each.digest for each in own[:KEPT])
        for copy in document.copies:
            wanted[copy.job].add(copy.checkpoint.digest)
        await asyncio.to_thread(self._shelf.keep, wanted)
        self._empty = not wanted
        present = {*document.checkpoints, *(copy.job for copy in document.copies)}
        self._sendings.keep(present)
        for known in (self._due, self._shown, self._packed, self._asked, self._complaints, self._not_before):
            for job in [job for job in known if job not in present]:
                del known[job]

    def _tell(self, document: DesiredCompute) -> None:
        counted: dict[str, set[str]] = defaultdict(set)
        for copy in document.copies:
            counted[copy.job].add(copy.checkpoint.digest)
        held = {job: {each.digest for each in self._shelf.all(job)} & digests for job, digests in counted.items()}
        report = CheckpointReport(
            node=self._node,
            packed=[PackedCheckpoint(job=job, checkpoint=each) for job, each in sorted(self._packed.items())],
            held=[HeldCopies(job=job, digests=sorted(digests)) for job, digests in sorted(held.items())],
            begun=self._beginnings.told({worker.key for worker in document.workers}),
        )
        if report != self._report:
            self._report = report
            self._changed()

    def _complain(self, job: str, why: str) -> None:
        if self._complaints.get(job) != why:
            self._complaints[job] = why
            log.warning("a checkpoint is not copied", job=job, reason=why)


def _size(file: IO[bytes]) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size
