"""A change that the kernel refuses half-way is taken back: what was in force before stays in force."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import pairwise

import pytest
from dataplane_row import MBIT, Row, row_of, tc
from namespace_traffic import measure, streams

from ces_edge_agent.dataplane.netlink.kernel import Kernel
from ces_edge_agent.dataplane.netlink.steps import Site
from ces_edge_agent.dataplane.plan.diff import Step
from ces_edge_agent.dataplane.plan.objects import Route, Rule
from ces_edge_agent.ports import DataPlaneError

pytestmark = pytest.mark.needs("root")
HOST = 2  # in the middle


@pytest.fixture
async def row() -> AsyncIterator[Row]:
    """Jobs a and b send from the middle to n1; nothing is sent to n3 yet."""
    async with row_of(3) as row:
        for job in "ab":
            row.worker(f"{job}1", 1, job), row.worker(f"{job}2", 2, job), row.worker(f"{job}3", 3, job)
        row.reserve(1, worker(row, "a2"), worker(row, "a1"), 10 * MBIT)
        row.reserve(2, worker(row, "b2"), worker(row, "b1"), 20 * MBIT)
        await row.apply()
        yield row


def worker(row: Row, name: str):
    return next(each for each in row.workers if each.name == name)


def rates(row: Row, device: str = "to-n1") -> dict[str, str]:
    """Class -> rate and ceil, of flows' data."""
    shown = [line.split() for line in tc("-n", row.namespace(HOST), "class", "show", "dev", device).splitlines()]
    found = {words[2]: " ".join(words[words.index("rate") :][:4]) for words in shown}
    return {name: found[name] for name in ("1:2", "1:4", "1:6") if name in found}


def change(row: Row, a_rate: int, b_rate: int) -> None:
    row.reserve(1, worker(row, "a2"), worker(row, "a1"), a_rate * MBIT)
    row.reserve(2, worker(row, "b2"), worker(row, "b1"), b_rate * MBIT)


async def order(row: Row) -> dict[str, str]:
    return await row.networks[HOST].apply(row.desired(HOST), row.sandboxes(HOST))


def said(**rate: int) -> dict[str, str]:
    minors = {"a": "1:2", "b": "1:4", "new": "1:6"}
    return {minors[job]: f"rate {mbit}Mbit ceil {mbit}Mbit" for job, mbit in rate.items()}


@pytest.mark.parametrize(("a_rate", "b_rate"), [(30, 5), (4, 40)])
async def test_what_the_kernel_refuses_changes_nothing_of_its_job(row: Row, a_rate: int, b_rate: int) -> None:
    """A filter that somebody else made keeps the kernel from taking that of a's new flow, when a's classes and queues
    are already in place."""
    on = ("-n", row.namespace(HOST))
    tc(*on, "filter", "add", "dev", "to-n3", "parent", "1:", "prio", "2", "protocol", "arp", "u32",
       "match", "u32", "0", "0", "flowid", "1:fffe")  # fmt: skip
    assert rates(row) == said(a=10, b=20)
    change(row, a_rate, b_rate)
    row.reserve(3, worker(row, "a2"), worker(row, "a3"), 15 * MBIT)
    failed = await order(row)
    assert set(failed) == {"a"}
    assert "cannot add filter for class 6 of to-n3" in failed["a"]
    assert rates(row) == said(a=min(a_rate, 10), b=b_rate)  # what a was to leave may be b's already
    assert rates(row, "to-n3") == {}
    tc(*on, "filter", "del", "dev", "to-n3", "parent", "1:", "prio", "2")
    assert await order(row) == {}
    assert rates(row) == said(a=a_rate, b=b_rate)
    assert rates(row, "to-n3") == said(new=15)


async def test_a_flow_whose_way_is_refused_leaves_neither_filter_nor_class(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    def filters() -> set[str]:
        """The classes that filters lead to."""
        shown = tc("-n", row.namespace(HOST), "filter", "show", "dev", "to-n3", "parent", "1:").split()
        return {value for word, value in pairwise(shown) if word.endswith("flowid")}

    perform = Kernel.perform
    before = filters()

    def refusing(kernel: Kernel, step: Step, site: Site) -> None:
        if step.action == "add" and isinstance(step.item, (Route, Rule)):
            raise DataPlaneError(f"cannot {step}: refused")
        perform(kernel, step, site)

    row.reserve(3, worker(row, "a1"), worker(row, "a3"), 15 * MBIT)  # only passes through
    monkeypatch.setattr(Kernel, "perform", refusing)
    failed = await order(row)
    assert set(failed) == {"a"}
    assert "refused" in failed["a"]
    assert filters() == before
    assert rates(row, "to-n3") == {}
    monkeypatch.undo()
    assert await order(row) == {}
    assert filters() == before | {"1:6"}
    assert rates(row, "to-n3") == said(new=15)


async def test_a_failure_at_any_step_takes_nothing_from_a_running_flow(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = Kernel.perform
    steps: list[Step] = []

    def refusing(at: int, kernel: Kernel, step: Step, site: Site) -> None:
        steps.append(step)
        if len(steps) - 1 == at:
            raise DataPlaneError(f"cannot {step}: refused")
        perform(kernel, step, site)

    def refuse(at: int) -> None:
        steps.clear()
        bound: Callable[..., None] = partial(refusing, at)
        monkeypatch.setattr(Kernel, "perform", lambda kernel, step, site: bound(kernel, step, site))

    refuse(-1)
    change(row, 30, 8)
    assert await order(row) == {}
    count = len(steps)
    assert count > 4
    ends = worker(row, "a2").file, worker(row, "a1").file, worker(row, "a1").address
    with streams(ends) as opened:
        for at in range(count):
            change(row, 10, 20)
            refuse(-1)
            assert await order(row) == {}
            change(row, 30, 8)
            refuse(at)
            failed = await order(row)
            assert failed, at
            kept = "a" in failed, "b" in failed and "cannot change class 4 of to-n1" in failed["b"]
            assert rates(row) == said(a=10 if kept[0] else 30, b=20 if kept[1] else 8)
        refuse(-1)
        assert await order(row) == {}
        assert rates(row) == said(a=30, b=8)
        (measured,) = await asyncio.to_thread(measure, opened, 0.5)
        assert opened[0].failed is None
    assert measured > 10 * MBIT
