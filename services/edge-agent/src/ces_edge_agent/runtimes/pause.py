"""Holders of the docker runtime: a pause container per allocation, whose network and process ids its workers share. Its
first process, holder.sh, ends them when the lease has run out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docker.types import Mount

from ces_common.messages.wanted import Endpoint
from ces_edge_agent.deadline import deadline_file
from ces_edge_agent.runtimes.engine import Engine, answering
from ces_edge_agent.runtimes.holders import check_host, check_name, hosts_file

SAFE = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
PROGRAM = Path(__file__).with_name("holder.sh").read_text()
_LEASE = "/lease"  # in a holder
_MEMORY = 16 * 2**20
_PIDS = 16


class PauseContainers:
    """All holders of one node. Blocking; raises RuntimeUnavailable."""

    def __init__(self, engine: Engine, image: str, state_dir: Path) -> None:
        self._engine = engine
        self._image = image
        self._lease = deadline_file(state_dir).parent

    def open(self) -> None:
        self._keeps.mkdir(parents=True, exist_ok=True)
        self._notes.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            self._notes.chmod(0o1777)  # holders are root, which has no more rights there than anybody else

    @property
    def _keeps(self) -> Path:
        return self._lease / "keep"

    @property
    def _notes(self) -> Path:
        return self._lease / "lapsed"

    def all(self) -> dict[str, Path | None]:
        """Those that live; what is left of others goes, since nobody would ask for its removal."""
        with answering("list holders"):
            found: dict[str, Path | None] = {}
            for entry in self._engine.list("holder"):
                if entry["State"] == "running":
                    found[entry["Labels"]["ces.allocation"]] = self._namespace(entry["Id"])
                elif entry["State"] in ("exited", "dead"):
                    self._engine.delete(entry["Id"], force=True)
            return found

    def _namespace(self, container: str) -> Path:
        return Path(f"/proc/{self._engine.pid(container)}/ns/net")

    def ensure(self, endpoint: Endpoint) -> Path:
        """The engine fixes a container's host names when it is made: those of a holder that exists stay."""
        key = check_name(endpoint.allocation)
        hosts_file(endpoint)  # for its checks
        with answering(f"holder of {endpoint.allocation}"):
            found = self._engine.find(key)
            if found is not None and not found["State"]["Running"]:
                self._engine.delete(found["Id"], force=True)  # its namespaces went with its process
                found = None
            if found is not None:
                return self._namespace(found["Id"])
            return self._namespace(self._make(endpoint))

    def _make(self, endpoint: Endpoint) -> str:
        client = self._engine.client
        watch = self._engine.shares_kernel()  # else its clock is another one
        made = client.create_container(
            self._image,
            ["sh", "-c", PROGRAM, "holder", _LEASE, endpoint.allocation, "/proc/uptime"]
            if watch
            else ["sleep", "infinity"],
            user="0:0",
            name=self._engine.name(endpoint.allocation),
            hostname=check_host(endpoint.hostname),
            labels={**self._engine.labels, "ces.role": "holder", "ces.allocation": endpoint.allocation},
            host_config=client.create_host_config(
                network_mode="none",
                extra_hosts=endpoint.hosts,
                mem_limit=_MEMORY,
                memswap_limit=_MEMORY,
                pids_limit=_PIDS,
                read_only=True,
                mounts=self._mounts() if watch else None,
                cap_add=["KILL"],  # its workers may be any user
                **SAFE,
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
        with answering(f"holder of {allocation}"):
            found: dict[str, Any] | None = self._engine.find(check_name(allocation))
            if found is not None:
                self._engine.delete(found["Id"], force=True)
            for folder in (self._keeps, self._notes):
                (folder / allocation).unlink(missing_ok=True)

    def prepare(self, allocation: str, keep: bool) -> None:
        """Before the start of a worker. ``keep``: it goes on without a lease."""
        (self._notes / allocation).unlink(missing_ok=True)
        if keep:
            (self._keeps / allocation).touch()

    def lapsed(self, allocation: str) -> bool:
        """Whether the allocation's last worker was ended here because the lease had run out."""
        return (self._notes / allocation).exists()
