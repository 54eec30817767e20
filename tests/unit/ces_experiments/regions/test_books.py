"""A cluster's queue and books."""

from __future__ import annotations

from ces_core.model.parts import Link, Node, Task
from ces_core.model.problem import Cluster
from ces_core.registry import get_solver
from ces_experiments.regions.books import Asked, Books
from ces_sim.arrivals import TimedJob

CLUSTER = Cluster.make(
    [Node("a", cpu=4.0, memory=4.0), Node("b", cpu=2.0, memory=2.0, cpu_used=0.5)],
    [Link("a", "b", 10), Link("b", "a", 10)],
)


def job(name: str, *cpus: float) -> TimedJob:
    return TimedJob(name, 0.0, 1.0, tuple(Task(f"t{i}", cpu=cpu, memory=0.5) for i, cpu in enumerate(cpus)), ())


def books() -> tuple[Books, Asked]:
    asked = Asked()
    return Books(CLUSTER, get_solver("least-allocated"), asked), asked


def test_who_has_no_place_is_passed_over_and_keeps_its_turn() -> None:
    made, _ = books()
    for name, cpu in (("one", 3.0), ("large", 3.5), ("small", 1.0), ("last", 3.0)):
        made.wait(name, job(name, cpu))
    assert list(made.serve()) == ["one", "small"]
    assert made.waiting == ("large", "last")
    made.release("one")
    made.release("small")
    assert list(made.serve()) == ["large"]


def test_a_refusal_stands_until_something_is_released() -> None:
    made, asked = books()
    made.wait("one", job("one", 4.0))
    made.serve()
    made.wait("two", job("two", 1.6))
    made.serve()
    looks = len(asked.cpu_s) + asked.screened
    made.serve()
    assert len(asked.cpu_s) + asked.screened == looks
    made.release("one")
    assert list(made.serve()) == ["two"]


def test_a_dry_run_takes_nothing() -> None:
    made, _ = books()
    before = made.totals()
    assert made.look(job("x", 2.0, 2.0)) is not None
    assert made.look(job("y", 2.0, 2.0, 2.0)) is None
    assert made.totals() == before


def test_tasks_that_cannot_fit_together_cost_the_solver_nothing() -> None:
    made, asked = books()
    assert made.look(job("x", 3.0, 3.0)) is None
    assert (asked.cpu_s, asked.screened) == ([], 1)


def test_sums_are_those_that_a_manager_would_tell() -> None:
    made, _ = books()
    made.wait("one", job("one", 3.0))
    made.serve()
    made.wait("two", job("two", 3.0))
    told = made.totals()
    assert (told.nodes, told.queued) == (2, 1)
    assert (told.free.cpu, told.total.cpu, told.largest.cpu) == (2500, 6000, 1500)
    assert told.free.memory == int(5.5 * 2**20)
    assert told.rooms == [0, 2, 0, 0, 0, 0, 0]
