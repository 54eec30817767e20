"""Energy in the database: written now and then, and shown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager_world import World, ring
from sqlalchemy import Engine, event

from ces_common.messages.energy import Energy, EnergyReport, Source
from ces_common.messages.reports import Heartbeat
from ces_manager.database import Database
from ces_manager.energy import views
from ces_manager.energy.notes import AT_ONCE, ROWS_AT_ONCE, batches, note_energy
from ces_manager.energy_book import EnergyBook
from ces_manager.errors import NotFound
from ces_manager.jobs.job_views import job_view
from ces_manager.measurements import Measurements
from ces_manager.nodes.node_views import node_view

JOULE = 1_000_000


@pytest.fixture
def book() -> EnergyBook:
    return EnergyBook()


async def tell(
    world: World, book: EnergyBook, node: str, joules: int, boot: str = "b", source: Source = "measured", **jobs: int
) -> None:
    """``jobs``: allocation -> joules. It is written down at once."""
    allocations = {name: each * JOULE for name, each in jobs.items()}
    report = EnergyReport(source=source, meter="rapl", total=joules * JOULE, watts=7, allocations=allocations)
    book.heard(Heartbeat(node=node, boot=boot, energy=report))
    await write(world, book)


async def write(world: World, book: EnergyBook) -> None:
    database = Database(world.uow, world.clock)
    await note_energy(database, book)
    database.close()


def placed(world: World, *nodes: str, name: str = "ring", tenant: str = "red") -> tuple[str, dict[str, str]]:
    """A job that runs, and its allocations by node."""
    job = world.submit(ring(name, tasks=len(nodes), tenant=tenant))
    assert world.commit(world.propose(job, nodes)) is None
    return job, {each.node: each.id for each in world.job(job).allocations}


async def test_jobs_other_jobs_and_the_system_add_up_to_the_node(world: World, book: EnergyBook) -> None:
    job, mine = placed(world, "a", "b")
    _, other = placed(world, "a", "c", name="other", tenant="blue")
    await tell(world, book, "a", 100, **{mine["a"]: 30, other["a"]: 20})
    with world.uow.read() as tx:
        of_red = views.node_energy(tx, book, "a", ["red"])
        of_all = views.node_energy(tx, book, "a", None)
    assert of_red.energy == Energy(measured=100, watts=7)
    assert [(each.name, each.job, each.energy.joules) for each in of_red.jobs] == [("ring", job, 30)]
    assert (of_red.other_jobs.joules, of_red.system.joules, of_red.meter) == (20, 50, "rapl")
    assert sorted(each.energy.joules for each in of_all.jobs) == [20, 30]
    assert (of_all.other_jobs.joules, of_all.system.joules) == (0, 50)


@given(st.lists(st.integers(0, ROWS_AT_ONCE // 2) | st.just(ROWS_AT_ONCE + 1) | st.just(0), max_size=3 * AT_ONCE))
def test_no_transaction_has_many_rows(told: list[int]) -> None:
    names = {f"n{number}": {f"{number}a{each}" for each in range(count)} for number, count in enumerate(told)}
    made = list(batches(names, names.__getitem__))
    assert [node for each in made for node in each] == list(names)
    assert all(each[node] == names[node] for each in made for node in each)
    for each in made:
        assert len(each) <= AT_ONCE
        assert len(each) == 1 or sum(map(len, each.values())) <= ROWS_AT_ONCE


async def test_allocations_of_many_nodes_are_asked_for_at_once(world: World, book: EnergyBook) -> None:
    _, mine = placed(world, "a", "b", "c")
    for node, allocation in mine.items():
        report = EnergyReport(source="measured", meter="rapl", total=9, allocations={allocation: 5})
        book.heard(Heartbeat(node=node, boot="b", energy=report))
    asked = list[str]()

    def hears(connection: object, cursor: object, statement: str, *rest: object) -> None:
        asked.extend([statement] if "FROM allocations" in statement else [])

    event.listen(Engine, "before_cursor_execute", hears)
    try:
        await write(world, book)
    finally:
        event.remove(Engine, "before_cursor_execute", hears)
    assert len(asked) == 1


async def test_two_agents_of_one_node_are_not_counted_again_and_again(world: World, book: EnergyBook) -> None:
    for joules in range(100, 105):
        await tell(world, book, "a", joules, boot="b")
        await tell(world, book, "a", joules, boot="c")
    with world.uow.read() as tx:
        assert views.energy_of_nodes(tx, book)["a"].joules == 100 + 104


async def test_a_job_has_used_what_its_tasks_did_wherever_that_was(world: World, book: EnergyBook) -> None:
    job, where = placed(world, "a", "b")
    await tell(world, book, "a", 100, **{where["a"]: 30})
    await tell(world, book, "b", 50, source="modelled", **{where["b"]: 10})
    with world.uow.read() as tx:
        known = views.job_energy(tx, job)
        view = job_view(tx, job, Measurements())
    assert known.energy == Energy(measured=30, modelled=10) == view.energy
    assert [(each.node, each.energy) for each in known.tasks] == [
        ("a", Energy(measured=30)),
        ("b", Energy(modelled=10)),
    ]
    assert known.unknown == 0


async def test_what_is_not_told_is_unknown_and_not_nothing(world: World, book: EnergyBook) -> None:
    job, where = placed(world, "a", "b")
    world.network(job)
    world.tell(job, "running")
    await tell(world, book, "a", 100, **{where["a"]: 30})
    with world.uow.read() as tx:
        known = views.job_energy(tx, job)
        page = views.list_energy(tx, book, cursor=None, limit=2)
        assert views.node_energy(tx, book, "b", None).energy is None
        assert node_view(tx, "b", Measurements()).energy is None
        assert node_view(tx, "a", Measurements()).energy == Energy(measured=100)
        with pytest.raises(NotFound):
            views.node_energy(tx, book, "nobody", None)
    assert (known.unknown, known.energy.joules) == (1, 30)
    assert [(each.node, each.energy and each.energy.joules) for each in page.items] == [("a", 100), ("b", None)]
    assert page.next == "b"


async def test_allocations_of_other_nodes_and_such_as_are_none_get_nothing(world: World, book: EnergyBook) -> None:
    job, where = placed(world, "a", "b")
    await tell(world, book, "a", 100, **{where["b"]: 30, "nobody": 20, "zero\0": 10})
    with world.uow.read() as tx:
        assert views.energy_of_job(tx, job) is None
        view = views.node_energy(tx, book, "a", None)
    assert (view.other_jobs.joules, view.system.joules) == (0, 100)


async def test_another_manager_goes_on_where_the_first_was(world: World, book: EnergyBook) -> None:
    _, where = placed(world, "a", "b")
    await tell(world, book, "a", 100, **{where["a"]: 30})
    second = EnergyBook()
    await tell(world, second, "a", 130, **{where["a"]: 40})
    await tell(world, book, "a", 5, boot="c", **{where["a"]: 5})
    await tell(world, second, "a", 7, boot="c", **{where["a"]: 6})
    with world.uow.read() as tx:
        view = views.node_energy(tx, book, "a", None)
    assert (view.energy and view.energy.joules, view.jobs[0].energy.joules) == (137, 46)


async def test_a_job_that_is_kept_no_more_stays_in_its_nodes_sum(world: World, book: EnergyBook) -> None:
    job, where = placed(world, "a", "b")
    await tell(world, book, "a", 100, **{where["a"]: 30})
    world.cancel(job)
    world.confirm(job)
    world.wait(timedelta(days=31).total_seconds())
    assert world.prune() > 0
    with world.uow.read() as tx:
        view = views.node_energy(tx, book, "a", None)
    assert (view.jobs, view.other_jobs.joules, view.system.joules) == ([], 30, 70)


async def test_what_a_silent_node_uses_now_is_not_known(world: World, book: EnergyBook) -> None:
    await tell(world, book, "a", 100)
    world.wait(60)
    world.look()
    world.expire()
    with world.uow.read() as tx:
        assert views.node_energy(tx, book, "a", None).energy == Energy(measured=100)
        assert views.energy_of_nodes(tx, book) == {"a": Energy(measured=100)}


async def test_nodes_that_never_joined_or_are_gone_leave_nothing(world: World, book: EnergyBook) -> None:
    await tell(world, book, "stranger", 100)
    await tell(world, book, "a", 100)
    world.wait(60)
    world.look()
    world.expire()
    world.forget("a")
    with world.uow.read() as tx:
        assert views.energy_of_nodes(tx, book) == {}
