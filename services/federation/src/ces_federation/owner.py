"""This region as an owner: what other regions may ask of it. Who asks is known by the seal, never by what is said;
whose job it is here, by this region's own file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

import structlog
from pydantic import BaseModel

from ces_common.bus.port import RemoteError
from ces_common.jobfile import JobFile
from ces_common.messages.agent_queries import LogAnswer
from ces_common.messages.api import JobFlowsView
from ces_common.messages.regions import (
    Bid,
    BidAnswer,
    FateAnswer,
    GuestFile,
    GuestJobQuery,
    GuestLogQuery,
    GuestStatusQuery,
    GuestTriesQuery,
    Hold,
    HoldQuery,
    RemoteJob,
    RemoteLogQuery,
    StatusAnswer,
    StatusQuery,
    TriesAnswer,
    TriesQuery,
)
from ces_federation.manager_port import Manager
from ces_federation.peers import Peer
from ces_federation.wire import Handler, Wire

log = structlog.get_logger()
PLACED_S = 0.5  # for which a question after a place waits for it, so that the asker sees that somebody is there
LOOK_S = 0.2
BIDS_AT_ONCE = 4  # dry runs: more would each take longer than anybody waits
REFUSED = ("refused", "malformed")  # codes of a manager that has done nothing, and says why
Q = TypeVar("Q", bound=BaseModel)


class NotAccepted(Exception):
    """A job that may not run here."""


class Owner:
    """``clock``: steady."""

    def __init__(self, manager: Manager, peers: Mapping[str, Peer], clock: Callable[[], float]) -> None:
        self._manager, self._peers, self._clock = manager, peers, clock
        self._bids = asyncio.Semaphore(BIDS_AT_ONCE)

    def serve(self, wire: Wire) -> None:
        wire.on("bid", self._bid)
        wire.on("hold", self._hold)
        wire.on("status", self._status)
        wire.on("tries", self._tries)
        wire.on("logs", self._logs)
        wire.on("flows", self._flows)
        for word in ("commit", "release"):
            wire.on(word, self._word(word))

    async def _bid(self, region: str, data: bytes) -> bytes:
        try:
            file = self.as_ours(region, Bid.model_validate_json(data).file)
            async with self._bids:
                return (await self._manager.ask("region-bid", BidAnswer, GuestFile(home=region, file=file))).encode()
        except NotAccepted as error:
            return BidAnswer(refusal=str(error)).encode()
        except RemoteError as error:
            return BidAnswer(refusal=error.message).encode()

    async def _hold(self, region: str, data: bytes) -> bytes:
        """Ask the manager until the job has its place, or none; for a moment."""
        asked = Hold.model_validate_json(data)
        try:
            file = self.as_ours(region, asked.file)
            query = HoldQuery(home=region, job=asked.job, attempt=asked.attempt, file=file)
            until = self._clock() + PLACED_S
            while (answer := await self._manager.ask("region-hold", FateAnswer, query)).fate == "waiting":
                if self._clock() >= until:  # it is asked again, or its hold ends by itself
                    return answer.encode()
                await asyncio.sleep(LOOK_S)
        except NotAccepted as error:
            return FateAnswer(fate="released", reason=str(error)).encode()
        except RemoteError as error:
            if error.code in REFUSED:
                return FateAnswer(fate="released", reason=error.message).encode()
            raise
        log.info("a job of another region", region=region, job=asked.job, fate=answer.fate, here=answer.remote)
        return answer.encode()

    def as_ours(self, region: str, file: JobFile) -> JobFile:
        """The job with the tenant and the priority that it has here. Raises NotAccepted."""
        peer = self._peers[region]
        if file.tenant not in peer.accept:
            raise NotAccepted(f"jobs of tenant {file.tenant} are not accepted from region {region}")
        priority = min(file.priority, peer.max_priority)
        return file.model_copy(update={"tenant": peer.tenants[file.tenant], "priority": priority, "regions": []})

    def _word(self, word: str) -> Handler:
        async def act(region: str, data: bytes) -> bytes:
            job = RemoteJob.model_validate_json(data)
            query = GuestJobQuery(home=region, **job.model_dump())
            return (await self._manager.ask(f"region-{word}", FateAnswer, query)).encode()

        return act

    async def _status(self, region: str, data: bytes) -> bytes:
        query = GuestStatusQuery(home=region, items=StatusQuery.model_validate_json(data).items)
        return (await self._manager.ask("region-status", StatusAnswer, query)).encode()

    async def _tries(self, region: str, data: bytes) -> bytes:
        query = GuestTriesQuery(home=region, jobs=TriesQuery.model_validate_json(data).jobs)
        return (await self._manager.ask("region-tries", TriesAnswer, query)).encode()

    async def _logs(self, region: str, data: bytes) -> bytes:
        asked = RemoteLogQuery.model_validate_json(data)
        query = GuestLogQuery(home=region, **asked.model_dump())
        return (await self._manager.ask("region-logs", LogAnswer, query)).encode()

    async def _flows(self, region: str, data: bytes) -> bytes:
        job = RemoteJob.model_validate_json(data)
        query = GuestJobQuery(home=region, **job.model_dump())
        return (await self._manager.ask("region-flows", JobFlowsView, query)).encode()
