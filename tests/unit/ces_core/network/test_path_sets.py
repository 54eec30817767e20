"""Every solver takes the paths that the problem admits, and no others."""

from __future__ import annotations

import pytest

from ces_core.checker import check
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.registry import SOLVERS


@pytest.mark.parametrize("name", sorted(SOLVERS))
@pytest.mark.parametrize("paths", [1, 3])
def test_flows_take_paths_of_the_set(name: str, paths: int) -> None:
    for seed in range(3):
        instance = random_instance("scarce", seed, tasks=4)
        problem = read_instance(instance, paths=paths)
        answer = SOLVERS[name].solve(problem, time_limit_s=2.0).to_dict(paths=problem.path_set)
        assert answer["paths"] == f"{paths}-shortest"
        assert check(instance, answer, paths=paths) == []
