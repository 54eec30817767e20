"""Pollux: its model of an iteration, and sizes by the harmonic mean of speedups."""

from __future__ import annotations

import numpy as np
import pytest
from malleable_jobs import job, moment, running

from ces_core.malleable.model import SpeedProfile
from ces_core.malleable.peers.pollux import Pollux, fit, step_s


def test_an_iteration_by_hand() -> None:
    """8 s of computing by size, and 1 s of network within a node of 4 GPUs, half a second more for each beyond two; 3 s
    and one more each across nodes; nothing overlaps."""
    parameters = np.array([0.0, 8.0, 1.0, 0.5, 3.0, 1.0, 1.0])
    assert step_s(parameters, np.array([1.0, 2.0, 4.0, 8.0]), 4) == pytest.approx([8.0, 4 + 1, 2 + 2, 1 + 9])


def test_the_fit_is_near_what_was_measured() -> None:
    parameters = np.array([0.1, 8.0, 0.2, 0.05, 0.5, 0.02, 2.0])
    sizes = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    rates = {int(size): float(1 / step) for size, step in zip(sizes, step_s(parameters, sizes, 4), strict=True)}
    assert fit(SpeedProfile.of(rates), 4) == pytest.approx(rates, rel=0.05)


def test_everybody_runs_before_anybody_is_large() -> None:
    active = [running(job(f"j{i}", 100.0)) for i in range(4)]
    assert Pollux(4)(moment(*active)).sizes == {f"j{i}": 1 for i in range(4)}


def test_one_job_grows_as_far_as_it_helps() -> None:
    assert Pollux(4)(moment(running(job("a", 100.0, rates={1: 1.0, 2: 1.9, 4: 3.5})))).sizes == {"a": 4}


def test_who_has_two_gives_one_to_who_has_none() -> None:
    held, new = running(job("held", 100.0), 4, ran_s=9.0), running(job("new", 100.0))
    found = Pollux(4)(moment(held, new, now_s=9.0))
    assert found.sizes == {"held": 2, "new": 2}
    assert found.until_s == 69.0
