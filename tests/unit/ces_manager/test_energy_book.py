"""What agents told of energy, until it is written down."""

from __future__ import annotations

from ces_common.messages.energy import MOST_WATTS, EnergyReport
from ces_common.messages.reports import Heartbeat
from ces_manager.energy_book import MOST_STARTS, EnergyBook


def beat(total: int, boot: str = "b", node: str = "n", watts: float = 5, **allocations: int) -> Heartbeat:
    report = EnergyReport(source="measured", total=total, watts=watts, allocations=allocations)
    return Heartbeat(node=node, boot=boot, energy=report)


def book(*beats: Heartbeat) -> EnergyBook:
    made = EnergyBook()
    for each in beats:
        made.heard(each)
    return made


def totals(made: EnergyBook, node: str = "n") -> list[tuple[str, int]]:
    return [(told.boot, told.report.total) for told in made.waiting().get(node, ())]


def test_the_last_of_each_start_waits() -> None:
    assert totals(book(beat(1), beat(2), beat(1, "c"), beat(3, "c"))) == [("b", 2), ("c", 3)]


def test_what_was_overtaken_is_left_out() -> None:
    assert totals(book(beat(5), beat(4), beat(1, "c"), beat(9, "b"))) == [("b", 5), ("c", 1)]


def test_a_node_that_tells_nothing_is_not_there() -> None:
    made = book(Heartbeat(node="n", boot="b"))
    assert (made.waiting(), made.watts("n")) == ({}, None)


def test_starts_are_bounded() -> None:
    made = book(*(beat(number, str(number)) for number in range(10)))
    assert totals(made) == [(str(number), number) for number in range(10 - MOST_STARTS, 10)]


def test_what_is_written_down_waits_no_more() -> None:
    made = book(beat(1, a=1), beat(1, "c", a=1, b=2))
    made.wrote("n", made.waiting()["n"])
    assert made.waiting() == {}
    made.heard(beat(3, "c", a=1, b=3))
    assert totals(made) == [("c", 3)]
    assert made.changed("n") == {"b"}


def test_a_start_that_others_came_after_is_over() -> None:
    made = book(beat(1), beat(1, "c"))
    made.wrote("n", made.waiting()["n"])
    made.heard(beat(2, "b"))
    assert made.waiting() == {}
    made.heard(beat(2, "c"))
    assert totals(made) == [("c", 2)]
    made.forget_node("n")
    made.heard(beat(3, "b"))
    assert totals(made) == [("b", 3)], "another device's may be called as it likes"


def test_what_comes_while_it_is_written_waits_for_the_next_time() -> None:
    made = book(beat(1, a=1))
    waiting = made.waiting()
    made.heard(beat(2, a=2))
    made.wrote("n", waiting["n"])
    assert totals(made) == [("b", 2)]
    assert made.changed("n") == {"a"}


def test_forgotten_nodes_do_not_come_back_by_what_was_being_written() -> None:
    made = book(beat(1), beat(1, node="m"))
    waiting = made.waiting()
    made.keep(["m"])
    made.wrote("n", waiting["n"])
    assert made.waiting().keys() == {"m"}


def test_nobody_tells_of_more_watts_than_there_are() -> None:
    assert book(beat(1, watts=1e20)).watts("n") == MOST_WATTS
