"""Which of many things changed when, for those who do not want to look at all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

KEPT = 10_000


@dataclass(frozen=True)
class Mark:
    """A moment of one log."""

    of: object = field(default_factory=object, repr=False)
    count: int = 0


class ChangeLog:
    """The names of what changed, the latest last. More than ``kept`` names are not remembered."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self.begin()

    def begin(self) -> None:
        """Everything may have changed."""
        self.mark = Mark()
        self._forgotten = 0  # changes up to this count are not all known any more
        self._changed: OrderedDict[str, int] = OrderedDict()

    def note(self, names: Iterable[str]) -> None:
        """These have changed, all at once."""
        count = self.mark.count + 1
        for name in names:
            self._changed[name] = count
            self._changed.move_to_end(name)
            self.mark = Mark(self.mark.of, count)
        while len(self._changed) > self._kept:
            _, self._forgotten = self._changed.popitem(last=False)

    def since(self, mark: Mark) -> Sequence[str] | None:
        """What has changed since, the latest last; None where that may be everything."""
        if mark.of is not self.mark.of or mark.count < self._forgotten:
            return None
        found = list(takewhile(lambda name: self._changed[name] > mark.count, reversed(self._changed)))
        return found[::-1]
