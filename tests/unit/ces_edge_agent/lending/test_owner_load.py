"""How much of the machine others use, as the kernel tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_edge_agent.lending.owner_load import OwnerLoad

CPUS = 2


class Kernel:
    """A machine of two processors, by the files in which its kernel tells of it."""

    def __init__(self, folder: Path, *, unified: bool = False) -> None:
        self.proc, self.groups, self.unified = folder / "proc", folder / "cgroup", unified
        self.roots = {"unified": str(self.groups)} if unified else {"cpuacct": str(self.groups)}
        self._busy = self._now = 0.0
        self.own = 0.0
        self.memory(available=50)
        self.process("self", "system.slice/ces-agent.service")
        self.passes(0, busy=0)

    def passes(self, seconds: float, *, busy: float) -> None:
        """``busy``: seconds of CPU that were used meanwhile, by whomever."""
        self._now, self._busy = self._now + seconds, self._busy + busy
        idle = self._now * CPUS - self._busy
        ticks = [round(100 * each) for each in (self._busy / 2, 0, self._busy / 2, idle / 2, idle / 2, 0, 0, 0)]
        (self.proc / "stat").write_text(f"cpu  {' '.join(map(str, ticks))} 0 0\ncpu0 1 2 3\n")

    def process(self, pid: str, group: str) -> None:
        (self.proc / pid).mkdir(parents=True, exist_ok=True)
        line = f"0::/{group}" if self.unified else f"5:cpuacct,cpu:/{group}\n3:memory:/elsewhere\n0::/{group}"
        (self.proc / pid / "cgroup").write_text(f"{line}\n")

    def used(self, group: str, seconds: float) -> None:
        folder = self.groups / group
        folder.mkdir(parents=True, exist_ok=True)
        name, text = ("cpu.stat", f"usage_usec {seconds * 1e6:.0f}\n") if self.unified else (
            "cpuacct.usage", f"{seconds * 1e9:.0f}\n",
        )  # fmt: skip
        (folder / name).write_text(text)

    def memory(self, *, available: int) -> None:
        """``available``: percent."""
        self.proc.mkdir(parents=True, exist_ok=True)
        lines = {
            "MemTotal": 1000,
            "MemFree": 10,
            "MemAvailable": 10 * available,
            "Buffers": 0,
            "Cached": 0,
            "Active": 0,
        }
        (self.proc / "meminfo").write_text("".join(f"{name}: {value} kB\n" for name, value in lines.items()))

    def load(self, group: str = "") -> OwnerLoad:
        return OwnerLoad(group, proc=self.proc, roots=self.roots, own=lambda: self.own)


@pytest.fixture(params=[False, True], ids=["version 1", "version 2"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    return Kernel(tmp_path, unified=request.param)


def test_all_but_the_workers_and_the_agent_itself_counts(kernel: Kernel) -> None:
    kernel.process("17", "ces-lent/n/a.1")
    kernel.used("ces-lent/n/a.1", 5)
    load = kernel.load()
    assert load.look(100.0, [17]) is None
    kernel.passes(10, busy=14)
    kernel.used("ces-lent/n/a.1", 13)
    kernel.own = 1.0
    look = load.look(110.0, [17])
    assert look is not None
    assert (look.since, look.at, look.short_of_memory) == (100.0, 110.0, False)
    assert look.others == pytest.approx((14 - 8 - 1) / 20)


def test_a_worker_that_has_just_come_counts_from_its_start_and_one_that_has_gone_no_more(kernel: Kernel) -> None:
    load = kernel.load()
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
    load = kernel.load("/owner")
    assert load.found
    load.look(0.0, [])
    kernel.passes(10, busy=20)
    kernel.used("owner", 6)
    look = load.look(10.0, [])
    assert look is not None
    assert look.others == pytest.approx(5 / 20)


def test_an_owner_whose_group_is_not_there_is_idle(kernel: Kernel) -> None:
    load = kernel.load("nobody")
    assert not load.found
    load.look(0.0, [])
    kernel.passes(10, busy=20)
    look = load.look(10.0, [])
    assert look is not None
    assert look.others == 0


@pytest.mark.parametrize(("available", "short"), [(4, True), (5, False)])
def test_memory_is_short_where_little_is_available(kernel: Kernel, available: int, short: bool) -> None:
    kernel.memory(available=available)
    load = kernel.load()
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
    load = kernel.load("/shop")
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
