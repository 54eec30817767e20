"""Follow the state, keep the nodes' compute documents as it demands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from ces_common import subjects
from ces_common.bus.port import Bus, BusError
from ces_common.messages.desired import DesiredCompute
from ces_common.sign_of_life import SignOfLife
from ces_common.spec_store import SpecStore
from ces_common.state_reader import StateReader
from ces_common.states import JOB_OVER, JobState
from ces_common.tracing import AttemptSpans
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
    subjects.events("move", "changed"),
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
        self._traces = AttemptSpans("plan workers")
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
        traced = [job for name in view.traced if (job := view.jobs[name]).state is JobState.STARTING]
        self._traces.see({job.key: self.reader.context_of(job) or "" for job in traced})
        contexts = self._traces.contexts
        try:
            await self._store.put(
                self._planner.plan(view), view.version, least_generations(view), lambda each: _of(each, contexts)
            )
            self._traces.done()
        except BusError as error:
            log.warning("desired state could not be written", error=str(error))
            return False
        await self._sign_of_life.end()
        return True

    async def _reconnected(self) -> None:
        self._store.forget()
        self.reader.hint.set()


def _of(document: DesiredCompute, contexts: Mapping[str, str]) -> dict[str, str] | None:
    """What a document says of traced attempts: those with a worker in it."""
    if not contexts:
        return None
    keys = {f"{worker.job}.{worker.attempt}" for worker in document.workers} & contexts.keys()
    return {key: contexts[key] for key in sorted(keys)} or None
