"""Keep the node's holders and data plane as wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from ces_common.messages.reports import Applied
from ces_common.messages.wanted import Endpoint, NetworkWanted
from ces_common.service import Hint
from ces_edge_agent.documents import Kept
from ces_edge_agent.inputs.keeper import InputKeeper
from ces_edge_agent.ports import Network, Runtime, RuntimeUnavailable
from ces_edge_agent.reconcile import networked_allocations, plan_holders

log = structlog.get_logger()
MEND_S = 10.0  # how often the data plane is compared with what is wanted, unasked
RETRY_S = 1.0


class NetworkKeeper:
    """``occupied`` names allocations whose holder must stay; ``changed`` is called when the report differs."""

    def __init__(
        self,
        node: str,
        runtime: Runtime,
        network: Network,
        kept: Kept[NetworkWanted],
        inputs: InputKeeper,
        occupied: Callable[[], set[str]],
        changed: Callable[[], None],
    ) -> None:
        self._node, self._runtime, self._network, self._kept = node, runtime, network, kept
        self._inputs = inputs
        self._occupied, self._changed = occupied, changed
        self.hint = Hint()
        self.applied = Applied(node=node, generation=0)

    def networked(self) -> set[str]:
        """Allocations that may start: their attempt's network is in place here."""
        return networked_allocations(self._kept.current, self.applied.jobs)

    async def run(self) -> None:
        while True:
            wait_s = RETRY_S
            try:
                if await self.step():
                    wait_s = MEND_S
            except RuntimeUnavailable as error:
                log.warning("the runtime does not answer", error=str(error))
            await self.hint.wait(wait_s)

    async def step(self) -> bool:
        """Bring holders and data plane in line; True when nothing is left to do."""
        wanted = self._kept.current
        if wanted is None:
            return True
        try:
            holders = dict(await self._runtime.holders())
            missing, stale = plan_holders(wanted, holders.keys(), self._occupied())
            failures = await self._make_holders(missing)
            if missing:
                holders = dict(await self._runtime.holders())
        except RuntimeUnavailable:
            await self._inputs.follow(wanted)  # those who read from elsewhere need no runtime here
            raise
        problems = await self._network.apply(wanted, holders)
        whole_node = problems.pop("", None)
        if whole_node is not None:
            problems = dict.fromkeys(wanted.jobs, whole_node) | problems
        problems |= failures | await self._inputs.follow(wanted)
        self._report(wanted, problems)
        for allocation in stale:  # what is new need not wait for it
            await self._runtime.remove_holder(allocation)
        left = set(holders) - set(stale) - {endpoint.allocation for endpoint in wanted.endpoints}
        return not problems and whole_node is None and not left

    async def _make_holders(self, missing: list[Endpoint]) -> dict[str, str]:
        """Attempt key -> reason for each holder that could not be made."""
        results = await asyncio.gather(
            *(self._runtime.ensure_holder(endpoint) for endpoint in missing), return_exceptions=True
        )
        failures = {}
        for endpoint, result in zip(missing, results, strict=True):
            if isinstance(result, BaseException):
                log.warning("a holder could not be made", allocation=endpoint.allocation, error=str(result))
                failures[endpoint.job] = f"holder of {endpoint.hostname}: {result}"
        return failures

    def _report(self, wanted: NetworkWanted, problems: dict[str, str]) -> None:
        applied = Applied(
            node=self._node,
            generation=wanted.generation,
            jobs=sorted(wanted.jobs - problems.keys()),
            failed=problems,
        )
        if applied != self.applied:
            self.applied = applied
            self._changed()
