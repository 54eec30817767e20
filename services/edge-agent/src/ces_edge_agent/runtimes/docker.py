"""The docker runtime: workers are containers of the node's engine, in the namespaces of a pause container."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import structlog
from docker.errors import APIError, NotFound
from docker.types import DeviceRequest, LogConfig
from requests.exceptions import ConnectionError as EngineConnectionError
from requests.exceptions import ReadTimeout

from ces_common.cgroups import hierarchies
from ces_common.disconnect import outlives_s
from ces_common.messages.confinement import Confinement
from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_common.messages.reports import WorkerState, WorkerStatus, WorkerUsage
from ces_edge_agent import linux
from ces_edge_agent.cards import NO_CARDS, MachineCards
from ces_edge_agent.checkpoints.archive import Packed
from ces_edge_agent.cpu_time import WorkerTime
from ces_edge_agent.deadline import LEASE_OVER
from ces_edge_agent.ports import CHECKPOINT, NO_SECRETS, SECRETS_DIR, Refused, RuntimeUnavailable, SandboxNamespaces
from ces_edge_agent.runtimes import container_checkpoints, container_disk, container_secrets
from ces_edge_agent.runtimes.container_meter import ContainerMeter
from ces_edge_agent.runtimes.cpu_meter import CpuMeter
from ces_edge_agent.runtimes.disk_meter import DISK
from ces_edge_agent.runtimes.engine import Engine, answering, explain
from ces_edge_agent.runtimes.image_store import ImageStore
from ces_edge_agent.runtimes.log_copier import LogCopiers
from ces_edge_agent.runtimes.log_folder import LogFolder
from ces_edge_agent.runtimes.names import check_name
from ces_edge_agent.runtimes.pause_containers import HARDENED, PauseContainers

log = structlog.get_logger()
T = TypeVar("T")
PIDS = 1024
_THREADS = 32
_KILL_PATIENCE_S, _LOG_PATIENCE_S = 10.0, 5.0
_LEAST_SHARES = 2
_ENGINE_LOG = LogConfig(type="json-file", config={"max-size": "100m", "max-file": "2"})
_FOREIGN = "exec format error"  # a program for another architecture
ALIVE = ("running", "paused")
_STATES: dict[str, WorkerState] = {"running": "running", "paused": "paused"}


class DockerRuntime:
    """``allowed_images``: patterns of the images that workers may use. ``pull``: whether an allowed image that
    the engine lacks may be fetched. ``engine``: its URL; None follows DOCKER_HOST. ``disk``: bytes that a worker
    may keep. ``lent``: other containers get the CPU first. ``cards``: the machine's GPUs. Only containers with the
    labels of ``cluster`` and ``node`` are ever touched."""

    enforced = frozenset({"cpu", "memory", "pids"})

    def __init__(
        self,
        state_dir: Path,
        node: str,
        sandbox_image: str,
        allowed_images: Sequence[str] = ("ces-worker-*",),
        cluster: str = "ces",
        pull: bool = False,
        engine: str | None = None,
        disk: int = DISK,
        lent: bool = False,
        cards: MachineCards = NO_CARDS,
    ) -> None:
        self.logs = LogFolder(state_dir.resolve() / "logs")
        self._engine = Engine(engine, cluster, node)
        self._images = ImageStore(self._engine, allowed_images, pull)
        self._sandbox_image = sandbox_image
        self._sandboxes = PauseContainers(self._engine, sandbox_image, state_dir.resolve())
        self._disk, self._lent, self._cards = disk, lent, cards
        self._disk_limited = self._disk_measured = self._filtered = False
        self._meter = ContainerMeter(self._engine, state_dir.resolve() / "overfull", disk)
        self._threads = ThreadPoolExecutor(_THREADS, "engine")
        self._starting: set[str] = set()
        self._copiers = LogCopiers()
        self._ended: dict[str, WorkerStatus] = {}
        self._cpu, self._time = CpuMeter(), WorkerTime(hierarchies())

    @property
    def confinement(self) -> Confinement:
        unlimited: Literal["measured", "unbounded"] = "measured" if self._disk_measured else "unbounded"
        disk = "limited" if self._disk_limited else unlimited
        return Confinement(user="own", filter=self._filtered, root="read-only", disk=disk)

    async def open(self) -> None:
        await self._call(self._open)

    def _open(self) -> None:
        self.logs.create()
        with answering("adopt"):
            self._sandboxes.open()
            if not self._engine.shares_kernel():
                log.warning("the engine runs on another kernel: the lease is kept by the agent alone")
            self._disk_limited = container_disk.has_quota(self._engine.client)
            self._disk_measured = self._meter.open() and not self._disk_limited
            if not self._disk_limited and not self._disk_measured:
                log.warning("how much workers keep is not bounded: the engine has no quotas, and the agent cannot look")
            self._filtered = self._engine.filters_calls()
            container_secrets.discard(self._engine)
            for entry in self._engine.list("worker"):
                if entry["State"] == "created":  # the agent ended before it started: it never ran
                    self._engine.delete(entry["Id"])
        self._all_status()

    async def close(self) -> None:
        """Containers go on."""

        def release() -> None:
            self._copiers.close()
            self._engine.close()

        await self._call(release)
        self._threads.shutdown(wait=False)
        self._threads = ThreadPoolExecutor(_THREADS, "engine")  # it may be opened again

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a blocking call in a thread pool of the runtime: stopping many workers must not block the agent."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    # Sandboxes

    async def sandboxes(self) -> SandboxNamespaces:
        return await self._call(self._sandboxes.all)

    async def ensure_sandbox(self, endpoint: Endpoint) -> str | None:
        return await self._call(self._sandboxes.ensure, endpoint)

    async def remove_sandbox(self, allocation: str) -> None:
        await self._call(self._sandboxes.remove, allocation)

    # Workers

    async def workers(self) -> Mapping[str, WorkerStatus]:
        return await self._call(self._all_status)

    def _all_status(self) -> dict[str, WorkerStatus]:
        with answering("list workers"):
            entries = {_key(entry["Labels"]): entry for entry in self._engine.list("worker")}
            # A container that was created but not started does not count: start is called again.
            there = {key: entry for key, entry in entries.items() if entry["State"] not in ("created", "removing")}
            found = {key: self._status(key, entry) for key, entry in there.items()}
            if self._disk_measured:
                self._meter.look({key: there[key]["Id"] for key, status in found.items() if status.state in ALIVE})
            for key, entry in there.items():
                self._follow(key, entry["Id"], entry["Labels"])
        self._ended = {key: status for key, status in found.items() if status.state == "exited"}
        return found

    def _status(self, key: str, entry: dict[str, Any]) -> WorkerStatus:
        if key in self._ended:
            return self._ended[key]
        labels = entry["Labels"]
        allocation, incarnation = labels["ces.allocation"], int(labels["ces.incarnation"])
        state = _STATES.get(entry["State"])
        if state is not None:
            pid = self._engine.pid(entry["Id"]) or None
            return WorkerStatus(allocation=allocation, incarnation=incarnation, state=state, pid=pid)
        detail = self._engine.client.inspect_container(entry["Id"])["State"]
        reason = self._meter.reason(key) or detail["Error"] or None
        if detail["OOMKilled"] and detail["ExitCode"]:
            reason = "out of memory"
        lapsed = self._sandboxes.lapsed(allocation)
        return WorkerStatus(
            allocation=allocation,
            incarnation=incarnation,
            state="exited",
            exit_code=detail["ExitCode"],
            reason=LEASE_OVER if lapsed else reason,
            lapsed=lapsed,
        )

    def _follow(self, key: str, container: str, labels: Mapping[str, str]) -> None:
        path = self.logs.path(labels["ces.allocation"])
        self._copiers.follow(key, self._engine.client, container, path, int(labels["ces.log-base"]))

    async def prepare(self, worker: DesiredWorker) -> None:
        await self._call(self._prepare, worker)

    def _prepare(self, worker: DesiredWorker) -> None:
        self._cards.check(worker)
        with answering(f"the image of worker {worker.key}"):
            self._images.get(worker.image)

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        if worker.key in self._starting:
            return  # two calls at once could start a container twice that ends immediately
        self._starting.add(worker.key)
        try:
            await self._call(self._start, worker, secrets, checkpoint)
        finally:
            self._starting.discard(worker.key)

    def _start(self, worker: DesiredWorker, secrets: Mapping[str, bytes], checkpoint: IO[bytes] | None) -> None:
        with answering(f"worker {worker.key}"):
            found = self._engine.find(check_name(worker.key))
            if checkpoint is not None and (found is None or found["State"]["Status"] == "created"):
                if found is not None:
                    self._engine.delete(found["Id"])
                container_checkpoints.discard(self._engine, worker.job)  # what lies there may be something else
                found = None
            if found is None:
                container = self._create(worker)
            elif found["State"]["Status"] == "created":
                container = found["Id"]
            else:
                return
            self._run(container, worker, secrets, checkpoint)

    def _create(self, worker: DesiredWorker) -> str:
        client = self._engine.client
        sandbox = self._engine.find(worker.allocation)
        if sandbox is None or not sandbox["State"]["Running"]:
            raise RuntimeUnavailable(f"allocation {worker.allocation} has no sandbox yet")
        image, description = self._images.get(worker.image)
        folder = container_disk.folder_of(description)
        self._sandboxes.prepare(worker.allocation, outlives_s(worker.disconnect))
        self._copiers.finish(worker.allocation, _LOG_PATIENCE_S)  # the output of earlier incarnations comes first
        labels = {
            "ces.role": "worker",
            "ces.allocation": worker.allocation,
            "ces.incarnation": str(worker.incarnation),
            "ces.job": worker.job_name,
            "ces.log-base": str(self.logs.end(worker.allocation)),
        }
        options = container_disk.options(folder, worker.memory, self._disk, self._disk_limited)
        env = worker.env | self._cards.environment(worker)
        if worker.checkpoint:
            limit = self._disk if self._disk_limited else None
            options["mounts"].append(container_checkpoints.mount(self._engine, worker.job, limit))
            env = {**env, CHECKPOINT: container_checkpoints.FOLDER}
        if worker.secrets:
            options["mounts"].append(container_secrets.mount())
            env = {**env, SECRETS_DIR: container_secrets.FOLDER}
        which = {"device_ids": self._cards.engine_ids(worker)} if worker.cards else {"count": worker.gpu}
        gpus = [DeviceRequest(**which, capabilities=[["gpu"]])] if worker.gpu or worker.gpu_share else None
        if gpus is None:  # where NVIDIA's runtime is the engine's usual one, an image or a job could else ask for all
            env = {**env, "NVIDIA_VISIBLE_DEVICES": "void"}
        try:
            made = client.create_container(
                image,
                worker.command or None,
                name=self._engine.name(worker.key),
                environment=env,
                labels={**self._engine.labels, **labels},
                working_dir=folder,
                host_config=client.create_host_config(
                    network_mode=f"container:{sandbox['Id']}",
                    pid_mode=f"container:{sandbox['Id']}",
                    mem_limit=worker.memory,
                    memswap_limit=worker.memory,
                    nano_cpus=worker.cpu * 1_000_000,
                    cpu_shares=_LEAST_SHARES if self._lent else None,
                    pids_limit=PIDS,
                    log_config=_ENGINE_LOG,
                    device_requests=gpus,
                    **options,
                    **HARDENED,
                ),
            )
        except APIError as error:
            if error.status_code != 400:
                raise
            raise Refused(f"the engine does not accept the worker: {explain(error)}") from error
        return str(made["Id"])

    def _run(
        self, container: str, worker: DesiredWorker, secrets: Mapping[str, bytes], checkpoint: IO[bytes] | None
    ) -> None:
        client = self._engine.client
        detail = client.inspect_container(container)
        missing = self._engine.missing_program(container, detail["Config"])
        try:
            if missing:
                raise Refused(f"{missing}: no such program in image {worker.image}")
            if detail["Config"]["WorkingDir"] == container_disk.FOLDER:
                container_disk.make_folder(client, container)
            if worker.checkpoint:
                container_checkpoints.fill(client, container, checkpoint, self._disk)
            with self._secrets_in(detail, worker, secrets):
                client.start(container)
        except (APIError, Refused) as error:
            if client.inspect_container(container)["State"]["Status"] == "created":
                self._engine.delete(container)  # it never ran
            if isinstance(error, APIError) and (error.status_code == 400 or _FOREIGN in explain(error)):
                raise Refused(f"the program cannot be executed: {explain(error)}") from error
            raise
        if worker.paused:
            client.pause(container)
        self._cpu.start(container)
        self._follow(worker.key, container, detail["Config"]["Labels"])

    def _secrets_in(
        self, detail: Mapping[str, Any], worker: DesiredWorker, secrets: Mapping[str, bytes]
    ) -> AbstractContextManager[None]:
        if not worker.secrets:
            return nullcontext()
        return container_secrets.filled(self._engine, self._sandbox_image, worker.key, detail["Mounts"], secrets)

    async def keep_checkpoints(self, jobs: Collection[str]) -> None:
        await self._call(container_checkpoints.keep, self._engine, jobs)

    async def pack_checkpoint(self, job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
        return await self._call(container_checkpoints.pack, self._engine, self._sandbox_image, job, into, limit, seen)

    async def stop(self, key: str, grace_s: float) -> None:
        await self._call(self._stop, key, grace_s)

    def _stop(self, key: str, grace_s: float) -> None:
        with answering(f"worker {key}"):
            found = self._engine.find(check_name(key))
            if found is None:
                return
            container = found["Id"]
            for signal, patience in (("SIGTERM", grace_s), ("SIGKILL", _KILL_PATIENCE_S)):
                try:
                    self._engine.client.kill(container, signal)
                except NotFound:
                    return
                except APIError as error:
                    if error.status_code == 409:
                        return  # not running
                    raise
                with suppress(APIError):  # after the signal, which acts before the program continues
                    self._engine.client.unpause(container)
                if self._wait(container, patience):
                    return

    def _wait(self, container: str, patience_s: float) -> bool:
        try:
            self._engine.client.wait(container, timeout=max(patience_s, 0.05))
        except (ReadTimeout, EngineConnectionError):
            return False
        except NotFound:
            return True
        return True

    async def remove(self, key: str) -> None:
        await self._call(self._remove, key)

    def _remove(self, key: str) -> None:
        with answering(f"worker {key}"):
            found = self._engine.find(check_name(key))
            if found is None or found["State"]["Running"]:
                return
            self._copiers.end(key, _LOG_PATIENCE_S)
            self._engine.delete(found["Id"])
            self._meter.forget(key)
            self._ended.pop(key, None)

    async def pause(self, key: str) -> None:
        await self._call(self._freeze, key, True)

    async def resume(self, key: str) -> None:
        await self._call(self._freeze, key, False)

    def _freeze(self, key: str, frozen: bool) -> None:
        with answering(f"worker {key}"):
            found = self._engine.find(check_name(key))
            if found is None or not found["State"]["Running"] or found["State"]["Paused"] == frozen:
                return
            with suppress(NotFound):
                (self._engine.client.pause if frozen else self._engine.client.unpause)(found["Id"])

    async def limit_cpu(self, key: str, cpu: int, *, usual_weight: bool = False) -> None:
        with answering(f"worker {key}"):
            await self._call(self._engine.limit_cpu, self._engine.name(check_name(key)), cpu, usual_weight)

    async def usage(self) -> list[WorkerUsage]:
        return await self._call(self._all_usage)

    def _all_usage(self) -> list[WorkerUsage]:
        """Read from the kernel: the engine takes a second to answer for one container."""
        with answering("usage"):
            alive = [each for each in self._engine.list("worker") if each["State"] in ("running", "paused")]
            pids = {each["Id"]: (self._engine.pid(each["Id"]), each["Labels"]["ces.allocation"]) for each in alive}
        running = {container: (pid, allocation) for container, (pid, allocation) in pids.items() if pid}
        used = self._time.used([pid for pid, _ in running.values()])
        usage = []
        for container, (pid, allocation) in running.items():
            cpu, memory = self._cpu.sample(container, used[pid]), linux.resident([pid, *linux.descendants(pid)])
            usage.append(WorkerUsage(allocation=allocation, cpu=cpu, memory=memory, cpu_s=used[pid]))
        self._cpu.keep(running)
        return usage


def _key(labels: Mapping[str, str]) -> str:
    return f"{labels['ces.allocation']}.{labels['ces.incarnation']}"
