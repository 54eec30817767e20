"""Cells of an experiment: in order, by however many processes or ranks, each once even where a gang begins again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ces_experiments.common.cells import Sharing, each, shared
from ces_rl.gang import Gang

CELLS = list(range(7))
EXPECTED = [10 * cell for cell in CELLS]


def tenfold(cell: int) -> int:
    return 10 * cell


class First(Gang):
    """The first rank of three, whose others answer at once."""

    size = 3

    def gathered(self, mine: object) -> list[object]:
        return [mine] * 3

    def each(self, function: Any, items: Any) -> list[Any]:
        return [function(item) for item in items]


@pytest.mark.parametrize("processes", [1, 2])
def test_in_the_order_of_the_cells(processes: int) -> None:
    assert list(each(tenfold, CELLS, processes)) == EXPECTED


def test_alone_each_comes_when_it_is_asked_for() -> None:
    worked: list[int] = []
    cells = each(lambda cell: worked.append(cell), CELLS)
    next(cells)
    assert worked == [0]


def recording(worked: list[int]) -> Callable[[int], int]:
    def work(cell: int) -> int:
        worked.append(cell)
        return tenfold(cell)

    return work


def test_a_gang_that_begins_again_works_out_the_rest_alone(tmp_path: Path) -> None:
    """Whatever it was stopped after, with other ranks than before, and for each question that the experiment asks."""

    class StoppedError(Exception):
        pass

    def stop(more: int) -> None:
        raise StoppedError

    for gang, expected in ((First(), [0, 1, 2]), (Gang(), [3])):
        worked: list[int] = []
        with shared(Sharing(gang, tmp_path, stop if gang.size == 3 else lambda _: None)):
            answers = each(recording(worked), CELLS)
            if gang.size == 3:
                with pytest.raises(StoppedError):
                    next(answers)
            else:
                assert [next(answers) for _ in range(4)] == EXPECTED[:4]
        assert worked == expected
    worked, told = [], []
    with shared(Sharing(First(), tmp_path, told.append)):
        assert list(each(recording(worked), CELLS)) == EXPECTED
        assert list(each(recording(worked), CELLS[:2])) == EXPECTED[:2], "the next cells are others"
    assert worked == [4, 5, 6, 0, 1]
    assert told == [4, 3, 2]


def test_each_round_changes_the_folder_itself(tmp_path: Path) -> None:
    """By which an agent sees that there is more to copy to another node."""
    seen: list[list[str]] = []
    with shared(Sharing(First(), tmp_path, lambda _: seen.append([path.name for path in tmp_path.iterdir()]))):
        assert list(each(tenfold, CELLS)) == EXPECTED
    assert [len(names) for names in seen] == [1, 2, 3]


def test_ranks_that_ask_for_different_cells_are_refused(tmp_path: Path) -> None:
    class Mixed(First):
        def gathered(self, mine: object) -> list[object]:
            return [mine, mine, "another"]

    with shared(Sharing(Mixed(), tmp_path, lambda _: None)), pytest.raises(ValueError, match="different versions"):
        list(each(tenfold, CELLS))


def test_what_another_question_has_left_is_not_taken(tmp_path: Path) -> None:
    for cells in (CELLS, CELLS[::-1]):
        with shared(Sharing(First(), tmp_path, lambda _: None)):
            assert list(each(tenfold, cells)) == [10 * cell for cell in cells]
