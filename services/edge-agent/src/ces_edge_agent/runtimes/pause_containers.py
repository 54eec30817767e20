"""Pod sandboxes of the docker runtime: a pause container per allocation, whose network and process ids its workers
share. Its first process, sandbox.sh, ends the workers when the lease has run out."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from docker.types import Mount

from ces_common.messages.desired import Endpoint
from ces_edge_agent.deadline import deadline_file
from ces_edge_agent.runtimes.engine import Engine, answering
from ces_edge_agent.runtimes.names import check_host, check_name, hosts_file

HARDENED = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
PROGRAM = Path(__file__).with_name("sandbox.sh").read_text()
_LEASE = "/lease"  # folder in the container
_MEMORY = 16 * 2**20
# Of a container that runs a line of shell. The runtime starts within these limits too, with some threads for each core,
# and dies where they are tight: opencontainers/runc issue 1914.
SMALL = {"mem_limit": _MEMORY, "memswap_limit": _MEMORY, "pids_limit": 256}


class PauseContainers:
    """All sandboxes of one node. Blocking; every method may raise RuntimeUnavailable."""

    def __init__(self, engine: Engine, image: str, state_dir: Path) -> None:
        self._engine = engine
        self._image = image
        self._lease = deadline_file(state_dir).parent

    def open(self) -> None:
        self._keeps.mkdir(parents=True, exist_ok=True)
        self._notes.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            self._notes.chmod(0o1777)  # root in a sandbox has no capability, so no more rights than others

    @property
    def _keeps(self) -> Path:
        return self._lease / "keep"

    @property
    def _notes(self) -> Path:
        return self._lease / "lapsed"

    def all(self) -> dict[str, str | None]:
        """Running sandboxes and their network namespaces. Dead containers are deleted: nobody would ask for it
        later."""
        with answering("list sandboxes"):
            found: dict[str, str | None] = {}
            for entry in self._engine.list("sandbox"):
                if entry["State"] == "running":
                    found[entry["Labels"]["ces.allocation"]] = self._namespace(entry["Id"])
                elif entry["State"] in ("exited", "dead"):
                    self._engine.delete(entry["Id"], force=True)
            return found

    def _namespace(self, container: str) -> str:
        return f"/proc/{self._engine.pid(container)}/ns/net"

    def ensure(self, endpoint: Endpoint) -> str:
        """Create the sandbox unless it runs; returns its network namespace. The engine cannot change the host names of
        a container that exists."""
        key = check_name(endpoint.allocation)
        hosts_file(endpoint)  # checks names and addresses
        with answering(f"sandbox of {endpoint.allocation}"):
            found = self._engine.find(key)
            if found is not None and not found["State"]["Running"]:
                self._engine.delete(found["Id"], force=True)  # its namespaces are gone with its process
                found = None
            if found is not None:
                return self._namespace(found["Id"])
            return self._namespace(self._make(endpoint))

    def _make(self, endpoint: Endpoint) -> str:
        client = self._engine.client
        watch = self._engine.shares_kernel()  # otherwise its clock differs
        made = client.create_container(
            self._image,
            ["sh", "-c", PROGRAM, "sandbox", _LEASE, endpoint.allocation, "/proc/uptime"]
            if watch
            else ["sleep", "infinity"],
            user="0:0",
            name=self._engine.name(endpoint.allocation),
            hostname=check_host(endpoint.hostname),
            labels={**self._engine.labels, "ces.role": "sandbox", "ces.allocation": endpoint.allocation},
            host_config=client.create_host_config(
                network_mode="none",
                extra_hosts=endpoint.hosts,
                read_only=True,
                mounts=self._mounts() if watch else None,
                cap_add=["KILL"],  # to signal workers of any user
                **SMALL,
                **HARDENED,
            ),
        )
        client.start(made["Id"])
        return str(made["Id"])

    def _mounts(self) -> list[Mount]:
        source = self._engine.host_path(self._lease)
        notes = f"{source}/{self._notes.name}"
        return [
            Mount(_LEASE, source, type="bind", read_only=True),
            Mount(f"{_LEASE}/{self._notes.name}", notes, type="bind"),
        ]

    def remove(self, allocation: str) -> None:
        with answering(f"sandbox of {allocation}"):
            found: dict[str, Any] | None = self._engine.find(check_name(allocation))
            if found is not None:
                self._engine.delete(found["Id"], force=True)
            for folder in (self._keeps, self._notes):
                (folder / allocation).unlink(missing_ok=True)

    def prepare(self, allocation: str, outlives_s: float) -> None:
        """To be called before a worker starts. ``outlives_s``: for how long it goes on beyond the lease; infinite for
        one that needs none."""
        (self._notes / allocation).unlink(missing_ok=True)
        if outlives_s:
            hundredths = "" if math.isinf(outlives_s) else f"{int(outlives_s * 100)}\n"
            (self._keeps / allocation).write_text(hundredths)

    def lapsed(self, allocation: str) -> bool:
        """Whether the sandbox ended the allocation's last worker because the lease had run out."""
        return (self._notes / allocation).exists()
