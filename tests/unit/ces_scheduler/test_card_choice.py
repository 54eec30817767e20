"""Which cards tasks get where a plan puts them."""

from __future__ import annotations

from typing import Any

from bus_manager import FakeManager
from cluster_state import job, node, view_of
from memory_bus import MemoryBus
from scheduler_steps import LINKS, ask, proposals, step

from ces_common.messages.cards import cards_of
from ces_common.messages.records import AllocationRecord, JobRecord, Resizing, Snapshot
from ces_scheduler.card_choice import cards_for
from ces_scheduler.cycle_input import Proposed, proposed_on
from ces_scheduler.offer import GPU, Offer, offer_of
from ces_scheduler.service import Scheduler


def with_gpus(name: str, number: int, gpu: int = 2, **fields: Any) -> Any:
    return node(name, number, gpu=gpu, cards=cards_of(gpu), **fields)


NODES = [with_gpus("a", 1), with_gpus("b", 3), node("s", 2, cpu=0, memory=0)]


def holder(*cards: str, name: str = "held", **fields: Any) -> JobRecord:
    """One task with these cards on a."""
    return job(name, ["a"], task={"gpu": len(cards), "cpu": 100}, allocation={"cards": list(cards)}, **fields)


def asking(name: str = "q", tasks: int = 1, gpu: int = 1) -> JobRecord:
    return job(name, tasks=tasks, task={"gpu": gpu, "cpu": 100})


def offered(*jobs: JobRecord) -> Offer:
    return offer_of(view_of(NODES, LINKS, jobs))


def test_the_first_that_are_free_and_each_once() -> None:
    pair = asking(tasks=3)
    where = {"w-0": "a", "w-1": "b", "w-2": "b"}
    assert cards_for(pair, pair.tasks, where, offered(holder("gpu0"))) == {
        "w-0": ["gpu1"],
        "w-1": ["gpu0"],
        "w-2": ["gpu1"],
    }


def test_what_is_proposed_is_taken() -> None:
    other = asking("other")
    offer = proposed_on(offered(), [Proposed(other, {"w-0": "a"}, [], {"w-0": ["gpu0"]})])
    record = asking()
    assert cards_for(record, record.tasks, {"w-0": "a"}, offer) == {"w-0": ["gpu1"]}
    assert offer.cluster.node_used[GPU].tolist() == [1, 0, 0]


def test_a_job_that_goes_to_another_size_keeps_what_it_has() -> None:
    record = holder("gpu1")
    larger = asking(tasks=2)
    assert cards_for(record, larger.tasks, {"w-0": "a", "w-1": "a"}, offered(record)) == {
        "w-0": ["gpu1"],
        "w-1": ["gpu0"],
    }


def test_a_manager_that_names_no_cards_gets_none() -> None:
    record = asking()
    offer = offer_of(view_of([node("a", 1, gpu=2)], []))
    assert cards_for(record, record.tasks, {"w-0": "a"}, offer) == {}


def test_cards_of_both_sizes_count() -> None:
    """Where the former card is still held when the new one is another."""
    coming = AllocationRecord(id="n", task="w-0", rank=0, node="a", address="", port=1, cards=["gpu1"])
    record = holder("gpu0")
    record = record.model_copy(update={"resizing": Resizing(size=1, tasks=record.tasks, allocations=[coming])})
    offer = offered(record)
    assert offer.cluster.node_used[GPU].tolist() == [2, 0, 0]
    assert offer.cards == {"held": {("a", "gpu0"): (1000, 0), ("a", "gpu1"): (1000, 0)}}


def test_an_offer_that_follows_knows_what_a_fresh_one_knows() -> None:
    view = view_of(NODES, LINKS, [holder("gpu0")])
    offer = offer_of(view)
    over = job("held", ["a"], task={"gpu": 1}, allocation={"cards": ["gpu0"], "state": "stopped"})
    for version, record in enumerate((holder("gpu0", "gpu1"), over, holder("gpu1")), start=2):
        view.merge(Snapshot(epoch="e", version=version, full=False, jobs=[record]))
        offer = offer_of(view, offer)
        assert offer.cards == offer_of(view_of(NODES, LINKS, [record])).cards
    assert offer.cards == {"held": {("a", "gpu1"): (1000, 0)}}


async def test_jobs_that_start_together_get_different_cards(
    scheduler: Scheduler, bus: MemoryBus, manager: FakeManager
) -> None:
    manager.change(nodes=[with_gpus("a", 1)], jobs=[asking(f"q{i}") for i in range(3)])
    await step(scheduler, manager)
    assert sorted(plan.cards["w-0"] for plan in proposals(manager)) == [["gpu0"], ["gpu1"]]


async def test_a_dry_run_names_the_cards(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(nodes=[with_gpus("a", 1), with_gpus("b", 3)], jobs=[holder("gpu0")])
    group = {"name": "w", "command": ["x"], "resources": {"cpu": "100m", "memory": "1Mi", "gpu": 1}, "replicas": 3}
    answer = await ask(bus, tasks=[group], flows={})
    held = {(answer.assignments[task], card) for task, ids in answer.cards.items() for card in ids}
    assert held == {("a", "gpu1"), ("b", "gpu0"), ("b", "gpu1")}
