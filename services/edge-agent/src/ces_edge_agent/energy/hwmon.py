"""Energy of a board with a power sensor (INA219, INA226, INA3221 and their like), by what Linux shows below
/sys/class/hwmon: microwatts, or milliamperes and millivolts. https://docs.kernel.org/hwmon/sysfs-interface.html"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from ces_common.messages.energy import MOST_WATTS, Source

log = structlog.get_logger()
HWMON: Final = "/sys/class/hwmon"
CHANNELS: Final = 8
CHIPS: Final = "ina"
WHOLE: Final = ("VDD_IN", "POM_5V_IN")
"""Labels of what feeds the whole board, where a chip measures its parts besides (Jetson)."""


@dataclass(frozen=True)
class Channel:
    """``files``: one with microwatts, or one with milliamperes and one with millivolts."""

    label: str
    files: tuple[Path, ...]

    def watts(self) -> float:
        """Raises OSError, ValueError."""
        watts = 1e-6  # of microwatts, as of milliamperes times millivolts
        for file in self.files:
            watts *= int(file.read_text())
        return watts


class Board:
    """Between two looks, power is taken to have changed evenly."""

    name: str = "hwmon"
    source: Source = "measured"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._before: float | None = None

    def used(self, elapsed_s: float, utilisation: float) -> int | None:
        """See ``Meter``."""
        try:
            now: float | None = self._channel.watts()
        except (OSError, ValueError):
            now = None
        if now is not None and not 0 <= now <= MOST_WATTS:
            now = None
        before, self._before = self._before, now
        return None if before is None or now is None else round((before + now) / 2 * elapsed_s * 1e6)


def board_sensor(root: Path) -> Board | None:
    """The sensor that measures all of the board; None where there is none, or nothing says which of several does."""
    channels = [channel for chip in sorted(root.glob("hwmon*")) for channel in _channels(chip)]
    whole = [channel for channel in channels if channel.label in WHOLE] or channels
    if len(whole) > 1:
        log.warning("several power sensors, and none says that it measures the whole board: none is used")
    return Board(whole[0]) if len(whole) == 1 else None


def _channels(chip: Path) -> Iterator[Channel]:
    """Those that can be read."""
    if not (_text(chip / "name") or "").startswith(CHIPS):
        return
    for number in range(1, CHANNELS + 1):
        label = _text(chip / f"power{number}_label") or _text(chip / f"in{number}_label") or ""
        for files in (
            (chip / f"power{number}_input",),
            (chip / f"curr{number}_input", chip / f"in{number}_input"),
        ):
            channel = Channel(label, files)
            try:
                channel.watts()
            except (OSError, ValueError):
                continue
            yield channel
            break


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
