"""What a device has said of itself, and whether an agent can run there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ces_client.installation.faults import Fault

Said = Annotated[str, StringConstraints(max_length=1000)]
LEAST_FREE = {"/opt": 500 << 20, "/var/lib": 50 << 20, "/etc": 1 << 20}  # bytes
CLOCK_S = 30.0
LEAST_PYTHON = (3, 11)
MACHINES = ("x86_64", "aarch64")
KERNEL = ("sch_htb", "cls_u32", "veth", "vxlan", "nf_tables")  # what CES_NETWORK=tc takes
STEP = "preflight"


class _Told(BaseModel):
    """From a device, of which nothing is believed but its shape."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Installed(_Told):
    """What an earlier run has left there, see ``on_device.machine``."""

    node: Said | None
    digest: Said | None
    settings: Said | None
    foreign: Annotated[list[Said], Field(max_length=10)]
    intact: bool
    member: bool
    active: bool


class Facts(_Told):
    """What a device is like, see ``on_device.facts``."""

    python: Annotated[list[int], Field(min_length=3, max_length=3)]
    lacks: Annotated[list[Said], Field(max_length=20)]
    machine: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,32}$")]
    bits: int
    glibc: tuple[Annotated[int, Field(ge=0, le=99)], Annotated[int, Field(ge=0, le=999)]] | None
    root: bool
    free: dict[Said, int]
    clock: float
    systemd: bool
    unreached: dict[Literal["manager", "nats"], Said]
    address: Annotated[str, StringConstraints(max_length=64)] | None
    modules: Annotated[dict[Said, Said], Field(max_length=20)]
    installed: Installed


def faults_of(facts: Facts, node: str, ahead_s: float) -> list[Fault]:
    """All that keeps an agent from running there, at once. ``ahead_s``: of its clock to this machine's."""
    return [Fault(STEP, name, said) for name, said in _faults(facts, node, ahead_s)]


def _faults(facts: Facts, node: str, ahead_s: float) -> Iterator[tuple[str, str]]:
    installed = facts.installed
    if not facts.root:
        yield "root", "nothing can be installed there without being root"
    if installed.foreign:
        yield "foreign", f"an agent is there that this command has not installed: {', '.join(installed.foreign)}"
    if installed.node not in (None, node):
        yield "another-node", f"the device is node {installed.node}"
    if tuple(facts.python) < LEAST_PYTHON:
        yield "python", f"its Python is {'.'.join(map(str, facts.python))}"
    elif facts.lacks:
        yield "python-parts", f"its Python lacks {', '.join(facts.lacks)}"
    if facts.machine not in MACHINES or facts.bits != 64 or facts.glibc is None:
        libc = "glibc" if facts.glibc else "another C library than glibc"
        yield "architecture", f"it is {facts.machine}, {facts.bits} bits, {libc}"
    if not facts.systemd:
        yield "systemd", "systemd does not run there"
    for folder, least in LEAST_FREE.items():
        if (free := facts.free.get(folder, 0)) < least:
            yield "disk", f"{folder} has {free >> 20} MiB left"
    if abs(ahead_s) > CLOCK_S:
        how = "ahead of" if ahead_s > 0 else "behind"
        yield "clock", f"its clock is {abs(ahead_s):.0f} s {how} this machine's"
    for name, said in facts.unreached.items():
        yield name, f"{said}, from there"
    if facts.modules:
        yield "kernel", "; ".join(f"{name}: {said}" for name, said in facts.modules.items())


def is_done(facts: Facts, digest: str) -> bool:
    """Whether nothing is left to do on the device."""
    installed = facts.installed
    return installed.digest == digest and installed.intact and installed.member and installed.active


def steps_to(facts: Facts, digest: str, settings: str) -> list[str]:
    """What an installation would do, for people. ``settings``: the digest of those with which it would join."""
    installed = facts.installed
    if is_done(facts, digest):
        return []
    steps = ["build /opt/ces/venv from wheels", "write /etc/ces/agent.env and /etc/systemd/system/ces-agent.service"]
    if not installed.member or installed.settings != settings:
        steps.append("hand over a join token")
    return [*steps, "start ces-agent, now and at each boot", "wait until the node has joined"]
