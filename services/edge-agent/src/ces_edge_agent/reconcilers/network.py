"""Keeps the node's sandboxes and data plane as desired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from ces_common.messages.desired import DesiredNetwork, Endpoint
from ces_common.messages.reports import Applied
from ces_common.service import Hint
from ces_common.tracing import AttemptSpans
from ces_edge_agent.documents import StoredDocument
from ces_edge_agent.inputs.service import InputService
from ces_edge_agent.ports import Network, Runtime, RuntimeUnavailable
from ces_edge_agent.reconcilers.actions import networked_allocations, plan_sandboxes
from ces_edge_agent.reconcilers.metrics import reconciling

log = structlog.get_logger()
REPAIR_S = 10.0  # how often the data plane is compared with the desired state without a hint
RETRY_S = 1.0


class NetworkReconciler:
    """``occupied``: allocations whose sandbox must stay. ``changed`` is called whenever the report has changed."""

    def __init__(
        self,
        node: str,
        runtime: Runtime,
        network: Network,
        document: StoredDocument[DesiredNetwork],
        inputs: InputService,
        occupied: Callable[[], set[str]],
        changed: Callable[[], None],
    ) -> None:
        self._node, self._runtime, self._network, self._document = node, runtime, network, document
        self._inputs = inputs
        self._occupied, self._changed = occupied, changed
        self.hint = Hint()
        self.applied = Applied(node=node, generation=0)
        self._applied_document: DesiredNetwork | None = None
        self._hosts: dict[str, dict[str, str]] = {}  # allocation -> the names in its sandbox, as last told
        self._traces = AttemptSpans("apply network")

    def networked(self) -> set[str]:
        """Allocations that may start, since their attempt's network is in place here."""
        return networked_allocations(self._applied_document, self.applied.jobs)

    async def run(self) -> None:
        while True:
            wait_s = RETRY_S
            try:
                with reconciling("network"):
                    if await self.step():
                        wait_s = REPAIR_S
            except RuntimeUnavailable as error:
                log.warning("the runtime does not answer", error=str(error))
            await self.hint.wait(wait_s)

    async def step(self) -> bool:
        """Bring sandboxes and data plane to the desired state; True when nothing is left to do."""
        desired = self._document.current
        if desired is None:
            return True
        self._traces.see(desired.traces or {})
        try:
            sandboxes = dict(await self._runtime.sandboxes())
            missing, stale = plan_sandboxes(desired, sandboxes.keys(), self._occupied())
            failures = await self._create_sandboxes([*missing, *self._renamed(desired, missing)])
            if missing:
                sandboxes = dict(await self._runtime.sandboxes())
        except RuntimeUnavailable:
            await self._inputs.follow(desired)  # readers on other nodes do not depend on this runtime
            raise
        problems = await self._network.apply(desired, sandboxes)
        whole_node = problems.pop("", None)
        if whole_node is not None:
            problems = dict.fromkeys(desired.jobs, whole_node) | problems
        problems |= failures | await self._inputs.follow(desired)
        self._applied_document = desired
        self._report(desired, problems)
        self._traces.done(self.applied.jobs)
        for allocation in stale:  # last: new things must not wait for removals
            await self._runtime.remove_sandbox(allocation)
        left = set(sandboxes) - set(stale) - {endpoint.allocation for endpoint in desired.endpoints}
        return not problems and whole_node is None and not left

    def _renamed(self, desired: DesiredNetwork, missing: list[Endpoint]) -> list[Endpoint]:
        """Sandboxes that are there, and that were not told their names yet as they are now: a peer has moved, or this
        agent has just begun."""
        there = {each.allocation for each in desired.endpoints}
        self._hosts = {allocation: hosts for allocation, hosts in self._hosts.items() if allocation in there}
        new = {each.allocation for each in missing}
        return [
            each
            for each in desired.endpoints
            if each.allocation not in new and self._hosts.get(each.allocation) != each.hosts
        ]

    async def _create_sandboxes(self, missing: list[Endpoint]) -> dict[str, str]:
        """Create sandboxes, or tell them other names; returns attempt key -> reason for those that failed."""
        results = await asyncio.gather(
            *(self._runtime.ensure_sandbox(endpoint) for endpoint in missing), return_exceptions=True
        )
        failures = {}
        for endpoint, result in zip(missing, results, strict=True):
            if isinstance(result, BaseException):
                log.warning("a sandbox could not be made", allocation=endpoint.allocation, error=str(result))
                failures[endpoint.job] = f"sandbox of {endpoint.hostname}: {result}"
            else:
                self._hosts[endpoint.allocation] = endpoint.hosts
        return failures

    def _report(self, desired: DesiredNetwork, problems: dict[str, str]) -> None:
        applied = Applied(
            node=self._node,
            generation=desired.generation,
            jobs=sorted(desired.jobs - problems.keys()),
            failed=problems,
        )
        if applied != self.applied:
            self.applied = applied
            self._changed()
