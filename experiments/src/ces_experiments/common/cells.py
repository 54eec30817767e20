"""The parts of an experiment that do not depend on each other: worked out by several processes, or by a gang's ranks.

What a gang keeps is pickled, as what its ranks tell each other: they trust each other, and the nodes they run on.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle  # nosec B403
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ces_rl.gang import Gang

Cell = TypeVar("Cell")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Sharing:
    """A gang, the first rank's ``folder`` for what is done, and what every rank calls after each round, in which each
    of them works out one cell, with the number of cells in it."""

    gang: Gang
    folder: Path
    done: Callable[[int], None]
    _asked: Iterator[int] = field(default_factory=itertools.count)

    def question(self, cells: Sequence[Any]) -> str:
        """The name of the next cells that the experiment asks for: all ranks ask for the same in the same order.
        Raises ValueError where they do not."""
        name = f"{next(self._asked)}-{hashlib.sha256(repr(list(cells)).encode()).hexdigest()[:12]}"
        if set(self.gang.gathered(name)) != {name}:
            raise ValueError("ranks measure different things: their nodes have different versions of CES or of solvers")
        return name


_SHARING: ContextVar[Sharing | None] = ContextVar("sharing", default=None)


@contextmanager
def shared(sharing: Sharing) -> Iterator[None]:
    """Within, cells are worked out by a gang all of whose ranks ask for the same ones."""
    token = _SHARING.set(sharing)
    try:
        yield
    finally:
        _SHARING.reset(token)


def each(function: Callable[[Cell], Found], cells: Sequence[Cell], processes: int = 1) -> Iterator[Found]:
    """The function's results, in the order of the cells, as soon as they are known."""
    sharing = _SHARING.get()
    if sharing is not None:
        yield from _by_gang(sharing, function, cells)
    elif processes == 1:
        yield from map(function, cells)
    else:
        with ProcessPoolExecutor(processes) as pool:
            yield from pool.map(function, cells)


def _by_gang(sharing: Sharing, function: Callable[[Cell], Found], cells: Sequence[Cell]) -> Iterator[Found]:
    """A cell for every rank, and again, from where the last gang has stopped. What is done lies in a file for each
    round, since ranks may be more or fewer after the next start."""
    gang, name = sharing.gang, sharing.question(cells)
    kept: list[Found] = gang.of_first([] if gang.rank else _read(sharing.folder, name))
    if kept:
        sharing.done(len(kept))
    yield from kept
    for first in range(len(kept), len(cells), gang.size):
        found = gang.each(function, cells[first : first + gang.size])
        if not gang.rank:
            _write(sharing.folder / f"{name}-{first:06d}.pickle", found)
        sharing.done(len(found))
        yield from found


def _read(folder: Path, name: str) -> list[Any]:
    """What follows without a gap from the beginning."""
    kept: list[Any] = []
    while (file := folder / f"{name}-{len(kept):06d}.pickle").exists():
        kept += pickle.loads(file.read_bytes())  # noqa: S301  # nosec B301
    return kept


def _write(file: Path, found: object) -> None:
    """Directly in the folder, whose time of change tells that there is more to copy."""
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(found))
    part.replace(file)
