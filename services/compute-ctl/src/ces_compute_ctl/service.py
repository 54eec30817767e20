"""Follow the state, keep the nodes' compute documents as it demands."""

from __future__ import annotations

import asyncio

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError
from ces_common.messages.desired import DesiredCompute
from ces_common.sign_of_life import SignOfLife
from ces_common.spec_store import SpecStore
from ces_common.state_reader import StateReader
from ces_common.states import JOB_OVER
from ces_compute_ctl.desired_compute import Planner, least_generations

log = structlog.get_logger()
SERVICE = "compute-ctl"
EVENTS = [  # what may change the workers that a node should run
    *(subjects.events("job", state) for state in ("starting", "running", "resizing", "paused", "suspended")),
    subjects.events("job", "rescheduling"),
    *(subjects.events("job", state) for state in JOB_OVER),
    subjects.events("allocation", "pending"),
    subjects.events("checkpoint"),
    subjects.events("cpu", "committed"),
    subjects.events("node"),
]
RETRY_S = 1.0


class ComputeController:
    def __init__(self, bus: Bus, resync_s: float) -> None:
        self._bus, self._resync_s = bus, resync_s
        self.reader = StateReader(bus)
        self._store = SpecStore(
            bus, "compute", DesiredCompute, lambda node: subjects.desired_key(node, "compute"), resync_s
        )
        self._planner = Planner()
        self._sign_of_life = SignOfLife(bus, SERVICE)
        bus.on_reconnect(self._reconnected)

    def missing(self) -> str | None:
        """What keeps it from working; None when ready."""
        return None if self.reader.fresh else "the manager's snapshot"

    async def run(self) -> None:
        await self.reader.start(EVENTS)
        await asyncio.gather(self._follow(), self._sign_of_life.run())

    async def _follow(self) -> None:
        wait_s = self._resync_s
        while True:
            await self.reader.wait(wait_s)
            wait_s = self._resync_s if await self.step() else RETRY_S

    async def step(self) -> bool:
        """One look at the state, and the documents that follow from it; False when it must be tried again soon."""
        self._sign_of_life.begin()
        if not await self.reader.refresh():
            return False
        view = self.reader.view
        try:
            await self._store.put(self._planner.plan(view), view.version, least_generations(view))
        except BusError as error:
            log.warning("desired state could not be written", error=str(error))
            return False
        await self._sign_of_life.end()
        return True

    async def _reconnected(self) -> None:
        self._store.forget()
        self.reader.hint.set()
