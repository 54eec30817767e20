"""The hierarchy of parts."""

from __future__ import annotations

import numpy as np
from application_graphs import line, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.decomposition.graph import Limits, division
from ces_core.decomposition.merging import Hierarchy


@settings(max_examples=15, deadline=None)
@given(size=st.integers(2, 16), seed=st.integers(0, 999), archs=st.integers(0, 2), cpu=st.integers(1000, 4000))
def test_each_level_is_valid_and_made_of_the_one_below(size: int, seed: int, archs: int, cpu: int) -> None:
    asked = division(random_graph(size, seed, archs=archs), Limits(cpu=cpu))
    hierarchy = Hierarchy(asked)
    below = None
    for parts in range(size, hierarchy.fewest - 1, -1):
        level = hierarchy.at(parts)
        assert level is not None
        assert int(level.max()) + 1 == parts
        assert asked.broken(level) == []
        if below is not None:
            assert all(len(set(level[below == each].tolist())) == 1 for each in range(parts + 1))
        below = level
    assert hierarchy.at(hierarchy.fewest - 1) is None


def test_heavy_traffic_is_merged_first() -> None:
    level = Hierarchy(division(line([1.0, 9.0, 2.0]), Limits())).at(2)
    assert level is not None
    assert np.array_equal(level, [0, 1, 1, 1])


def test_it_goes_no_further_than_asked() -> None:
    assert Hierarchy(division(line([1.0] * 5), Limits()), least=3).fewest == 3
