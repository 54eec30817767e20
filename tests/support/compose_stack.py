"""The stacks of docker-compose.yml and docker-compose.regions.yml, under names, ports and subnets of their own."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import docker
import yaml
from dashboard_page import dashboard
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
IMAGES = [
    *(f"ces-{name}" for name in ("manager", "scheduler", "compute-ctl", "network-ctl", "federation", "edge-agent")),
    "ces-sandbox",
    "ces-worker-train",
]
HEALTHY_S = 120.0
S = TypeVar("S", bound="Stack")


def compose_command() -> list[str]:
    """Compose 1 where it is installed, else the plugin."""
    return ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]


def build_missing_images() -> None:
    """Have the engine hold all of ``IMAGES``. One process builds; others that ask meanwhile wait for it."""
    with Path(tempfile.gettempdir(), "ces-test-images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        engine = docker.from_env()
        present = {tag.partition(":")[0] for image in engine.images.list() for tag in image.tags}
        if not present.issuperset(IMAGES):
            run(["make", "images"], patience_s=900)


def run(command: Sequence[str], env: dict[str, str] | None = None, patience_s: float = 600.0) -> str:
    """What it printed; with everything it said in the error where it fails."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=patience_s)
    if done.returncode:
        raise AssertionError(
            f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
    return done.stdout


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Stack:
    """``name``: the compose project, and the cluster whose workers the engine runs."""

    healthy_s = HEALTHY_S

    def __init__(self, name: str) -> None:
        self.name = name
        self.engine = docker.from_env()
        port, own = free_port(), {"COMPOSE_PROJECT_NAME": name}
        self._env = {key: value for key, value in os.environ.items() if not key.startswith("CES_")} | own
        self._env |= {"CES_API_PORT": port, "CES_SUBNET": f"172.28.{random.randrange(1, 255)}"}
        self._cli = self._env | {"CES_URL": f"https://127.0.0.1:{port}", "no_proxy": "127.0.0.1"}

    @property
    def clusters(self) -> list[str]:
        return [self.name]

    def services(self) -> list[str]:
        """Those that are started; none for all."""
        return []

    def compose(self, *arguments: str) -> str:
        return run([*compose_command(), *arguments], self._env)

    def start(self) -> None:
        """Up, and every service healthy."""
        self.compose("up", "-d", "--no-build", *self.services())
        if not wait_until(lambda: not self._unhealthy(), self.healthy_s, pause_s=0.5):
            raise AssertionError(f"not healthy: {self._unhealthy()}\n{self.compose('logs', '--tail', '20')[-6000:]}")
        self._cli["CES_TOKEN"] = self.token("manager")

    def token(self, manager: str) -> str:
        return self.compose("exec", "-T", manager, "cat", "/secrets/manager/admin.token").strip()

    def ces(self, *arguments: str) -> str:
        return run([str(Path(sys.executable).with_name("ces")), *arguments], self._cli)

    def dashboard(self) -> AbstractContextManager[str]:
        """The address that ``ces dashboard`` shows, while it runs."""
        return dashboard(self._cli)

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ces("describe", "job", name, "-o", "json"))
        return found

    def container(self, service: str) -> Any:
        labels = [f"com.docker.compose.project={self.name}", f"com.docker.compose.service={service}"]
        (found,) = self.engine.containers.list(all=True, filters={"label": labels})
        return found

    def workers(self) -> list[Any]:
        """Containers that the cluster's agents made."""
        every = self.engine.containers.list(all=True, filters={"label": "ces.cluster"}, ignore_removed=True)
        return [each for each in every if each.labels["ces.cluster"] in self.clusters]

    def _unhealthy(self) -> list[str]:
        found = []
        for container in self._own(self.engine.containers, all=True, ignore_removed=True):
            state = container.attrs["State"]
            if state["Status"] != "exited" or state["ExitCode"] != 0:
                health = state.get("Health", {}).get("Status", "")
                if health != "healthy":
                    found.append(f"{container.name} is {state['Status']} {health}")
        return found

    def left(self) -> list[str]:
        """What there is of it on the engine, by name."""
        own = [
            *self._own(self.engine.containers, all=True, ignore_removed=True),
            *self._own(self.engine.networks),
            *self._own(self.engine.volumes),
            *self.workers(),
        ]
        return sorted(thing.name for thing in own)

    def _own(self, kind: Any, **options: Any) -> list[Any]:
        return list(kind.list(filters={"label": f"com.docker.compose.project={self.name}"}, **options))

    def remove(self) -> None:
        self.compose("down", "--volumes", "--timeout", "10")

    def sweep(self) -> None:
        """What a failed test left running."""
        for worker in self.workers():
            worker.remove(force=True, v=True)


class RegionStack(Stack):
    """Some of the regions of docker-compose.regions.yml; ``ces`` is said to ``north``."""

    FILE = "docker-compose.regions.yml"
    healthy_s = 2 * HEALTHY_S

    def __init__(self, name: str, regions: Sequence[str]) -> None:
        super().__init__(name)
        self.regions = list(regions)
        ports = {f"CES_{region.upper()}_PORT": free_port() for region in self.regions}
        self._env |= ports | {"COMPOSE_FILE": self.FILE, "CES_SUBNETS": f"10.{random.randrange(130, 250)}"}
        self._cli |= {"CES_URL": f"https://127.0.0.1:{ports['CES_NORTH_PORT']}"}

    @property
    def clusters(self) -> list[str]:
        return [self.name + region for region in self.regions]

    def services(self) -> list[str]:
        known = yaml.safe_load((ROOT / self.FILE).read_text())["services"]
        return [name for name in known if name.split("-")[0] in ("hub", *self.regions)]

    def token(self, manager: str) -> str:
        return super().token(f"north-{manager}")


@contextmanager
def started(stack: S) -> Iterator[S]:
    """The stack while it runs; in the end nothing of it is left on the engine."""
    build_missing_images()
    try:
        stack.start()
        yield stack
    finally:
        stack.remove()
        left = stack.left()
        stack.sweep()
        stack.engine.close()
    assert left == [], "left on the engine"
