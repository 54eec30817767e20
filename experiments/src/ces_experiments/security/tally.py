"""What an attack tried, and what came of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REFUSED = ("refused", "refused by a service", "complained of", "thrown out")
ANSWERED = ("answered", "heard by nobody")


@dataclass
class Tally:
    """``refused``: told that it may not, or cut off. ``answered``: told something that it asked for. What is neither
    was ignored."""

    tries: int = 0
    refused: int = 0
    answered: int = 0

    @property
    def ignored(self) -> int:
        return max(0, self.tries - self.refused - self.answered)

    def add(self, other: Tally) -> None:
        self.tries += other.tries
        self.refused += other.refused
        self.answered += other.answered

    def as_row(self) -> dict[str, int]:
        return {"tries": self.tries, "refused": self.refused, "ignored": self.ignored, "answered": self.answered}


def of_the_broker(tries: int, before: Mapping[str, int], after: Mapping[str, int]) -> Tally:
    """From what a connection had seen before and has seen after."""
    refused, answered = (
        sum(after.get(each, 0) - before.get(each, 0) for each in those) for those in (REFUSED, ANSWERED)
    )
    return Tally(tries, refused, answered)


@dataclass
class Tallies:
    """By attack, over all rounds. ``wrong``: answers that should not have been."""

    of: dict[str, Tally] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, attack: str, tally: Tally) -> None:
        self.of.setdefault(attack, Tally()).add(tally)

    def rows(self) -> list[dict[str, Any]]:
        return [{"attack": attack, **tally.as_row()} for attack, tally in self.of.items()]
