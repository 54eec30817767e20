"""What an adjustment is, and what is certain about those that were not chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ces_core.adjustment.running import BrokenLimit
from ces_core.model.plan import Plan

Step = Literal["rates", "paths", "cpu", "moves"]


@dataclass(frozen=True)
class Move:
    """A task that changes its node. ``seconds``: for which it does not answer; ``requests``: that come meanwhile."""

    task: str
    src: str
    dst: str
    seconds: float
    requests: float


@dataclass(frozen=True)
class Adjustment:
    """``step``: the last kind of change that it needs. ``plan``: all of the job afterwards. ``cpu``: task -> its new
    amount. ``objective``: of the plan; ``cost``: of its moves, in the same units over the remaining time; ``later``:
    what it is worth in what may come, in these units."""

    step: Step
    plan: Plan
    objective: float
    moves: tuple[Move, ...] = ()
    cpu: Mapping[str, float] = field(default_factory=dict)
    cost: float = 0.0
    later: float = 0.0

    @property
    def worth(self) -> float:
        """Now and later, its moves paid."""
        return self.objective + self.later - self.cost

    @property
    def disturbance(self) -> float:
        """Requests that fall into its moves."""
        return sum(move.requests for move in self.moves)


@dataclass(frozen=True)
class Certificate:
    """No plan that is at most ``moves`` moves away, with CPU as it is, is worth more than ``most`` when its moves are
    paid; minus infinity: there is none within all limits and the budget. ``asked``: the number of moves that was asked
    for; ``moves`` is less where that is not proven, and -1 where nothing is."""

    asked: int
    moves: int
    most: float

    @property
    def proven(self) -> bool:
        return self.moves == self.asked

    def text(self, now: float | None) -> str:
        """``now``: what the running plan is worth; None where it breaks a limit."""
        if self.moves < 0:
            return "Not proven: there are more paths than were examined."
        what = f"No adjustment with at most {_moves(self.moves)}"
        if self.most == -math.inf:
            said = f"{what} ends what is broken."
        elif now is None:
            said = f"{what} is worth more than {self.most:.6f}, the moves paid."
        else:
            said = f"{what} gains more than {max(0.0, self.most - now):.6f}, the moves paid."
        return said if self.proven else f"{said} With {_moves(self.asked)} that is not proven."


@dataclass(frozen=True)
class Decision:
    """``broken``: the limits that the running plan breaks. ``now``: its objective; None where a limit is broken.
    ``adjustment``: None where it had better stay as it is. ``later``: what the running plan is worth in what may
    come."""

    broken: tuple[BrokenLimit, ...]
    now: float | None
    adjustment: Adjustment | None
    certificate: Certificate
    later: float = 0.0

    @property
    def worth(self) -> float | None:
        """Of the running plan, now and later; None where it breaks a limit."""
        return None if self.now is None else self.now + self.later

    @property
    def gain(self) -> float | None:
        """Of what the job is worth, the moves paid; None where there is no adjustment, or it ends a broken limit."""
        return None if self.adjustment is None or self.worth is None else self.adjustment.worth - self.worth

    def to_dict(self) -> dict[str, Any]:
        """As ``ces adjust -o json`` prints it."""
        proof, found = self.certificate, self.adjustment
        told: dict[str, Any] = {
            "broken": [{"code": each.code, "message": each.text} for each in self.broken],
            "objective": self.now,
            "gain": self.gain,
            "certificate": {
                "text": proof.text(self.worth),
                "proven": proof.proven,
                "moves": proof.moves,
                "most": None if proof.most == -math.inf else proof.most,
            },
            "adjustment": None,
        }
        if found is None:
            return told
        flows = [flow.to_dict() for flow in found.plan.flows]
        return told | {
            "adjustment": {
                "step": found.step,
                "moves": [dict(vars(move)) for move in found.moves],
                "cpu": dict(found.cpu),
                "objective": found.objective,
                "cost": found.cost,
                "disturbance": found.disturbance,
                "assignments": dict(found.plan.assignments),
                "flows": flows,
            }
        }


def _moves(count: int) -> str:
    return "1 move" if count == 1 else f"{count} moves"
