"""What tells how much energy the machine uses, and the model for machines where nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, Protocol

import structlog

from ces_common.messages.energy import Source
from ces_edge_agent.energy.hwmon import HWMON, board_sensor
from ces_edge_agent.energy.rapl import POWERCAP, Rapl, counters

log = structlog.get_logger()
MICRO: Final = 1_000_000


class Meter(Protocol):
    """``name``: of what measures or models."""

    name: str
    source: Source

    def used(self, elapsed_s: float, utilisation: float) -> int | None:
        """Microjoules since the last call, ``elapsed_s`` seconds ago; None where that is not known, as at the first.
        ``utilisation``: share of the machine's CPU that was used meanwhile, 0 to 1."""


class Model:
    """``curve``: watts at equally spaced utilisations, of which the first is none and the last all; linear between."""

    name: str = "model"
    source: Source = "modelled"

    def __init__(self, curve: Sequence[float]) -> None:
        self._steps = list(pairwise(curve))
        self._begun = False

    def watts(self, utilisation: float) -> float:
        at = min(max(utilisation, 0.0), 1.0) * len(self._steps)
        step = min(int(at), len(self._steps) - 1)
        low, high = self._steps[step]
        return low + (high - low) * (at - step)

    def used(self, elapsed_s: float, utilisation: float) -> int | None:
        begun, self._begun = self._begun, True
        return round(self.watts(utilisation) * elapsed_s * MICRO) if begun else None


def found_meter(
    curve: Sequence[float] | None, powercap: Path = Path(POWERCAP), hwmon: Path = Path(HWMON)
) -> Meter | None:
    """The processor's own counters, else the board's sensor, else the model of ``curve``; None where there is none of
    them: then the node's energy is unknown, and nobody guesses."""
    domains = counters(powercap)
    if domains:
        rapl = Rapl(domains)
        if (why := rapl.unreadable()) is None:
            return rapl
        log.warning("the processor's energy counters cannot be read: an agent that is root can", error=why)
    if (sensor := board_sensor(hwmon)) is not None:
        return sensor
    return Model(curve) if curve else None
