"""Limits of a process beside the scheduler. Loads nothing that takes time."""

from __future__ import annotations

import os
import resource

LATER = 5
"""As `nice` counts. Somebody waits; on a busy machine it would get next to nothing as the very last."""


def confine(cpu_s: int, memory: int) -> None:
    """Lets others go before this process, and has the kernel end it beyond these seconds of CPU and bytes of addresses,
    also where whoever started it is gone. To be called before libraries are loaded, which takes most of the time."""
    os.nice(LATER)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
