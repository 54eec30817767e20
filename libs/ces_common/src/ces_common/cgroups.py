"""A control group, of a worker or of a device's owner, versions 1 and 2. Standard library only: the shim imports it.

A group is known by its name; its folders follow from the mounted hierarchies. So shim and agent find the same group,
also after a restart.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

UNIFIED = "unified"
_CONTROLLERS = ("cpu", "cpuacct", "memory", "pids", "freezer")
_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1_000
_LEAST_SHARES, _SHARES = 2, 1024


def hierarchies(mountinfo: str = "/proc/self/mountinfo") -> dict[str, str]:
    """Controller -> mount point; ``unified`` where version 2 has the controllers."""
    found: dict[str, str] = {}
    try:
        lines = Path(mountinfo).read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        point = before.split()[4]
        if kind == "cgroup":
            carried = options.split()[-1].split(",")
            found.update({name: point for name in _CONTROLLERS if name in carried})
        elif kind == "cgroup2":
            with contextlib.suppress(OSError):
                if "memory" in (Path(point) / "cgroup.controllers").read_text().split():
                    found[UNIFIED] = point
    return found


def group_of(roots: Mapping[str, str], pid: str, proc: Path = Path("/proc")) -> Group | None:
    """The group in which the CPU time of a process is counted; None where there is none, or the process has ended."""
    try:
        lines = (proc / pid / "cgroup").read_text().splitlines()
    except OSError:
        return None
    counted = "cpuacct" if "cpuacct" in roots else ""
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if counted in controllers.split(","):
            return Group(roots, path.strip("/"))
    return None


class Group:
    """A control group, in every hierarchy that this process may write to."""

    def __init__(self, roots: Mapping[str, str], name: str) -> None:
        self.name = name
        self._roots = {controller: Path(root) for controller, root in roots.items()}

    def create(self, cpu: int, memory: int, pids: int, lowest: bool = False) -> frozenset[str]:
        """Create the group with limits: ``cpu`` in millicores, ``memory`` in bytes. ``lowest``: it gets the CPU that
        nobody else wants. Returns which of ``cpu``, ``memory``, ``pids`` and ``freezer`` the kernel enforces."""
        quota = _quota(cpu)
        limits: dict[str, dict[str, int]] = {
            "cpu": {"cpu.cfs_period_us": _PERIOD_US, "cpu.cfs_quota_us": quota},
            "cpuacct": {},
            "memory": {"memory.limit_in_bytes": memory},
            "pids": {"pids.max": pids},
            "freezer": {},
        }
        kept = {name for name, files in limits.items() if name in self._roots and self._make(name, files)}
        if "memory" in kept:
            self._write("memory", "memory.memsw.limit_in_bytes", memory)  # absent without swap accounting
        if UNIFIED in self._roots and self._make(UNIFIED, {}):
            unified = {"cpu": f"{quota} {_PERIOD_US}", "memory": str(memory), "pids": str(pids)}
            kept |= {name for name, value in unified.items() if self._write(UNIFIED, f"{name}.max", value)}
            self._write(UNIFIED, "memory.swap.max", 0)
            kept.add("freezer")
        if lowest:
            self._weigh(lowest=True)
        return frozenset(kept - {"cpuacct"})

    def _weigh(self, *, lowest: bool) -> None:
        """The group and those above it: only groups below one weigh against each other."""
        idle, shares, weight = (1, _LEAST_SHARES, 1) if lowest else (0, _SHARES, 100)
        roots = {controller: str(root) for controller, root in self._roots.items()}
        path = Path(self.name)
        for above in (Group(roots, str(each)) for each in (*path.parents[-2::-1], path)):
            if not above._write("cpu", "cpu.idle", idle):
                above._write("cpu", "cpu.shares", shares)
            if not above._write(UNIFIED, "cpu.idle", idle):
                above._write(UNIFIED, "cpu.weight", weight)

    def limit_cpu(self, cpu: int, *, usual_weight: bool = False) -> bool:
        """From now on at most ``cpu`` millicores. ``usual_weight``: with the usual weight as well; with the lowest, on
        a busy machine, the group could not even end. False where the group is there and the kernel does not limit
        it."""
        limited = self._write("cpu", "cpu.cfs_quota_us", _quota(cpu))
        limited |= self._write(UNIFIED, "cpu.max", f"{_quota(cpu)} {_PERIOD_US}")
        if usual_weight:
            self._weigh(lowest=False)
        return limited or not any(self._folders())

    def join(self) -> None:
        """Move the calling process into the group."""
        for folder in self._folders():
            with contextlib.suppress(FileNotFoundError):
                (folder / "cgroup.procs").write_text("0")

    def freeze(self, frozen: bool) -> bool:
        """Stop or continue every process of the group; False if the kernel cannot."""
        if self._write("freezer", "freezer.state", "FROZEN" if frozen else "THAWED"):
            return True
        return self._write(UNIFIED, "cgroup.freeze", int(frozen))

    def members(self) -> set[int]:
        found: set[int] = set()
        for folder in self._folders():
            with contextlib.suppress(OSError):
                found.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
        return found

    def kill(self) -> None:
        """Send SIGKILL to every member; they may take a moment to end."""
        self.freeze(False)
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self, patience_s: float = 2.0) -> bool:
        """Remove the folders, and parents that are empty then; waits for members that are ending. False if some
        stay."""
        deadline = time.monotonic() + patience_s
        while True:
            left = [folder for folder in self._folders() if not _remove(folder)]
            if not left:
                break
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        for controller in self._roots:
            folder = self._folder(controller).parent
            while folder != self._roots[controller] and _remove(folder):
                folder = folder.parent
        return True

    def processor_time(self) -> float | None:
        """Seconds of CPU time used so far; None if the kernel does not count it."""
        nanoseconds = self._read("cpuacct", "cpuacct.usage")
        if nanoseconds is not None:
            return int(nanoseconds) / 1e9
        microseconds = self._entry(UNIFIED, "cpu.stat", "usage_usec")
        return None if microseconds is None else microseconds / 1e6

    def stalled_time(self) -> float | None:
        """Seconds for which some of its processes so far waited for a CPU (pressure stall information of version 2);
        None if the kernel does not count it."""
        for line in (self._read(UNIFIED, "cpu.pressure") or "").splitlines():
            kind, *entries = line.split()
            total = dict(entry.partition("=")[::2] for entry in entries).get("total")
            if kind == "some" and total is not None:
                return int(total) / 1e6
        return None

    def memory(self) -> int | None:
        """Bytes in use, without inactive file pages; None if the kernel does not count it."""
        for controller, file, idle in (
            ("memory", "memory.usage_in_bytes", "total_inactive_file"),
            (UNIFIED, "memory.current", "inactive_file"),
        ):
            used = self._read(controller, file)
            if used is not None:
                return max(0, int(used) - (self._entry(controller, "memory.stat", idle) or 0))
        return None

    def memory_kills(self) -> int:
        """How many processes the kernel killed because the group was out of memory."""
        version1 = self._entry("memory", "memory.oom_control", "oom_kill")
        return version1 if version1 is not None else self._entry(UNIFIED, "memory.events", "oom_kill") or 0

    def _folder(self, controller: str) -> Path:
        return self._roots[controller] / self.name

    def _folders(self) -> Iterator[Path]:
        """The existing folders, each once: version 1 mounts some controllers together."""
        seen: set[Path] = set()
        for controller in self._roots:
            folder = self._folder(controller)
            if folder not in seen and folder.is_dir():
                seen.add(folder)
                yield folder

    def _make(self, controller: str, files: Mapping[str, int]) -> bool:
        folder = self._folder(controller)
        for _ in range(3):  # another worker's end may remove the parent just created
            try:
                folder.mkdir(parents=True, exist_ok=True)
                break
            except FileNotFoundError:
                continue
            except OSError:
                return False
        if controller == UNIFIED:
            for parent in reversed(folder.relative_to(self._roots[UNIFIED]).parents):
                for part in ("cpu", "memory", "pids"):
                    with contextlib.suppress(OSError):
                        (self._roots[UNIFIED] / parent / "cgroup.subtree_control").write_text(f"+{part}")
        return folder.is_dir() and all(self._write(controller, file, value) for file, value in files.items())

    def _write(self, controller: str, file: str, value: int | str) -> bool:
        if controller not in self._roots:
            return False
        path = self._folder(controller) / file
        try:
            fd = os.open(path, os.O_WRONLY)
            try:
                os.write(fd, str(value).encode())
            finally:
                os.close(fd)
        except OSError:
            return False
        return True

    def _read(self, controller: str, file: str) -> str | None:
        if controller not in self._roots:
            return None
        try:
            return (self._folder(controller) / file).read_text()
        except OSError:
            return None

    def _entry(self, controller: str, file: str, name: str) -> int | None:
        for line in (self._read(controller, file) or "").splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == name:
                return int(words[1])
        return None


def _quota(cpu: int) -> int:
    """Of millicores, in microseconds of a period."""
    return max(cpu * _PERIOD_US // 1000, _LEAST_QUOTA_US)


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
