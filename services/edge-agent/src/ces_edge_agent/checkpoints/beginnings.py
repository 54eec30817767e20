"""From which checkpoint a worker begins on a node where it was not before."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Collection
from typing import IO, Final

import structlog

from ces_common.messages.checkpoints import BegunFrom
from ces_common.messages.desired import CheckpointSource, DesiredWorker
from ces_edge_agent.checkpoints.archive import Unfit, name_of
from ces_edge_agent.checkpoints.download import NoneThere, NotFetched, Silent
from ces_edge_agent.checkpoints.fetcher import Fetcher, Wants
from ces_edge_agent.checkpoints.shelf import Shelf, digest_of, reopened
from ces_edge_agent.ports import DataPlaneError, RuntimeUnavailable

log = structlog.get_logger()
LOOK_S: Final = 1.0
PATIENCE_S: Final = 20.0  # with a node that does not know yet that it is to serve this one
LONGEST_PAUSE_S: Final = 30.0  # before all sources are tried again


class Beginnings:
    """``limit``: bytes of a checkpoint; ``changed`` is called once there is something to be told."""

    def __init__(self, fetcher: Fetcher, shelf: Shelf, limit: int, changed: Callable[[], None]) -> None:
        self._fetcher, self._shelf, self._limit, self._changed = fetcher, shelf, limit, changed
        self._begun: dict[str, BegunFrom] = {}  # worker -> from what it begins
        self._failures = Counter[str]()  # worker

    def told(self, workers: Collection[str]) -> list[BegunFrom]:
        """From what these workers begin; what is known of others is forgotten."""
        self._begun = {key: begun for key, begun in self._begun.items() if key in workers}
        self._failures = Counter({key: count for key, count in self._failures.items() if key in workers})
        return [self._begun[key] for key in sorted(self._begun)]

    async def restore(self, worker: DesiredWorker, still: Wants) -> IO[bytes] | None:
        """The checkpoint from which the worker is to begin, as an archive that the caller closes; None: from what lies
        here, since none is to be had anywhere. Waits for as long as fetching takes; ``still``: whether the worker is to
        start any more. Raises RuntimeUnavailable, after a while, where one may be had later."""
        reasons, passing, silent = list[str](), False, set[str]()
        for source in worker.checkpoints:
            if source.node in silent:
                continue
            try:
                file, name = await self._had_from(source, worker, still)
            except (NotFetched, Unfit, OSError, DataPlaneError) as error:
                if not still():
                    return None
                passing = passing or not isinstance(error, (NoneThere, Unfit))
                if isinstance(error, (Silent, DataPlaneError)):
                    silent.add(source.node)
                reasons.append(f"{source.node}: {error}")
                log.warning("a checkpoint cannot be had", job=worker.job, node=source.node, reason=str(error))
                continue
            self._note(worker, source.node, name, reasons)
            return file
        if passing:  # with nothing it would lose all that there is, which goes once it has begun
            await self._pause(worker, still)
            raise RuntimeUnavailable(f"no checkpoint of job {worker.job} can be had now: {'; '.join(reasons)}")
        if worker.restore:
            self._note(worker, None, None, reasons or ["no node has a copy of its checkpoints"])
        return None

    async def _pause(self, worker: DesiredWorker, still: Wants) -> None:
        self._failures[worker.key] += 1
        loop = asyncio.get_running_loop()
        until = loop.time() + min(2.0 ** min(self._failures[worker.key] - 1, 16), LONGEST_PAUSE_S)
        while still() and (left := until - loop.time()) > 0:  # noqa: ASYNC110 - nobody tells that it is not wanted
            await asyncio.sleep(min(left, LOOK_S))

    def _note(self, worker: DesiredWorker, source: str | None, name: str | None, reasons: list[str]) -> None:
        log.info("a job goes on elsewhere", job=worker.job, source=source, checkpoint=name, reasons=reasons)
        self._begun[worker.key] = BegunFrom(
            job=worker.job,
            attempt=worker.attempt,
            incarnation=worker.incarnation,
            source=source,
            name=name,
            reason="; ".join(reasons) or None,
        )
        self._changed()

    async def _had_from(self, source: CheckpointSource, worker: DesiredWorker, still: Wants) -> tuple[IO[bytes], str]:
        """The archive, and the name of what is in it. Raises NotFetched, Unfit, OSError, DataPlaneError."""
        own = not source.url and source.checkpoint is not None
        file = await (self._own(source, worker.job) if own else self._fetched(source, worker, still))
        try:
            await asyncio.to_thread(self._shelf.room, os.fstat(file.fileno()).st_size)  # it is unpacked beside it
            return file, await asyncio.to_thread(name_of, file, self._limit)
        except (OSError, Unfit):
            file.close()
            raise

    async def _own(self, source: CheckpointSource, job: str) -> IO[bytes]:
        """This node's own copy. Raises NotFetched, OSError."""
        digest = "" if source.checkpoint is None else source.checkpoint.digest
        file = await asyncio.to_thread(self._shelf.archive, job, digest)
        if file is None:
            raise NoneThere("its own copy is gone")
        if (await asyncio.to_thread(digest_of, file))[0] != digest:
            file.close()
            raise NoneThere("its own copy has another digest")
        return file

    async def _fetched(self, source: CheckpointSource, worker: DesiredWorker, still: Wants) -> IO[bytes]:
        """Another node's; it has no name here, and is gone when it is closed. Raises NotFetched, OSError,
        DataPlaneError."""
        until = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            try:
                with self._shelf.blank() as file:
                    await self._fetcher.fetch(worker.job, source, file, still)
                    return await asyncio.to_thread(reopened, file)
            except NotFetched as error:
                if not (error.again and still() and asyncio.get_running_loop().time() < until):
                    raise
            await asyncio.sleep(LOOK_S)
