"""Where a user is: random waypoints (Johnson and Maltz 1996) among the cells of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WALK_M_S = 1.4
PAUSE_S = 120.0
"""The longest pause at a waypoint, at walking speed."""
HANDOVER_M = 50.0
"""By so much another cell must be nearer before the user changes over to it."""


@dataclass(frozen=True)
class Grid:
    """Cells at the crossings of a grid, numbered row by row."""

    columns: int
    rows: int
    apart_m: float

    @property
    def cells(self) -> int:
        return self.columns * self.rows

    def neighbours(self) -> list[tuple[int, int]]:
        """Pairs of cells side by side."""
        across = [(n, n + 1) for n in range(self.cells) if (n + 1) % self.columns]
        return across + [(n, n + self.columns) for n in range(self.cells - self.columns)]

    def position(self, cell: int) -> tuple[float, float]:
        return self.apart_m * (cell % self.columns), self.apart_m * (cell // self.columns)


def cells_of_track(grid: Grid, rng: np.random.Generator, windows: int, window_s: float, speed: float) -> list[int]:
    """The user's cell in each window. ``speed``: times walking; pauses are shorter by as much."""
    places = np.array([grid.position(cell) for cell in range(grid.cells)])
    low, high = places.min(axis=0) - grid.apart_m / 2, places.max(axis=0) + grid.apart_m / 2
    at, target, pause_s = rng.uniform(low, high), rng.uniform(low, high), 0.0
    cell = int(np.argmin(np.linalg.norm(places - at, axis=1)))
    found = []
    for _ in range(windows):
        left_s = window_s
        while left_s > 0:
            waits = min(left_s, pause_s)
            pause_s, left_s = pause_s - waits, left_s - waits
            way = target - at
            far = float(np.linalg.norm(way))
            goes = min(far, left_s * WALK_M_S * speed)
            at = at + way * (goes / far if far > 0 else 0.0)
            left_s -= goes / (WALK_M_S * speed)
            if far - goes <= 1e-9:
                target, pause_s = rng.uniform(low, high), float(rng.uniform(0, PAUSE_S)) / speed
        distances = np.linalg.norm(places - at, axis=1)
        nearest = int(np.argmin(distances))
        if distances[nearest] < distances[cell] - HANDOVER_M:
            cell = nearest
        found.append(cell)
    return found
