"""In words, for which share of the time something is there."""

from __future__ import annotations

from ces_common.messages.availability import Availability


def availability_text(known: Availability | None) -> str:
    """``at least 99.21 % (95 % sure), mean 99.87 %, n = 1440 minutes``."""
    if known is None:
        return "nothing learned yet"
    return f"at least {_percent(known.least)} (95 % sure), mean {_percent(known.mean)}, n = {known.n} minutes"


def _percent(share: float) -> str:
    """Rounded down, for 100 % is promised of nothing."""
    return f"{int(share * 1e5) / 1e3:g} %"
