"""Limits of a process beside the scheduler. Loads nothing that takes time."""

from __future__ import annotations

import os
import resource


def confine(cpu_s: int, memory: int, later: int = 19) -> None:
    """Lets others go before this process (``later``: as `nice` counts), and has the kernel end it beyond these seconds
    of CPU and bytes of addresses, also where whoever started it is gone. To be called before libraries are loaded,
    which takes most of the time."""
    os.nice(later)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
