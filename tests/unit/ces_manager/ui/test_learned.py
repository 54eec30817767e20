"""Energy and availability as the dashboard writes them: as `ces` does."""

from __future__ import annotations

from typing import Any

import pytest
from ui_modules import Modules

from ces_client.view.availability import availability_text
from ces_client.view.energy import energy_text
from ces_common.messages.availability import Availability
from ces_common.messages.energy import Energy

pytestmark = pytest.mark.needs("browser")

WRITTEN = """
const { availabilityText, energyText } = await load("parts/learned");
return [given.energies.map(energyText), given.known.map(availabilityText)];
"""
ENERGIES = [
    None,
    Energy(),
    Energy(watts=5),
    Energy(measured=850, watts=45.67),
    Energy(modelled=12_345),
    Energy(measured=3.6e6, modelled=5e10),
]
KNOWN = [None, Availability(least=0.992134, mean=0.99875, n=1440), Availability(least=0.05, mean=0.5, n=0)]


def dumped(each: Any) -> Any:
    return None if each is None else each.model_dump(mode="json")


def test_both_say_the_same(ui: Modules) -> None:
    energies, known = ui.run(WRITTEN, energies=list(map(dumped, ENERGIES)), known=list(map(dumped, KNOWN)))
    assert energies == [energy_text(each) for each in ENERGIES]
    assert known == [availability_text(each) for each in KNOWN]
