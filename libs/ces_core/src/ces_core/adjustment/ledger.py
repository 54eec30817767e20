"""What was moved of an application, and what that leaves of its budget: a value that callers keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

HOUR_S = 3600.0
DID_NOT_PAY = 2.0
"""How often a move counts that did not pay."""


@dataclass(frozen=True)
class PastMoves:
    """One adjustment that moved tasks. ``requests``: that fell into it. ``paid``: whether what it gained has made up
    for them; None: not known yet."""

    at_s: float
    requests: float
    paid: bool | None = None


@dataclass(frozen=True)
class Ledger:
    """The moves of one application, in order of time."""

    moves: tuple[PastMoves, ...] = ()

    def moved(self, at_s: float, requests: float) -> Ledger:
        """With one more, and without those of more than an hour before it."""
        kept = tuple(move for move in self.moves if move.at_s > at_s - HOUR_S)
        return Ledger((*kept, PastMoves(at_s, requests)))

    def judged(self, at_s: float, paid: bool) -> Ledger:
        """With the verdict on the moves of that time."""
        return Ledger(tuple(replace(move, paid=paid) if move.at_s == at_s else move for move in self.moves))

    def left(self, now_s: float, budget: float) -> float:
        """Of ``budget`` requests an hour; moves that did not pay count double."""
        last_hour = [move for move in self.moves if move.at_s > now_s - HOUR_S]
        spent = sum(move.requests * (DID_NOT_PAY if move.paid is False else 1.0) for move in last_hour)
        return max(0.0, budget - spent)

    def cooling(self, now_s: float, cooldown_s: float) -> bool:
        """Whether the last moves were less than ``cooldown_s`` ago."""
        return bool(self.moves) and now_s - self.moves[-1].at_s < cooldown_s
