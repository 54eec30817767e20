"""What waits behind a class when its rate falls: it goes at the old rate, and no more of it is left than may be."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from dataplane_row import MBIT, row_of

from ces_edge_agent.dataplane.netlink.kernel import Kernel
from ces_edge_agent.dataplane.netlink.steps import Site
from ces_edge_agent.dataplane.plan.diff import Step, lowers
from ces_edge_agent.dataplane.plan.objects import Queue, ShapedClass
from ces_edge_agent.dataplane.plan.shaping import data_minor
from ces_experiments.network.flood import flood

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]
TRIES = 10
FAST, SLOW = 20 * MBIT, 1 * MBIT
MINOR = data_minor(1)


@dataclass
class Seen:
    """Of the flow's class: what waited when the order came and when the class was lowered, in bytes, and the limit."""

    before: int = 0
    lowered: int = 0
    limit: int = 0


async def test_a_class_is_lowered_once_its_queue_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    perform = Kernel.perform

    def watch(kernel: Kernel, step: Step, site: Site) -> None:
        match step.item:
            case Queue(device="to-n2", minor=minor, limit=limit) if minor == MINOR:
                seen.before, seen.limit = kernel.class_counters("to-n2")[MINOR].waiting, limit
            case ShapedClass(device="to-n2", minor=minor) if minor == MINOR and lowers(step):
                seen.lowered = kernel.class_counters("to-n2")[MINOR].waiting
        perform(kernel, step, site)

    async with row_of(2) as row:
        one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
        row.reserve(1, one, two, FAST)
        await row.apply()
        with flood(one, two, 5 * FAST):
            for _ in range(TRIES):  # on a busy machine the queue may be empty just then, or soon, or run down too late
                row.reserve(1, one, two, FAST)
                await row.apply()
                monkeypatch.setattr(Kernel, "perform", watch)
                row.reserve(1, one, two, SLOW)
                await row.apply()
                monkeypatch.undo()
                if seen.before > seen.limit >= seen.lowered > 0:
                    break
    assert seen.before > seen.limit >= seen.lowered > 0
