"""What a benchmark says of the machine that it ran on."""

from __future__ import annotations

from ces_experiments.common.machine import CoreTime, describe
from ces_experiments.common.results import provenance


def test_what_others_of_the_hypervisor_had_of_the_cores_is_a_share_of_all_time() -> None:
    assert CoreTime(30, 1500).stolen_since(CoreTime(10, 1000)) == 0.04
    assert CoreTime(10, 1000).stolen_since(CoreTime(10, 1000)) == 0.0, "no time has passed"
    before = CoreTime.now()
    sum(range(1_000_000))
    assert 0.0 <= CoreTime.now().stolen_since(before) <= 1.0


def test_figures_say_so_where_others_had_much() -> None:
    machine = describe()
    assert "hypervisor" not in provenance(machine)
    assert provenance(machine | {"stolen": 0.123}).endswith("others of the hypervisor had 12.3% of the cores.")
