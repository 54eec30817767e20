"""What pools keep, and what comes out of them."""

from __future__ import annotations

import numpy as np
import pytest

from ces_rl.algorithms.pools import Pool, Steps, together

pytestmark = pytest.mark.needs("torch")


def steps(*numbers: int) -> Steps:
    """Steps that can be told apart by any of their parts."""
    column = np.array(numbers, np.float32)
    wide = np.repeat(column[:, None], 3, axis=1)
    return Steps((wide, column + 0.5), wide > 0, wide + 1, column, (wide + 2, column + 2.5), wide > 1, column * 0)


def test_the_newest_replaces_the_oldest() -> None:
    pool = Pool(4)
    for number in range(6):
        pool.add(steps(number))
    assert pool.filled == 4
    assert set(pool.draw(np.random.default_rng(0), 200).reward.tolist()) == {2.0, 3.0, 4.0, 5.0}


def test_all_parts_of_a_step_stay_together() -> None:
    pool = Pool(10)
    pool.add(steps(*range(7)))
    found = pool.draw(np.random.default_rng(1), 50)
    same = steps(*(int(number) for number in found.reward))
    for part, other in zip(found[1:4], same[1:4], strict=True):
        assert (part == other).all()
    for part, other in zip((*found.observation, *found.later), (*same.observation, *same.later), strict=True):
        assert (part == other).all()
    assert (found.later_mask == same.later_mask).all()


def test_a_pool_goes_on_where_it_was_left() -> None:
    pool, other = Pool(4), Pool(4)
    for number in range(6):
        pool.add(steps(number))
    other.restore(pool.state())
    for each in (pool, other):
        each.add(steps(9))
    first, again = (each.draw(np.random.default_rng(2), 20) for each in (pool, other))
    assert first.reward.tolist() == again.reward.tolist()
    empty = Pool(3)
    empty.restore(Pool(3).state())
    assert empty.filled == 0


def test_two_pools_make_one_batch() -> None:
    found = together([steps(1, 2), steps(7)])
    assert found.reward.tolist() == [1.0, 2.0, 7.0]
    assert [tuple(part.shape) for part in found.observation] == [(3, 3), (3,)]
