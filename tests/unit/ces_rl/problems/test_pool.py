"""Problems packed into flat arrays."""

from __future__ import annotations

import numpy as np

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.view import problem_view
from ces_rl.problems.pool import pack, view_of


def test_packing_keeps_every_number() -> None:
    views = [problem_view(read_instance(random_instance("tight", seed, nodes=5 + seed))) for seed in range(8)]
    pool = pack(views)
    for i, view in enumerate(views):
        for name, value in view_of(pool, i)._asdict().items():
            np.testing.assert_array_equal(value, getattr(view, name), err_msg=name)
