"""What can hold a program to its share of a GPU on this machine, as far as that is possible. It only looks: nothing is
started."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

Kept = Literal["counted", "mps", "hami"]
HAMI: Final = "libvgpu.so"
MPS: Final = "nvidia-cuda-mps"
"""Of the control daemon's name, what the kernel keeps: 15 characters."""


def kept_by(
    *,
    same_root: bool,
    confined: bool,
    preload: Path = Path("/etc/ld.so.preload"),
    pipes: Path = Path("/tmp/nvidia-mps"),  # noqa: S108
    processes: Path = Path("/proc"),
) -> Kept:
    """What keeps workers to their shares: HAMi-core, NVIDIA's MPS, or nothing ("counted": shares are only counted).

    ``same_root``: workers are processes of this machine's file system, and no containers, whose images bring their
    own libraries. ``confined``: they have a /tmp and IPC of their own, and so do not reach the machine's MPS.
    ``preload``: libraries that each program begins with, of which HAMi-core may be one. ``pipes``: where programs look
    for MPS that are told nothing else."""
    if not same_root:
        return "counted"
    if any(Path(name).name == HAMI and Path(name).exists() for name in _read(preload).replace(":", " ").split()):
        return "hami"
    pid = _read(pipes / f"{MPS}-control.pid").strip()
    if not confined and pid.isdigit() and _read(processes / pid / "comm").strip() == MPS:
        return "mps"
    return "counted"


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
