"""All algorithms as processes on loopback addresses: they learn the digits, stop, and say what went wrong."""

from __future__ import annotations

from typing import Any

import pytest
from training_gang import TOPOLOGY, assert_all_name_a_killed_one, started

each_algorithm = pytest.mark.parametrize("algorithm", sorted(TOPOLOGY.keys() - {"ring"}))
each_off_the_ring = pytest.mark.parametrize("algorithm", sorted(name for name in TOPOLOGY if TOPOLOGY[name] != "ring"))
SMALL = ("--hidden", "64")


@each_algorithm
@pytest.mark.timeout(90)
def test_five_workers_learn_the_digits_and_stop_at_the_accuracy(algorithm: str) -> None:
    with started(5, *SMALL, "--rounds", "200", "--until-accuracy", "0.9", algorithm=algorithm) as gang:
        results: list[dict[str, Any]] = []
        for rank in range(5):
            progress, result = gang.learned(rank)
            assert [entry["round"] for entry in progress] == list(range(1, len(progress) + 1))
            assert len(progress) < 200
            assert progress[-1]["bytes_sent"] > progress[0]["bytes_sent"] >= 0
            assert progress[-1]["bytes_received"] > progress[0]["bytes_received"] >= 0
            assert sum(entry["seconds_round"] for entry in progress) == pytest.approx(progress[-1]["seconds"], abs=0.1)
            results.append(result)
        assert {result["algorithm"] for result in results} == {algorithm}
        assert max(result["accuracy"] for result in results) >= 0.9
        assert min(result["accuracy"] for result in results) >= 0.85  # of those that stopped since a neighbour had
        if algorithm != "gossip":
            assert len({(result["digest"], result["rounds"], result["accuracy"]) for result in results}) == 1


@each_algorithm
@pytest.mark.timeout(90)
def test_a_killed_worker_ends_the_gang_and_all_name_it(algorithm: str) -> None:
    with started(5, *SMALL, "--rounds", "1000000", algorithm=algorithm) as gang:
        assert_all_name_a_killed_one(gang, 3)


@each_off_the_ring
@pytest.mark.timeout(90)
def test_flows_that_do_not_fit_are_exit_status_2_at_every_worker(algorithm: str) -> None:
    with started(5, *SMALL, topology="ring", algorithm=algorithm) as gang:
        for rank in range(5):
            status, lines, log = gang.outcome(rank)
            assert (status, lines) == (2, []), log
            assert "needs a flow from worker-" in log or "needs a tree" in log
            assert f"write `topology: {TOPOLOGY[algorithm]}` under `flows` in the job file" in log
            assert "Traceback" not in log
