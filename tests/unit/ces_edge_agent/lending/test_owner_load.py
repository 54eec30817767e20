"""How much of the machine others use, as the kernel tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_files import Kernel

from ces_edge_agent.lending.owner_load import OwnerLoad


@pytest.fixture(params=[False, True], ids=["version 1", "version 2"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    return Kernel(tmp_path, unified=request.param)


def owner_load(kernel: Kernel, group: str = "") -> OwnerLoad:
    return OwnerLoad(group, proc=kernel.proc, roots=kernel.roots, own=lambda: kernel.own)


def test_all_but_the_workers_and_the_agent_itself_counts(kernel: Kernel) -> None:
    kernel.process("17", "ces-lent/n/a.1")
    kernel.used("ces-lent/n/a.1", 5)
    load = owner_load(kernel)
    assert load.look(100.0, [17]) is None
    kernel.passes(10, busy=14)
    kernel.used("ces-lent/n/a.1", 13)
    kernel.own = 1.0
    look = load.look(110.0, [17])
    assert look is not None
    assert (look.since, look.at, look.short_of_memory) == (100.0, 110.0, False)
    assert look.others == pytest.approx((14 - 8 - 1) / 20)


def test_a_worker_that_has_just_come_counts_from_its_start_and_one_that_has_gone_no_more(kernel: Kernel) -> None:
    load = owner_load(kernel)
    load.look(0.0, [])
    kernel.process("17", "ces-lent/n/a.1")
    kernel.used("ces-lent/n/a.1", 3)
    kernel.passes(10, busy=4)
    look = load.look(10.0, [17])
    assert look is not None
    assert look.others == pytest.approx(1 / 20)
    kernel.passes(10, busy=2)
    look = load.look(20.0, [])
    assert look is not None
    assert look.others == pytest.approx(2 / 20)


def test_of_an_owner_with_a_group_only_that_counts(kernel: Kernel) -> None:
    kernel.used("owner", 1)
    load = owner_load(kernel, "/owner")
    assert load.found
    load.look(0.0, [])
    kernel.passes(10, busy=20)
    kernel.used("owner", 6)
    look = load.look(10.0, [])
    assert look is not None
    assert look.others == pytest.approx(5 / 20)


def test_an_owner_whose_group_is_not_there_is_idle(kernel: Kernel) -> None:
    load = owner_load(kernel, "nobody")
    assert not load.found
    load.look(0.0, [])
    kernel.passes(10, busy=20)
    look = load.look(10.0, [])
    assert look is not None
    assert look.others == 0


@pytest.mark.parametrize(("available", "short"), [(4, True), (5, False)])
def test_memory_is_short_where_little_is_available(kernel: Kernel, available: int, short: bool) -> None:
    kernel.memory(available=available)
    load = owner_load(kernel)
    load.look(0.0, [])
    kernel.passes(1, busy=0)
    look = load.look(1.0, [])
    assert look is not None
    assert look.short_of_memory is short


def test_how_long_the_owners_programs_waited_for_a_cpu(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, unified=True)

    def waited(seconds: float) -> None:
        told = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={seconds * 1e6:.0f}\nfull avg10=0.00 total=0\n"
        (kernel.groups / "shop" / "cpu.pressure").write_text(told)

    kernel.used("shop", 5)
    waited(100)
    load = owner_load(kernel, "/shop")
    assert load.look(100.0, []) is None
    kernel.passes(10, busy=14)
    waited(103)
    look = load.look(110.0, [])
    assert look is not None
    assert look.stalled == pytest.approx(0.3)
    kernel.passes(10, busy=14)
    (kernel.groups / "shop" / "cpu.pressure").unlink()
    look = load.look(120.0, [])
    assert look is not None
    assert look.stalled == 0, "a kernel that does not tell keeps nobody from anything"
