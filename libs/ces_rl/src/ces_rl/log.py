"""What a run measured, update by update: ``log.csv``, and TensorBoard's files where tensorboardX is installed."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Self

from ces_rl.envs.base import Scores

FILE, BOARD = "log.csv", "tensorboard"


def flat(scores: Scores) -> dict[str, float]:
    """``way/group/figure`` -> value."""
    return {
        f"{way}/{group}/{name}": value
        for way, groups in scores.items()
        for group, figures in groups.items()
        for name, value in figures.items()
    }


class Log:
    """The log of the run in ``folder``, which has done ``updates``; rows of later ones are dropped. ``before``: the
    scores before learning, which become row 0 of a new log."""

    def __init__(self, folder: Path, updates: int, before: Mapping[str, float]) -> None:
        self._file, self._before = folder / FILE, before
        self._rows: list[dict[str, Any]] = [{"updates": 0, "seconds": 0.0, **before}]
        if self._file.exists():
            with self._file.open(newline="") as stream:
                self._rows = [row for row in csv.DictReader(stream) if int(row["updates"]) <= updates]
        self._started = time.monotonic() - (float(self._rows[-1]["seconds"]) if self._rows else 0.0)
        self._stream: IO[str] | None = None
        self._writer: csv.DictWriter[str] | None = None
        self._board: Any = None
        self.about = f"log: {self._file}"
        if find_spec("tensorboardX"):
            from tensorboardX import SummaryWriter

            self._board = SummaryWriter(str(folder / BOARD))
            self.about += f", and for TensorBoard in {folder / BOARD}"
        else:
            self.about += " (none for TensorBoard: tensorboardX is not installed)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._board is not None:
            self._board.close()

    def row(self, updates: int, steps: int, measured: Mapping[str, float]) -> None:
        """Adds what the latest update measured."""
        if self._writer is None or self._stream is None:
            earlier = self._rows[0] if self._rows else {}
            names = list(dict.fromkeys(["updates", "seconds", *measured, *earlier, *self._before]))
            self._stream = self._file.open("w", newline="")
            self._writer = csv.DictWriter(self._stream, names, extrasaction="ignore")
            self._writer.writeheader()
            self._writer.writerows(self._rows)
        seconds = round(time.monotonic() - self._started, 3)
        self._writer.writerow({"updates": updates, "seconds": seconds, **measured})
        self._stream.flush()
        if self._board is not None:
            for name, value in measured.items():
                if math.isfinite(value):
                    self._board.add_scalar(name, value, steps)
