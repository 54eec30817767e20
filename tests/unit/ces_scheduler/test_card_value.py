"""What is left over of cards, as the searching solver weighs it against the composite."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from cluster_state import job, node, view_of
from queue_looks import SOON, placing
from scheduler_steps import LINKS

from ces_common.messages.cards import Card
from ces_common.messages.records import JobRecord
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.queue.parameters import Parameters
from ces_core.search.solver import SEARCH
from ces_scheduler.cycle_input import cycle_input
from ces_scheduler.cycle_run import CycleRun, run_cycle
from ces_scheduler.offer import offer_of

GIB = 2**30
CARDS = [Card(id=f"c{i}", model="Tesla T4", memory=16 * GIB, shareable="counted") for i in range(3)]
NODES = [
    node("a", 1, gpu=1, cards=CARDS[:1]),
    node("s", 2, cpu=0, memory=0),
    node("b", 3, gpu=2, cards=CARDS[1:]),
]


@dataclass
class Watched:
    """Keeps what the searching solver is asked."""

    name: str = SEARCH.name
    summary: str = "watched"
    asked: list[Problem] = field(default_factory=list)

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        self.asked.append(problem)
        return SEARCH.solve(problem, seed=seed, time_limit_s=time_limit_s)


def holder(share: int) -> JobRecord:
    """On the only card of a, where it has most of the CPU too: by the composite alone, others go to b."""
    held = {"cards": ["c0"], "gpu_share": share, "gpu_memory": share * 16 * GIB // 1000}
    return job("x", ["a"], task={"gpu": 0, "gpu_share": share, "cpu": 3000}, allocation=held)


def asking(share: int, tasks: int = 1) -> JobRecord:
    return job("q", tasks=tasks, task={"gpu": 0, "gpu_share": share, "cpu": 100})


def run(record: JobRecord, weight: float, *held: JobRecord) -> tuple[CycleRun, Problem]:
    solver = Watched()
    look = cycle_input([record], offer_of(view_of(NODES, LINKS, held)), [], SOON, Parameters(), None)
    return run_cycle(1, look, placing(solver, card_weight=weight)), solver.asked[0]


@pytest.mark.parametrize(("weight", "where"), [(0.0, "b"), (1.0, "a")])
def test_a_share_goes_beside_another_where_that_keeps_a_card_whole(weight: float, where: str) -> None:
    played, problem = run(asking(500), weight, holder(500))
    assert played.starts["q"].assignments == {"w-0": where}
    assert (problem.card_value is not None) is bool(weight)


def test_what_is_lost_is_told_of_each_node_by_the_weight() -> None:
    """On a the share fills the card, on b it breaks a whole one: the first step there loses something, and a second
    one on the same card less than on the other."""
    _, problem = run(asking(500, tasks=2), 0.5, holder(500))
    _, twice = run(asking(500, tasks=2), 1.0, holder(500))
    assert problem.card_value is not None
    assert twice.card_value is not None
    index, change = problem.cluster.topology.node_index, problem.card_value.change
    a, b = change[index["a"]], change[index["b"]]
    assert problem.card_value.per_card == 2
    assert a.tolist() == [0, 0, 0], "nothing is lost, and a second one has no room"
    assert b[0] == 0 > b[1]
    assert twice.card_value.change == pytest.approx(2 * change)


def test_two_shares_break_one_card_and_not_two() -> None:
    played, _ = run(asking(500, tasks=2), 1.0, holder(800))
    assert played.starts["q"].assignments == {"w-0": "b", "w-1": "b"}
    assert len({card for cards in played.starts["q"].cards.values() for card in cards}) == 1
