"""How far a malleable job is, and how fast at which size."""

from __future__ import annotations

from collections.abc import Mapping

from ces_common.elastic import Speed
from ces_common.messages.api import JobView

MOST_SIZES = 8  # of those measured that are shown: the ones measured last


def speed_facts(view: JobView, speed: Speed) -> list[tuple[str, str]]:
    """Names and values; nothing where nothing is known."""
    facts, measured = [], view.speeds
    if measured is not None:
        total = "" if speed.total is None else f" of {speed.total:,}"
        facts.append(("done", f"{measured.step:,}{total} {speed.unit}"))
        newest = sorted(measured.sizes, key=lambda size: measured.sizes[size].at)[-MOST_SIZES:]
        if newest:
            facts.append(("measured", _rates({size: measured.sizes[size].rate for size in newest}, speed.unit)))
    if view.predicted:
        facts.append(("expected", _rates(view.predicted, speed.unit)))
    return facts


def _rates(rates: Mapping[int, float], unit: str) -> str:
    """``3.6 steps/s with 1, 5.7 with 2``."""
    texts = [f"{rates[size]:.3g} with {size}" for size in sorted(rates)]
    texts[0] = texts[0].replace(" with", f" {unit}/s with")
    return ", ".join(texts)
