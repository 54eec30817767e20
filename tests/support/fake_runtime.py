"""A runtime without processes, for tests of the agent around it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from confinements import APART

from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_common.messages.reports import WorkerStatus, WorkerUsage
from ces_edge_agent.checkpoints.archive import Budget, Packed, entry
from ces_edge_agent.ports import NO_SECRETS, Refused, RuntimeUnavailable, SandboxNamespaces
from ces_edge_agent.runtimes.log_folder import LogFolder


@dataclass
class FakeHost:
    """What outlives the agent: give the same one to the runtime of an agent that starts again."""

    sandboxes: dict[str, Endpoint] = field(default_factory=dict)
    workers: dict[str, WorkerStatus] = field(default_factory=dict)
    desired: dict[str, DesiredWorker] = field(default_factory=dict)
    secrets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)  # worker -> millicores that it is left with
    cpus: dict[str, int] = field(default_factory=dict)  # worker -> millicores that it was set to
    checkpoints: dict[str, str] = field(default_factory=dict)  # job -> what its worker last wrote


class FakeRuntime:
    """Workers are entries in a table. Commands it understands: ``exit CODE``, ``print TEXT`` (then exit 0), ``reveal
    SECRET`` (the same), ``checkpoint TEXT`` (prints what the job's last one wrote, and writes), ``hog`` (ends for want
    of memory), ``stubborn`` (ends by SIGKILL only); any other runs until it is stopped or ``end`` is called. Programs
    and images in ``unknown`` are refused; while not ``available``, calls raise RuntimeUnavailable."""

    def __init__(self, state_dir: Path, host: FakeHost | None = None) -> None:
        self.host = host or FakeHost()
        self.unknown = {"no-such-program"}
        self.available = True
        self.packs = 0  # how often a checkpoint was packed
        self.logs = LogFolder(state_dir / "logs")
        self.confinement = APART

    async def open(self) -> None:
        self._check()
        self.logs.create()

    async def close(self) -> None:
        return None

    async def sandboxes(self) -> SandboxNamespaces:
        self._check()
        return dict.fromkeys(self.host.sandboxes)

    async def ensure_sandbox(self, endpoint: Endpoint) -> str | None:
        self._check()
        self.host.sandboxes[endpoint.allocation] = endpoint
        return None

    async def remove_sandbox(self, allocation: str) -> None:
        self._check()
        self.host.sandboxes.pop(allocation, None)

    async def workers(self) -> Mapping[str, WorkerStatus]:
        self._check()
        return dict(self.host.workers)

    async def prepare(self, worker: DesiredWorker) -> None:
        self._check()

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        self._check()
        if worker.key in self.host.workers:
            return
        if checkpoint is not None:
            with tarfile.open(fileobj=checkpoint) as archive:
                (content,) = [archive.extractfile(each) for each in archive]
                self.host.checkpoints[worker.job] = content.read().decode() if content else ""
        program, *arguments = worker.command or [""]
        for name in (program, worker.image):
            if name in self.unknown:
                raise Refused(f"{name}: unknown on this node")
        self.host.desired[worker.key] = worker
        self.host.secrets[worker.key] = dict(secrets)
        self.host.workers[worker.key] = WorkerStatus(
            allocation=worker.allocation,
            incarnation=worker.incarnation,
            state="paused" if worker.paused else "running",
            pid=1000 + len(self.host.desired),
        )
        if program == "exit":
            self.end(worker.key, int(arguments[0]))
        elif program == "print":
            self.write(worker.allocation, f"{' '.join(arguments)}\n")
            self.end(worker.key, 0)
        elif program == "reveal":
            self.write(worker.allocation, f"{secrets[arguments[0]].decode()}\n")
            self.end(worker.key, 0)
        elif program == "checkpoint":
            before = self.host.checkpoints.get(worker.job, "")
            self.write(worker.allocation, f"{before}\n" if worker.checkpoint else "no folder\n")
            if worker.checkpoint:
                self.host.checkpoints[worker.job] = arguments[0]
            self.end(worker.key, 0)
        elif program == "hog":
            self.end(worker.key, 137, f"out of memory: more than {worker.memory} bytes")

    async def keep_checkpoints(self, jobs: Collection[str]) -> None:
        self._check()
        self.host.checkpoints = {job: files for job, files in self.host.checkpoints.items() if job in jobs}

    async def pack_checkpoint(self, job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
        """What the job's worker last wrote, as a file of the same name."""
        self._check()
        text = self.host.checkpoints.get(job)
        if text is None or text == seen:
            return None
        Budget(limit).take(len(text))
        self.packs += 1
        with tarfile.open(fileobj=into, mode="w") as archive:
            archive.addfile(entry(text, len(text), 0), io.BytesIO(text.encode()))
        return Packed(text, text)

    async def stop(self, key: str, grace_s: float) -> None:
        self._check()
        status = self.host.workers.get(key)
        if status is not None and status.state != "exited":
            self.end(key, 137 if self.host.desired[key].command[:1] == ["stubborn"] else 143)

    async def remove(self, key: str) -> None:
        self._check()
        if key in self.host.workers and self.host.workers[key].state == "exited":
            del self.host.workers[key]

    async def pause(self, key: str) -> None:
        self._change(key, "running", "paused")

    async def resume(self, key: str) -> None:
        self._change(key, "paused", "running")

    async def limit_cpu(self, key: str, cpu: int, *, usual_weight: bool = False) -> None:
        self._check()
        if key in self.host.workers:
            (self.host.limits if usual_weight else self.host.cpus)[key] = cpu

    async def usage(self) -> list[WorkerUsage]:
        self._check()
        live = [status for status in self.host.workers.values() if status.state != "exited"]
        return [WorkerUsage(allocation=status.allocation, cpu=0.0, memory=0, cpu_s=0.0) for status in live]

    def write(self, allocation: str, text: str) -> None:
        """As if the allocation's worker had printed ``text``."""
        with self.logs.path(allocation).open("a") as file:
            file.write(text)

    def end(self, key: str, code: int, reason: str | None = None) -> None:
        """As if the worker's program had ended."""
        update = {"state": "exited", "exit_code": code, "reason": reason, "pid": None}
        self.host.workers[key] = self.host.workers[key].model_copy(update=update)

    def _change(self, key: str, before: str, after: str) -> None:
        self._check()
        status = self.host.workers.get(key)
        if status is not None and status.state == before:
            self.host.workers[key] = status.model_copy(update={"state": after})

    def _check(self) -> None:
        if not self.available:
            raise RuntimeUnavailable("the fake runtime is set to be away")
