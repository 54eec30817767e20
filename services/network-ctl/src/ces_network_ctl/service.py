"""Follow the state, keep the nodes' network documents as it demands, and say when a job's network is in place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError
from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.records import JobRecord
from ces_common.sign_of_life import SignOfLife
from ces_common.spec_store import SpecStore
from ces_common.state_reader import StateReader
from ces_common.state_view import StateView
from ces_common.states import JOB_OVER
from ces_common.tracing import AttemptSpans
from ces_network_ctl.announcements import PREPARING_S, SERVICE, Announcements, Clock, waits_for_network
from ces_network_ctl.best_effort import best_effort_only
from ces_network_ctl.desired_network import Planner
from ces_network_ctl.job_network import involved_nodes

log = structlog.get_logger()
EVENTS = [  # what may change a node's network: plans come and are revised, jobs leave or change size, tasks move or go
    subjects.events("plan", "committed"),
    subjects.events("plan", "revised"),
    subjects.events("part", "committed"),
    *(subjects.events("job", state) for state in ("queued", *JOB_OVER)),
    *(subjects.events("allocation", state) for state in ("stopped", "lost")),
    subjects.events("resize", "ended"),
    subjects.events("move"),
    subjects.events("node"),
    subjects.events("topology"),
    subjects.events("link"),
]
RETRY_S = 1.0
LINGER_S = 0.5  # what a job leaves behind may stay as long on nodes that others change soon; it takes nothing from them


class NetworkController:
    """``reserve``: False for a network that promises nothing to any flow."""

    def __init__(self, bus: Bus, resync_s: float, clock: Clock = monotonic, *, reserve: bool = True) -> None:
        self._resync_s, self._reserve = resync_s, reserve
        self.reader = StateReader(bus)
        self._store = SpecStore(
            bus,
            "network",
            DesiredNetwork,
            lambda node: subjects.desired_key(node, "network"),
            resync_s,
            clock,
            linger_s=LINGER_S,
        )
        self._planner = Planner()
        self._sign_of_life = SignOfLife(bus, SERVICE)
        self.announcements = Announcements(bus, clock, lambda: self.reader.view, self._planner.nodes_of)
        self._traces = AttemptSpans("plan network")
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""
        return None if self.reader.fresh else "the manager's snapshot"

    async def run(self) -> None:
        await self.announcements.listen()
        await self.reader.start(EVENTS)
        await asyncio.gather(self._follow(), self.announcements.run(), self._sign_of_life.run())

    async def _follow(self) -> None:
        wait_s = self._resync_s
        while True:
            await self.reader.wait(wait_s)
            wait_s = await self.step()

    async def step(self) -> float:
        """One look at the state and what follows from it; returns after how many seconds to look again unasked."""
        self._sign_of_life.begin()
        if not await self.reader.refresh():
            return RETRY_S
        view = self.reader.view
        traced = [job for name in view.traced if waits_for_network(job := view.jobs[name]) and job.allocations]
        self._traces.see({job.key: self.reader.context_of(job) or "" for job in traced})
        documents = await asyncio.to_thread(self._documents, view)  # only refresh() changes the view
        try:
            await self._store.put(documents, view.version, traces=self._contexts(traced))
            self._traces.done()
            self.announcements.trace(self._traces.contexts)
            waiting = await self.announcements.say()
        except BusError as error:
            log.warning("the desired network could not be announced", error=str(error))
            return RETRY_S
        await self._sign_of_life.end()
        return min(PREPARING_S if waiting else self._resync_s, self._store.due_s())

    def _contexts(self, traced: list[JobRecord]) -> Callable[[DesiredNetwork], dict[str, str] | None]:
        """What a document says of traced attempts: those that depend on its node."""
        contexts = self._traces.contexts
        nodes = {job.key: involved_nodes(job) for job in traced}
        return lambda each: {key: of for key, of in contexts.items() if each.node in nodes[key]} or None

    def _documents(self, view: StateView) -> dict[str, DesiredNetwork]:
        planned = self._planner.plan(view)
        return planned if self._reserve else {node: best_effort_only(each) for node, each in planned.items()}

    async def _reconnected(self) -> None:
        self._store.forget()
        self.announcements.repeat()
        self.reader.hint.set()
