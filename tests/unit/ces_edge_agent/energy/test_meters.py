"""Which meter a machine has, and the model where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_files import Powercap

from ces_edge_agent.energy.meters import Model, found_meter


@pytest.mark.parametrize(("utilisation", "watts"), [(-1, 5), (0, 5), (0.5, 10), (1, 15), (7, 15)])
def test_two_points_are_a_line(utilisation: float, watts: float) -> None:
    assert Model([5, 15]).watts(utilisation) == watts


def test_a_curve_is_followed_from_point_to_point() -> None:
    model = Model([10, 20, 22, 23, 24, 25, 26, 27, 28, 29, 40])
    assert model.watts(0.1) == pytest.approx(20)
    assert model.watts(0.05) == pytest.approx(15)
    assert model.watts(0.95) == pytest.approx(34.5)
    assert model.watts(1.0) == 40


def test_a_model_begins_with_its_second_look() -> None:
    model = Model([5, 15])
    assert model.used(0.0, 0.3) is None
    assert model.used(2.0, 0.3) == 16_000_000


def test_counters_come_before_sensors_and_those_before_the_model(tmp_path: Path) -> None:
    powercap, hwmon = tmp_path / "powercap", tmp_path / "hwmon"
    assert found_meter(None, powercap, hwmon) is None, "nobody guesses"
    meter = found_meter([5, 15], powercap, hwmon)
    assert meter is not None
    assert (meter.name, meter.source) == ("model", "modelled")
    (hwmon / "hwmon0").mkdir(parents=True)
    (hwmon / "hwmon0" / "name").write_text("ina219\n")
    (hwmon / "hwmon0" / "power1_input").write_text("1\n")
    meter = found_meter([5, 15], powercap, hwmon)
    assert meter is not None
    assert (meter.name, meter.source) == ("hwmon", "measured")
    Powercap(powercap)
    meter = found_meter([5, 15], powercap, hwmon)
    assert meter is not None
    assert (meter.name, meter.source) == ("rapl", "measured")


def test_where_counters_may_not_be_read_the_model_tells(tmp_path: Path) -> None:
    Powercap(tmp_path, packages=2)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    meter = found_meter([5, 15], tmp_path, tmp_path / "none")
    assert meter is not None
    assert meter.source == "modelled"
