"""The processor's energy counters, as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_files import Powercap

from ces_edge_agent.energy.rapl import MOST_WATTS, Rapl, advanced, counters

SPAN = 262_143_328_850


@given(st.lists(st.integers(0, SPAN), min_size=1), st.integers(0, SPAN - 1))
def test_what_is_added_up_from_a_counter_that_goes_round_is_what_it_counted(steps: list[int], begin: int) -> None:
    counted, told, before = begin, 0, begin % SPAN
    for step in steps:
        counted += min(step, SPAN - 1)
        told += advanced(before, counted % SPAN, SPAN)
        before = counted % SPAN
    assert told == counted - begin


def test_parts_and_wholes_do_not_count_again(tmp_path: Path) -> None:
    powercap = Powercap(tmp_path, packages=2)
    powercap.domain("intel-rapl:2", "psys", 0)  # the whole platform, packages and all
    powercap.domain("intel-rapl-mmio:0", "package-0", 0)  # the same package, seen another way
    assert [folder.name for folder in counters(tmp_path)] == ["intel-rapl:0", "intel-rapl:1"]
    assert counters(tmp_path / "none") == []


def test_memory_counts_beside_its_package(tmp_path: Path) -> None:
    """It lies below the package, and the kernel shows it beside it as well."""
    powercap = Powercap(tmp_path)
    for folder in ("intel-rapl:0/intel-rapl:0:0", "intel-rapl:0:0"):
        powercap.domain(folder, "core", 0)
    for folder in ("intel-rapl:0/intel-rapl:0:1", "intel-rapl:0:1"):
        powercap.domain(folder, "dram", 0)
    rapl = Rapl(counters(tmp_path))
    rapl.used(0.0, 0.0)
    powercap.counts(5_000_000)
    for folder in ("intel-rapl:0/intel-rapl:0:1", "intel-rapl:0:1"):
        powercap.domain(folder, "dram", 2_000_000)
    assert rapl.used(2.0, 0.0) == 7_000_000


def test_packages_add_up_also_where_one_goes_round(tmp_path: Path) -> None:
    powercap = Powercap(tmp_path, packages=2)
    rapl = Rapl(counters(tmp_path))
    powercap.counts(SPAN - 1_000_000, 5_000_000)
    assert rapl.used(0.0, 0.0) is None
    powercap.counts(SPAN + 2_000_000, 9_000_000)
    assert rapl.used(2.0, 0.5) == 3_000_000 + 4_000_000


def test_a_counter_that_begins_anew_tells_nothing(tmp_path: Path) -> None:
    """As when its driver is loaded again: taken for one that went round, it would tell of a quarter of a megajoule."""
    powercap = Powercap(tmp_path)
    rapl = Rapl(counters(tmp_path))
    powercap.counts(200_000_000_000)
    rapl.used(0.0, 0.0)
    powercap.counts(0)
    assert rapl.used(2.0, 0.0) is None
    powercap.counts(30_000_000)
    assert rapl.used(2.0, 0.0) == 30_000_000


def test_a_range_that_shrinks_takes_nothing_back(tmp_path: Path) -> None:
    powercap = Powercap(tmp_path)
    rapl = Rapl(counters(tmp_path))
    powercap.counts(200_000_000_000)
    rapl.used(0.0, 0.0)
    powercap.span = 100_000_000_000
    powercap.domain("intel-rapl:0", "package-0", 1_000_000)
    assert rapl.used(2.0, 0.0) is None


def test_a_gap_in_which_it_may_have_gone_round_twice_tells_nothing(tmp_path: Path) -> None:
    powercap = Powercap(tmp_path)
    rapl = Rapl(counters(tmp_path))
    rapl.used(0.0, 0.0)
    powercap.counts(5_000_000)
    assert rapl.used(SPAN / 1e6 / MOST_WATTS + 1, 0.0) is None


def test_counters_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    powercap = Powercap(tmp_path)
    rapl = Rapl(counters(tmp_path))
    assert rapl.unreadable() is None
    rapl.used(0.0, 0.0)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert "energy_uj" in (rapl.unreadable() or "")
    assert rapl.used(2.0, 0.0) is None
    powercap.counts(7_000_000)
    assert rapl.used(2.0, 0.0) is None, "what was used before cannot be told from what was not seen"
    powercap.counts(8_000_000)
    assert rapl.used(2.0, 0.0) == 1_000_000


@pytest.mark.parametrize("content", ["", "x", "1.5"])
def test_nonsense_is_no_reading(tmp_path: Path, content: str) -> None:
    Powercap(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text(content)
    assert Rapl(counters(tmp_path)).used(1.0, 0.0) is None
