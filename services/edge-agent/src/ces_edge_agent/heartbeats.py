"""What a heartbeat tells, and what fits into one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

import psutil

from ces_common.messages.desired import DesiredCompute
from ces_common.messages.energy import EnergyReport
from ces_common.messages.reports import MAX_HEARTBEAT, FlowUsage, Heartbeat, LinkUsage, WorkerStatus, WorkerUsage
from ces_edge_agent.energy.account import Account
from ces_edge_agent.lease import Clocks
from ces_edge_agent.measurement import measured
from ces_edge_agent.ports import Network, Runtime
from ces_edge_agent.reconcilers.actions import ALIVE


class Lending(Protocol):
    @property
    def lent(self) -> bool: ...


class Beats:
    """``every_s``: between two, within which what is measured is left out if it takes longer. ``boot`` names this start
    of the agent. ``account``: of the node's energy; None where nothing tells of it. ``desired``, ``observed``: the
    workers that there should be, and, by their keys, those that there are."""

    def __init__(
        self,
        node: str,
        boot: str,
        every_s: float,
        clocks: Clocks,
        runtime: Runtime,
        network: Network,
        lender: Lending,
        account: Account | None,
        desired: Callable[[], DesiredCompute | None],
        observed: Callable[[], Mapping[str, WorkerStatus]],
    ) -> None:
        self._node, self._boot, self._every_s, self._clocks = node, boot, every_s, clocks
        self._runtime, self._network, self._lender, self._account = runtime, network, lender, account
        self._desired, self._observed = desired, observed
        self._told_lent = lender.lent

    async def next(self) -> Heartbeat:
        links, flows, workers, energy = list[LinkUsage](), list[FlowUsage](), list[WorkerUsage](), None
        if self._lender.lent is self._told_lent:  # a change is told at once
            (links, flows), workers, energy = await asyncio.gather(
                measured(self._network.usage, (links, flows), self._every_s),
                measured(self._runtime.usage, workers, self._every_s),
                measured(self._energy, None, self._every_s),
            )
        self._told_lent = self._lender.lent
        return Heartbeat(
            node=self._node,
            boot=self._boot,
            machine=self._clocks.machine,
            cpu=psutil.cpu_percent() * 10 * (psutil.cpu_count() or 1),
            memory=psutil.virtual_memory().used,
            reclaimed=not self._lender.lent,
            energy=energy,
            workers=workers,
            links=links,
            flows=flows,
        )

    async def _energy(self) -> EnergyReport | None:
        if self._account is None:
            return None
        document = self._desired()
        alive = [each for each in self._observed().values() if each.state in ALIVE]
        workers = {status.allocation: status.pid for status in alive if status.pid is not None}
        reserved = {} if document is None else {worker.allocation: worker.cpu for worker in document.workers}
        return await asyncio.to_thread(self._account.look, self._clocks.steady(), workers, reserved)


def encoded(beat: Heartbeat) -> bytes:
    """The heartbeat as it is sent, with as many measurements as the manager takes: the lease is worth more. Pure."""
    data = beat.encode()
    while len(data) > MAX_HEARTBEAT:
        beat = beat.model_copy(
            update={
                name: getattr(beat, name)[: len(getattr(beat, name)) // 2] for name in ("workers", "links", "flows")
            }
        )
        data = beat.encode()
    return data
