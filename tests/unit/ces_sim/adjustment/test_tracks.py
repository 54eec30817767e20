"""Users among cells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_sim.adjustment.tracks import Grid, cells_of_track

GRID = Grid(3, 2, 1000.0)


def test_neighbours_lie_side_by_side() -> None:
    assert GRID.neighbours() == [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), speed=st.sampled_from([1.0, 10.0]))
def test_a_user_crosses_from_cell_to_cell_without_leaving_one_out(seed: int, speed: float) -> None:
    cells = cells_of_track(GRID, np.random.default_rng(seed), 2000, 10.0, speed)
    assert len(cells) == 2000
    for here, there in pairwise(cells):
        assert abs(here % GRID.columns - there % GRID.columns) <= 1
        assert abs(here // GRID.columns - there // GRID.columns) <= 1


def test_ten_times_the_speed_changes_cells_about_ten_times_as_often() -> None:
    def changes(speed: float) -> int:
        cells = cells_of_track(GRID, np.random.default_rng(3), 8640, 10.0, speed)
        return sum(a != b for a, b in pairwise(cells))

    assert 5 * changes(1.0) < changes(10.0) < 20 * changes(1.0)
