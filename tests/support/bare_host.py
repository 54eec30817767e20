"""A device to install on: a bare Debian in a container, with systemd, sshd and Python, and no package index."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import pytest
from doc_pages import ROOT
from waiting import wait_for

from ces_testbed.spec import LOCALHOST, free_port

BASE = "debian:bookworm-slim"
DOCKERFILE = f"""
FROM {BASE}
RUN apt-get update -qq && \\
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \\
        openssh-server systemd-sysv python3 iproute2 curl >/dev/null && \\
    rm -rf /var/lib/apt/lists/* /etc/apt/sources.list* /etc/ssh/ssh_host_*
"""
IMAGE = f"ces-test-bare-host:{sha256(DOCKERFILE.encode()).hexdigest()[:12]}"
BASE_IMAGES = ROOT / "deploy/airgap/build-base-images.sh"
PULL_S, BUILD_S, COMMAND_S = 60, 300, 120  # the longest that each may take
# Docker gives such a container the hierarchies of its control groups read-only; systemd makes groups of its own.
START = r"""
mount -o remount,rw /sys/fs/cgroup
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p /sys/fs/cgroup/systemd
    mountpoint -q /sys/fs/cgroup/systemd || mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
ssh-keygen -qA
printf "Port $PORT\nListenAddress $ADDRESS\n" > /etc/ssh/sshd_config.d/test.conf
mkdir -p /root/.ssh
echo "$KEY" > /root/.ssh/authorized_keys
exec /lib/systemd/systemd
"""
CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")


def _docker(*words: str, given: str | None = None, limit_s: float = COMMAND_S) -> str:
    done = subprocess.run(["docker", *words], input=given, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, f"docker {words[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def _has(image: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


def ensure_image() -> None:
    """Built once for each state of the Dockerfile. One process builds; others that ask meanwhile wait for it."""
    with Path(tempfile.gettempdir(), "ces-test-bare-host.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _has(IMAGE):
            return
        if not _has(BASE):
            with suppress(AssertionError, subprocess.TimeoutExpired):
                _docker("pull", "--quiet", BASE, limit_s=PULL_S)
        if not _has(BASE):  # no registry is in reach
            subprocess.run([BASE_IMAGES, BASE], check=True, timeout=BUILD_S)
        _docker("build", "--network", "host", "--tag", IMAGE, "-", given=DOCKERFILE, limit_s=BUILD_S)


class BareHost:
    """``target``: the name by which the ``ssh`` on PATH knows it; ``port``: at which its sshd listens, of this
    machine."""

    target = "bare"

    def __init__(self, name: str, folder: Path, port: int) -> None:
        self.name, self.folder, self.port = name, folder, port
        self.known_hosts = folder / "known_hosts"

    def sh(self, script: str) -> str:
        """What a shell there prints, as root."""
        return _docker("exec", self.name, "sh", "-c", script)

    def new_host_key(self) -> None:
        self.sh("rm -f /etc/ssh/ssh_host_* && ssh-keygen -qA && systemctl restart ssh || { journalctl -n 20; exit 1; }")

    def fingerprint(self) -> str:
        return self.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]

    def files(self) -> str:
        """All files outside of what programs write by themselves, with sizes and times."""
        kept = "-path /var/log -o -path /var/lib/systemd -o -path /var/lib/ces-agent -o -path /var/cache"
        return self.sh(
            f"find /etc /opt /usr /var /root /home '(' {kept} ')' -prune -o -printf '%p %s %T@ %m\\n' | sort"
        )


@contextmanager
def running(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BareHost]:
    """``ssh`` on PATH knows the host, by a configuration of its own: nobody's known hosts are touched."""
    key = folder / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    ensure_image()
    port = free_port(LOCALHOST, set())
    host = BareHost(f"ces-bare-{name}{os.getpid()}", folder, port)
    options = [word for each in CAPABILITIES for word in ("--cap-add", each)]
    options += ["--network", "host", "--cgroupns", "private", "--tmpfs", "/run", "--tmpfs", "/run/lock"]
    options += ["--env", "container=docker", "--security-opt", "seccomp=unconfined"]
    options += ["--security-opt", "apparmor=unconfined"]
    public = key.with_suffix(".pub").read_text().strip()
    options += ["--env", f"PORT={port}", "--env", f"ADDRESS={LOCALHOST}", "--env", f"KEY={public}"]
    _docker("run", "--detach", "--name", host.name, *options, IMAGE, "sh", "-c", START)
    try:
        wait_for(lambda: _starts(host), "sshd in the container")
        config = folder / "config"
        config.write_text(
            f"Host {host.target} {LOCALHOST}\n HostName {LOCALHOST}\n Port {port}\n User root\n IdentityFile {key}\n"
            f" UserKnownHostsFile {host.known_hosts}\n"
        )
        programs = folder / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
        (programs / "ssh").chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        yield host
    finally:
        _docker("rm", "--force", host.name)


def _starts(host: BareHost) -> bool:
    asked = ["docker", "exec", host.name, "systemctl", "is-active", "ssh"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0
