"""What the scheduler answers beside its loop, from what is committed or from the question alone."""

from __future__ import annotations

from collections.abc import Callable

from ces_common.bus.port import RequestHandler
from ces_common.state_reader import StateReader
from ces_scheduler.adjustment_requests import adjusting
from ces_scheduler.cycle_run import Placing
from ces_scheduler.decomposition_requests import dividing
from ces_scheduler.live_policy import LivePolicy
from ces_scheduler.move_paths import moving
from ces_scheduler.offer import Offer
from ces_scheduler.policy_versions import telling
from ces_scheduler.split_problem import splitting


def handlers(
    reader: StateReader, offer: Callable[[], Offer | None], placing: Placing, live: LivePolicy | None
) -> dict[str, RequestHandler]:
    """By the name of the question. ``offer``: what is committed."""
    return {
        "split": splitting(placing),
        "policy": telling(live),
        "decompose": dividing(),
        "move": moving(reader, offer),
        "adjust": adjusting(reader, offer, placing.paths),
    }
