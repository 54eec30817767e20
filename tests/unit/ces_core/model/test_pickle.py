"""Problems travel between processes: structure and numbers, without what was derived from them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from core_instances import topology_of

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance, write_instance
from ces_core.model.problem import Problem
from ces_core.network.cache import paths_for


@pytest.fixture
def problem() -> Problem:
    """A problem all of whose derived values have been asked for."""
    problem = read_instance(random_instance("tight", 3))
    cluster = problem.cluster
    assert paths_for(problem).between(0, 1) is not None
    assert cluster.topology.node_index
    assert cluster.topology.link_index
    assert problem.homes.any()
    assert cluster.node_free.any()
    assert cluster.bandwidth_free.any()
    return problem


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_problem_comes_back_as_it_was(problem: Problem, protocol: int) -> None:
    back: Problem = pickle.loads(pickle.dumps(problem, protocol))
    assert write_instance(back) == write_instance(problem)
    assert (back.basis, back.paths, back.tasks, back.flows) == (
        problem.basis,
        problem.paths,
        problem.tasks,
        problem.flows,
    )
    assert back.cluster.topology is problem.cluster.topology
    for name, value in vars(problem).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(getattr(back, name), value)
            assert getattr(back, name).flags.writeable == value.flags.writeable


def test_derived_values_stay_behind(problem: Problem) -> None:
    fresh = read_instance(write_instance(problem))
    assert len(pickle.dumps(problem)) <= len(pickle.dumps(fresh))
    back: Problem = pickle.loads(pickle.dumps(problem))
    assert "homes" not in vars(back)
    assert "node_free" not in vars(back.cluster)


def test_a_topology_with_a_predecessor_can_be_pickled() -> None:
    whole = topology_of("abc", [("a", "b", None), ("b", "c", None)])
    broken = topology_of("abc", [("a", "b", None)])
    assert broken.predecessor is not None
    assert broken.predecessor() is whole
    assert pickle.loads(pickle.dumps(broken)) is broken
    assert copy.deepcopy(broken) is broken


def test_another_process_can_load_a_problem(problem: Problem) -> None:
    code = (
        "import pickle, sys; problem = pickle.load(sys.stdin.buffer); topology = problem.cluster.topology;"
        "assert not topology.derived and not topology.link_src.flags.writeable;"
        "print(problem.name, len(topology.nodes))"
    )
    found = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(problem), capture_output=True, check=True)
    assert found.stdout.decode().split() == [problem.name, str(len(problem.cluster.topology.nodes))]
