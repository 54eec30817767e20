"""What warming up promises: no later decision compiles anything, whatever the job and the network look like."""

import sys
from typing import Any

import pytest
from core_instances import instances
from hypothesis import given, settings

from ces_core.compiled.jit import COMPILED
from ces_core.learned.start.greedy import GreedyConstruction
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Link, Node
from ces_core.model.problem import Cluster
from ces_core.network.cache import paths_of
from ces_core.registry import DEFAULT, get_solver
from ces_core.warm_up import warm_up

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled without numba")
SOLVER = get_solver(DEFAULT)
WITHIN_S = 0.02


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm_up(SOLVER)


def variants() -> dict[str, int]:
    """How often each function has been compiled for callers outside compiled code."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if name.startswith("ces_core.")]
    functions = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {f"{each.py_func.__module__}.{each.py_func.__name__}": len(each.signatures) for each in functions}


def test_the_learned_constructions_are_compiled_however_fast_the_first_decision_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned: list[float | None] = []
    plan = GreedyConstruction.plan

    def recorded(construction: GreedyConstruction, skip: int) -> float | None:
        planned.append(plan(construction, skip))
        return planned[-1]

    monkeypatch.setattr(GreedyConstruction, "plan", recorded)
    warm_up(SOLVER)  # the second time, so nothing is slow any more
    assert any(score is not None for score in planned)


def solve(instance: dict[str, Any], seed: int = 0) -> None:
    SOLVER.solve(read_instance(instance), seed=seed, time_limit_s=WITHIN_S)


@settings(max_examples=50, deadline=None)
@given(instances())
def test_odd_problems_compile_nothing_more(instance: dict[str, Any]) -> None:
    before = variants()
    solve(instance)
    assert variants() == before


@pytest.mark.parametrize("regime", list(REGIMES))
def test_networks_of_all_sizes_compile_nothing_more(regime: str) -> None:
    before = variants()
    for nodes in (1, 2, 5, 20, 150):
        for seed in range(3):
            solve(random_instance(regime, seed, nodes=nodes), seed)
    assert variants() == before


def test_a_changed_network_compiles_nothing_more() -> None:
    nodes = [Node(name, 4, 4) for name in "abcde"]
    links = [Link(a, b, 4.0) for a, b in ("ab", "bc", "cd", "de", "ea")]
    before = variants()
    for count in (5, 4, 3):
        paths_of(Cluster.make(nodes, links[:count]).topology).hops_to(0)
    assert variants() == before
