"""A thousand jobs with shares of cards and whole ones, any of which may be killed: no card is overbooked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
from cluster_state import NOW, job, node, view_of
from queue_looks import placing
from scheduler_steps import LINKS

from ces_common.messages.cards import Card, held_of
from ces_common.messages.records import AllocationRecord, JobRecord
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters
from ces_core.registry import get_solver
from ces_manager.plans.card_checks import wrong_cards
from ces_scheduler.cycle_input import LastCycle, cycle_input
from ces_scheduler.cycle_run import CycleRun, run_cycle
from ces_scheduler.offer import offer_of

GIB = 2**30
JOBS, MODELS = 1000, ("Tesla T4", "Tesla P100-PCIE-16GB")
NODES = [
    node(
        f"n{i}",
        i + 1,
        cpu=64_000,
        memory=512 * GIB,
        gpu=4,
        cards=[Card(id=f"{i}-{j}", model=MODELS[(i + j) % 2], memory=16 * GIB, shareable="counted") for j in range(4)],
    )
    for i in range(4)
]
CARDS = {(each.name, card.id): card for each in NODES for card in each.cards}


@dataclass
class NodeCards:
    """As the manager checks a plan."""

    cards: dict[str, Card]
    taken: dict[str, tuple[int, int]] = field(default_factory=dict)


def drawn(number: int, rng: np.random.Generator) -> JobRecord:
    task: dict[str, Any] = {"cpu": 100, "memory": GIB}
    if rng.random() < 0.2:
        task |= {"gpu": int(rng.integers(1, 3))}
    else:
        task |= {"gpu": 0, "gpu_share": 10 * int(rng.integers(1, 101)), "gpu_memory": int(rng.integers(0, 9)) * GIB}
    task |= {"gpu_models": ["T4"]} if rng.random() < 0.2 else {}
    given = {"tasks": int(rng.integers(1, 4)), "priority": int(rng.integers(1, 101)), "preemption": "stop"}
    given |= {"expected_s": float(rng.integers(30, 600))} if rng.random() < 0.5 else {}
    return job(f"j{number:04}", task=task, submitted_at=NOW + timedelta(seconds=number), **given)


def placed(record: JobRecord, run: CycleRun, at: Any) -> JobRecord:
    decision = run.starts[record.id]
    allocations = []
    for task in record.tasks:
        cards = decision.cards[task.name]
        where = decision.assignments[task.name]
        share, memory = held_of(CARDS[where, cards[0]], task.gpu_share, task.gpu_memory) if task.gpu_share else (0, 0)
        place = {"id": f"{record.id}-{task.name}", "task": task.name, "rank": task.rank, "node": where, "port": 1}
        held = {"cards": cards, "gpu_share": share, "gpu_memory": memory, "address": ""}
        allocations.append(AllocationRecord.model_validate(place | held))
    return record.model_copy(update={"state": JobState.RUNNING, "allocations": allocations, "started_at": at})


def held_of_all(running: dict[str, JobRecord]) -> dict[tuple[str, str], tuple[int, int]]:
    """Added up here alone."""
    found: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for record in running.values():
        for each in record.allocations:
            for card in each.cards:
                share, memory = found[each.node, card]
                whole = CARDS[each.node, card].memory
                more = (each.gpu_share, each.gpu_memory) if each.gpu_share else (1000, whole)
                found[each.node, card] = (share + more[0], memory + more[1])
    return found


def test_no_card_is_overbooked() -> None:
    rng = np.random.default_rng(7)
    coming = [drawn(number, rng) for number in range(JOBS)]
    parameters = Parameters(preemption=20, reservations=2)
    how = placing(get_solver("greedy"), parameters)
    waiting: dict[str, JobRecord] = {}
    running: dict[str, JobRecord] = {}
    last: LastCycle | None = None
    started = preempted = 0
    for look in range(10 * JOBS):
        if not (coming or waiting):
            break
        now = NOW + timedelta(seconds=JOBS + 10 * look)
        for _ in range(int(rng.integers(0, 8))):
            if coming:
                came = coming.pop()
                waiting[came.id] = came
        for where, chance in ((running, 0.25), (waiting, 0.01)):
            for name in [each for each in where if rng.random() < chance]:
                del where[name]  # killed
        offer = offer_of(view_of(NODES, LINKS, [*running.values(), *waiting.values()]))
        run = run_cycle(look, cycle_input(waiting.values(), offer, [], now, parameters, last), how)
        last = run.last
        for name, victims in run.decisions.preempted.items():
            assert name in waiting
            preempted += len(victims.names)
            for victim in victims.names:
                running.pop(victim)
        for name in run.starts:
            record = waiting.pop(name)
            taken = held_of_all(running)
            cards = run.starts[name].cards
            for each in {run.starts[name].assignments[task.name] for task in record.tasks}:
                tasks = [task for task in record.tasks if run.starts[name].assignments[task.name] == each]
                there = NodeCards(
                    {card.id: card for node_, card in ((n, c) for (n, _), c in CARDS.items()) if node_ == each},
                    {card: held for (node_, card), held in taken.items() if node_ == each},
                )
                assert list(wrong_cards(each, tasks, cards, there)) == [], "the manager would reject it"
            running[name] = placed(record, run, now)
            started += 1
        for (where, card), (share, memory) in held_of_all(running).items():
            assert share <= 1000, f"{card} of {where}"
            assert memory <= CARDS[where, card].memory, f"{card} of {where}"
    assert not waiting, "whoever was not killed has run"
    assert not coming
    assert started > JOBS / 2
    assert preempted > 0
