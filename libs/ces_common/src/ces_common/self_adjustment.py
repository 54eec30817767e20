"""What an application file says of being changed while it runs, without being asked."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from ces_common.application import Aimed, has_goals
from ces_common.fields import Document
from ces_common.quantities import Duration

USUAL_COOLDOWN_S: Final = 60
LONGEST_COOLDOWN_S: Final = 3600
SMALLEST_GAIN: Final = 1e-6
"""Below it a gain could be rounding, as in ``ces_core.adjustment.terms``."""
Requests = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class SelfAdjustment(Document):
    """``budget``: requests an hour that may fall into moves; None: any number. ``reserve``: of these, what only a
    broken limit may use. ``cooldown``: seconds after a move in which only a broken limit justifies another.
    ``least_gain``: of the objective, the moves paid."""

    budget: Requests | None = None
    reserve: Requests = 0.0
    cooldown: Annotated[Duration, Field(ge=0, le=LONGEST_COOLDOWN_S)] = USUAL_COOLDOWN_S
    least_gain: Annotated[float, Field(ge=SMALLEST_GAIN, le=1.0)] = 0.001

    @model_validator(mode="after")
    def _part_of_budget(self) -> Self:
        if self.reserve and self.budget is None:
            raise ValueError("reserve: give a budget as well, of which it is a part, or leave it out")
        if self.budget is not None and self.reserve > self.budget:
            raise ValueError(f"reserve: is a part of the budget, so at most {self.budget:g}")
        return self

    def check_fits(self, job: Aimed, scope: str) -> None:
        """Raises ValueError, naming field and remedy, where the job cannot be changed. ``scope``: what begins again
        when one of its tasks ends."""
        if not has_goals(job):
            raise ValueError(
                "adjust: give requests as well, or an objective other than half balance and half bandwidth, for which "
                "the job is to be changed"
            )
        if scope != "task":
            raise ValueError(
                "adjust: give restart: {scope: task} as well, so that one task can move while others run on"
            )
