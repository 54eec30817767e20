"""A machine by the files in which its kernel tells of it: CPU time, memory, control groups, energy counters."""

from __future__ import annotations

from pathlib import Path

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


class Powercap:
    """Energy counters of a processor's packages below ``root``, in microjoules, which begin again beyond ``span``."""

    def __init__(self, root: Path, packages: int = 1, span: int = 262_143_328_850) -> None:
        self.root, self.span = root, span
        for number in range(packages):
            self.domain(f"intel-rapl:{number}", f"package-{number}", 0)
            self.domain(f"intel-rapl:{number}:0", "core", 0)

    def domain(self, folder: str, name: str, counted: int) -> None:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / "name").write_text(f"{name}\n")
        (path / "max_energy_range_uj").write_text(f"{self.span}\n")
        (path / "energy_uj").write_text(f"{counted}\n")

    def counts(self, *counted: int) -> None:
        """What each package's counter says now."""
        for number, value in enumerate(counted):
            (self.root / f"intel-rapl:{number}" / "energy_uj").write_text(f"{value % self.span}\n")
