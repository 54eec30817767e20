"""What is counted of proposals, once their transaction is committed."""

from __future__ import annotations

from typing import Final, Literal

from prometheus_client import Counter

from ces_common.db.uow import WriteTx
from ces_manager.plans.feasibility import Misfit, Obstacle

Kind = Literal["plan", "revision", "preemption", "resize", "cpu"]
DECIDED: Final = Counter("ces_proposals_total", "What schedulers proposed, and what became of it", ["kind", "outcome"])
REJECTED: Final = Counter("ces_plans_rejected_total", "Plans rejected, by what stood in their way", ["reason"])
OTHER: Final = "other"
for _obstacle in Obstacle:  # all there from the first, or the first of each would be no increase
    REJECTED.labels(_obstacle)


def note_outcome(tx: WriteTx, kind: Kind, reason: str | None) -> None:
    """``reason``: why it was rejected; None where it was committed."""

    def observe() -> None:
        DECIDED.labels(kind, "committed" if reason is None else "rejected").inc()
        if kind == "plan" and reason is not None:
            REJECTED.labels(reason.obstacle if isinstance(reason, Misfit) else OTHER).inc()

    tx.note(observe)
