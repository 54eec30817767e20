"""Limits of a process beside the scheduler. Loads nothing that takes time."""

from __future__ import annotations

import os
import resource


def confine(cpu_s: int, memory: int) -> None:
    """Lets this process come last, and has the kernel end it beyond these seconds of CPU and bytes of addresses, also
    where whoever started it is gone. To be called before libraries are loaded, which takes most of the time."""
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
