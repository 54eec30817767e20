"""The manager as the scheduler and the controllers see it: a snapshot on request, facts on the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from cluster_state import snapshot

from ces_common import subjects
from ces_common.bus.port import Bus, Delivery, Message
from ces_common.messages.base import Message as Model
from ces_common.messages.events import CloudEvent, new_event, parse_event
from ces_common.messages.records import (
    JobRecord,
    LinkRecord,
    MediumRecord,
    NodeRecord,
    Snapshot,
    SnapshotQuery,
    Topology,
)

PATIENCE_S = 60.0


class FakeManager:
    """Holds a state, answers snapshots of it, keeps the facts that others publish."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.nodes: dict[str, NodeRecord] = {}
        self.jobs: dict[str, JobRecord] = {}
        self.links: list[LinkRecord] = []
        self.media: list[MediumRecord] = []
        self.version = 0
        self._wired = 0  # the version that brought the links
        self.epoch = "e"
        self.facts: list[CloudEvent[Any]] = []
        self.asked = 0
        self._news = asyncio.Event()

    async def open(self) -> None:
        await self._bus.serve(subjects.rpc("manager", "snapshot"), self._answer)
        heard = [
            subjects.events(aggregate)
            for aggregate in ("plan", "revision", "resize", "cpu", "preemption", "network", "deadline")
        ]
        await self._bus.consume("fake-manager", heard, self._heard)

    def change(
        self,
        *,
        nodes: Iterable[NodeRecord] = (),
        jobs: Iterable[JobRecord] = (),
        links: Iterable[LinkRecord] | None = None,
    ) -> None:
        """A transaction."""
        self.version += 1
        stamp = {"version": self.version}
        self.nodes |= {each.name: each.model_copy(update=stamp) for each in nodes}
        self.jobs |= {each.id: each.model_copy(update=stamp) for each in jobs}
        if links is not None:
            self.links = list(links)
            self._wired = self.version

    async def tell(self, aggregate: str, kind: str, subject: str, data: Model) -> None:
        """Publish a fact of the manager's own."""
        event = new_event("manager", aggregate, kind, subject, data, datetime.now(UTC))
        await self._bus.publish_fact(event.bus_subject, event.encode(), message_id=event.id)

    def told(self, kind: str) -> list[Any]:
        """The data of all facts heard of a type, such as ``plan.proposed``."""
        return [fact.data for fact in self.facts if fact.type == f"ces.v1.{kind}"]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds that changes only with what is heard or asked here."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def settled(self) -> None:
        """Wait until nothing is under way in the in-memory bus."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def _answer(self, message: Message) -> bytes:
        query = SnapshotQuery.model_validate_json(message.data)
        self.asked += 1
        self._news.set()
        if query.epoch != self.epoch or query.since == 0:
            whole = snapshot(
                self.nodes.values(),
                self.links,
                self.jobs.values(),
                media=self.media,
                version=self.version,
                epoch=self.epoch,
            )
            return whole.encode()
        changed = Snapshot(
            epoch=self.epoch,
            version=self.version,
            full=False,
            nodes=[each for each in self.nodes.values() if each.version > query.since],
            jobs=[each for each in self.jobs.values() if each.version > query.since],
            topology=Topology(version=self._wired, links=self.links, media=self.media)
            if self._wired > query.since
            else None,
        )
        return changed.encode()

    async def _heard(self, delivery: Delivery) -> None:
        self.facts.append(parse_event(delivery.data))
        self._news.set()
