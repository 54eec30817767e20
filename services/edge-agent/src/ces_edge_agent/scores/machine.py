"""What kind of machine this is, as far as measuring goes: types of cores, and what tells it from another."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from ces_common.cgroups import UNIFIED, hierarchies
from ces_edge_agent.scores.plan import Cores

_CPUS: Final = Path("/sys/devices/system/cpu")
_HYBRID: Final = ("cpu_core", "cpu_atom")
_LIMITS: Final = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
_MODEL: Final = re.compile(r"^(?:model name|CPU part|Hardware|Model)\s*:\s*(.*)$", re.MULTILINE)


def core_types(allowed: Collection[int], cpus: Path = _CPUS) -> list[Cores]:
    """The types of the CPUs that this process may use: as the kernel names them on x86, and by their capacity, of which
    the fastest have 1024, on ARM."""
    named = {name: _parse(_read(cpus.parent.parent / name / "cpus")) & set(allowed) for name in _HYBRID}
    types = [Cores(name, sorted(some)) for name, some in named.items() if some]
    if len(types) == len(_HYBRID):
        return types
    by_capacity: dict[int, list[int]] = {}
    for cpu in sorted(allowed):
        told = _read(cpus / f"cpu{cpu}" / "cpu_capacity")
        by_capacity.setdefault(int(told) if told.isdigit() else 0, []).append(cpu)
    if len(by_capacity) > 1:
        return [Cores(f"capacity {each}", by_capacity[each]) for each in sorted(by_capacity, reverse=True)]
    return [Cores("", sorted(allowed))]


def hardware(proc: Path = Path("/proc"), roots: Mapping[str, str] | None = None) -> str:
    """Changes where measuring would find something else: other CPUs, another quota, more memory."""
    told = _read(proc / "cpuinfo")
    memory = re.search(r"^MemTotal:\s*(\d+)", _read(proc / "meminfo"), re.MULTILINE)
    return json.dumps(
        {
            "cpus": sorted(os.sched_getaffinity(0)),
            "models": sorted(set(_MODEL.findall(told))),
            "memory": memory[1] if memory else "",
            "limits": _limits(hierarchies() if roots is None else roots, _read(proc / "self" / "cgroup")),
        },
        sort_keys=True,
    )


def _limits(roots: Mapping[str, str], groups: str) -> list[str]:
    """What this process's control group, and those above it, may use of the CPU."""
    found = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        root = roots.get("cpu") if "cpu" in controllers.split(",") else None if controllers else roots.get(UNIFIED)
        if root is None:
            continue
        group = Path(path.strip("/"))
        for each in (group, *group.parents):
            found += [told for name in _LIMITS if (told := _read(Path(root) / each / name))]
    return found


def _parse(told: str) -> set[int]:
    """``0-3,8`` as the kernel writes it."""
    found: set[int] = set()
    for part in told.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last if last.isdigit() else first) + 1))
    return found


def _read(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(errors="replace").strip()
    return ""
