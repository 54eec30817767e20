"""ElasticFlow: admission, minimum satisfactory shares, and the surplus to whom it saves most GPU-time.

Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning", ASPLOS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

from ces_core.malleable.admission import admit, earliest_end_s, shares_of
from ces_core.malleable.model import MalleableJob, by_deadline
from ces_core.malleable.policy import Decision, Moment
from ces_core.malleable.surplus import give_surplus


@dataclass(frozen=True)
class ElasticFlow:
    """``slot_s``: plans change at whole slots from now. ``admission``: refuse who would make anybody late."""

    slot_s: float
    admission: bool = True

    def __call__(self, moment: Moment) -> Decision:
        active, refused, out = list(moment.active), frozenset[str](), list[MalleableJob]()
        ground = moment.now_s, moment.capacity, self.slot_s, moment.booked
        if self.admission and moment.arrived:
            arrived = [each.job for each in moment.active if each.name in moment.arrived]
            _, out = admit(moment.under_way, arrived, *ground)
            refused = frozenset(job.name for job in out)
            active = [each for each in active if each.name not in refused]
        active = by_deadline(active)
        shares = shares_of(active, *ground)
        least = {name: plan.size for name, plan in shares.plans.items()}
        ends = {job.name: earliest_end_s(job, shares, moment.now_s, self.slot_s) for job in out}
        give_surplus(active, shares, self.slot_s)
        sizes = {name: plan.size for name, plan in shares.plans.items() if plan.size}
        changes = [plan.next_change_s for plan in shares.plans.values()]
        promises = {name: tuple(plan.pieces()) for name, plan in shares.plans.items()}
        ends |= {name: plan.done_s for name, plan in shares.plans.items()}
        until_s = min(changes, default=float("inf"))
        return Decision(sizes, refused, until_s, promises=promises, least=least, ends=ends)
