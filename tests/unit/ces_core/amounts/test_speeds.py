"""How far tasks come in a slot, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ces_core.amounts.settings import SETTINGS
from ces_core.amounts.speeds import Speeds, advance, believed, fits, speeds
from ces_core.amounts.thrift import LONGEST, lengths

IMAGE, LANGUAGE = 0, 1


def test_an_image_task_takes_four_slots_with_any_amounts() -> None:
    table = speeds(SETTINGS["synthetic"])
    assert (table.steady[IMAGE, 2:, 1:] == 0.25).all()
    assert (lengths(table)[IMAGE, 2:, 1:] == 4).all()


def test_a_language_task_follows_the_hyperbolic_tangent_of_its_gpus_and_slows_down() -> None:
    table = speeds(SETTINGS["hetero_6"])
    steady, bending = table.steady[LANGUAGE, 2, 8], table.bending[LANGUAGE, 2, 8]
    assert advance(steady, bending, 0.0) == pytest.approx(math.tanh(0.5) * math.sqrt(1.2))
    assert advance(steady, bending, 0.5) == pytest.approx(math.tanh(0.5) * math.sqrt(0.7))
    # tanh(16/16) = 0.762: 0.834, then 0.461, is above 1. tanh(8/16) = 0.462: 0.506, 0.385, 0.257.
    ends = lengths(table)[LANGUAGE]
    assert (ends[2, 16], ends[2, 8], ends[16, 8]) == (2, 3, 3)


def test_below_the_least_amounts_nothing_progresses() -> None:
    table = speeds(SETTINGS["synthetic"])
    for array in table:
        assert not array[:, :2].any()
        assert not array[:, :, 0].any()
    assert lengths(table)[IMAGE, 1, 16] == LONGEST


def test_a_measured_task_adds_five_seconds_of_what_it_takes_with_its_start() -> None:
    setting = SETTINGS["testbed"]
    profiles = {kind: np.full((17, 17), 36.0) for kind in setting.kinds}
    profiles["lm"][2, 3] = 86.0
    table = speeds(setting, profiles)
    assert table.steady[0, 1, 1] == pytest.approx(5.0 / 50.0)
    assert table.steady[1, 2, 3] == pytest.approx(5.0 / 100.0)
    assert lengths(table)[1, 2, 3] == pytest.approx(20, abs=1)
    with pytest.raises(ValueError, match="needs the measured profile of audio"):
        speeds(setting, {kind: profiles[kind] for kind in ("mnist", "lm")})


def test_a_fit_finds_the_numbers_that_a_speed_was_made_of() -> None:
    truth = np.array([2.0, 0.5, 0.3, 0.05, 0.02])
    steady = np.zeros((1, 17, 17))
    for cpus in range(17):
        for gpus in range(17):
            steady[0, cpus, gpus] = believed(truth, cpus or 0.001, gpus or 0.001)
    table = Speeds(steady, np.zeros_like(steady))
    right, swapped = (fits(table, swapped=swapped)[0] for swapped in (False, True))
    np.testing.assert_allclose(right, truth, rtol=1e-3)
    # The swapped fit takes the speed of 2 CPUs and 8 GPUs for that of 8 CPUs and 2 GPUs.
    assert abs(believed(swapped, 8, 2) - believed(truth, 2, 8)) < abs(believed(swapped, 2, 8) - believed(truth, 2, 8))
