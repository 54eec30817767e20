"""Energy of the processor's packages and their memory, by the counters that Linux shows below /sys/class/powercap
(RAPL: running average power limit). They count microjoules, and begin again at zero beyond ``max_energy_range_uj``.
https://docs.kernel.org/power/powercap/powercap.html"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ces_common.messages.energy import Source

POWERCAP: Final = "/sys/class/powercap"
MOST_WATTS: Final = 1_000
"""Of one counter. One that tells of more has not counted on, but begun anew."""


def counters(root: Path) -> list[Path]:
    """The folders of the counters that add up: the packages', and that of each one's memory (``dram``), which lies
    below it but is not contained in it. Its other parts are, the whole platform contains it, and the same packages
    seen another way (``intel-rapl-mmio``) would count twice."""
    found: dict[str, Path] = {}
    for folder in sorted(root.glob("intel-rapl:*")):
        if (name := _name(folder)).startswith("package"):
            found.setdefault(name, folder)
    memory = [part for each in found.values() for part in sorted(each.glob("intel-rapl:*")) if _name(part) == "dram"]
    return [*found.values(), *memory]


def _name(folder: Path) -> str:
    """Empty where the kernel does not tell."""
    try:
        return (folder / "name").read_text().strip()
    except OSError:
        return ""


def advanced(before: int, now: int, span: int) -> int:
    """By how much a counter has gone on that begins again at zero beyond ``span``, and did so once at most. Pure."""
    return now - before if now >= before else now + span - before


class Rapl:
    """``domains``: the folders of ``counters``."""

    name: str = "rapl"
    source: Source = "measured"

    def __init__(self, domains: Sequence[Path]) -> None:
        self._domains = domains
        self._before: list[tuple[int, int]] | None = None

    def unreadable(self) -> str | None:
        """Why the counters cannot be read; None where they can."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            return str(error)
        return None

    def used(self, elapsed_s: float, utilisation: float) -> int | None:
        """See ``Meter``. None also where a counter cannot be read, may have gone round twice, or has jumped."""
        try:
            now = self._read()
        except (OSError, ValueError):
            self._before = None
            return None
        before, self._before = self._before, now
        if before is None:
            return None
        most = MOST_WATTS * 1e6 * elapsed_s
        used = [advanced(early, late, span) for (early, _), (late, span) in zip(before, now, strict=True)]
        if any(not 0 <= each <= most for each in used) or any(most >= span for _, span in now):
            return None
        return sum(used)

    def _read(self) -> list[tuple[int, int]]:
        """Of each counter what it says, and beyond what it begins again."""
        return [
            (int((each / "energy_uj").read_text()), int((each / "max_energy_range_uj").read_text()))
            for each in self._domains
        ]
