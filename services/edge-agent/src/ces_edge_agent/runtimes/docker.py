"""The docker runtime: workers as containers of the node's engine, in the network namespace of a pause container."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from docker.errors import APIError, ImageNotFound, NotFound
from docker.types import DeviceRequest, LogConfig
from requests.exceptions import ConnectionError as EngineConnectionError
from requests.exceptions import ReadTimeout

from ces_common.messages.reports import WorkerState, WorkerStatus, WorkerUsage
from ces_common.messages.wanted import Endpoint, WorkerWanted
from ces_edge_agent.ports import Refused, RuntimeUnavailable
from ces_edge_agent.runtimes import linux
from ces_edge_agent.runtimes.engine import Engine, answering, explain
from ces_edge_agent.runtimes.follower import Follower
from ces_edge_agent.runtimes.holders import check_host, check_name, hosts_file

T = TypeVar("T")
PIDS = 1024
_HOLDER_MEMORY = 16 * 2**20
_HOLDER_PIDS = 16
_THREADS = 32
_KILL_PATIENCE_S = 10.0
_LOG_PATIENCE_S = 5.0
_SAFE = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
_ENGINE_LOG = LogConfig(type="json-file", config={"max-size": "100m", "max-file": "2"})
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STATES: dict[str, WorkerState] = {"running": "running", "paused": "paused"}


class DockerRuntime:
    """``allowed_images``: patterns (as of a shell) of the images that workers may use. ``pull``: whether an allowed
    image that the engine lacks may be fetched. Containers are told apart by labels naming ``cluster`` and ``node``;
    no other container is ever touched. ``engine``: its URL; None follows DOCKER_HOST."""

    enforced = frozenset({"cpu", "memory", "pids"})

    def __init__(
        self,
        state_dir: Path,
        node: str,
        holder_image: str,
        allowed_images: Sequence[str] = ("ces-worker-*",),
        cluster: str = "ces",
        pull: bool = False,
        engine: str | None = None,
    ) -> None:
        self._logs = state_dir.resolve() / "logs"
        self._holder_image = holder_image
        self._allowed = tuple(allowed_images)
        self._pull = pull
        self._engine = Engine(engine, cluster, node)
        self._threads = ThreadPoolExecutor(_THREADS, "engine")
        self._starting: set[str] = set()
        self._followers: dict[str, Follower] = {}
        self._ended: dict[str, WorkerStatus] = {}
        self._usage: dict[str, tuple[float, float]] = {}

    async def open(self) -> None:
        await self._call(self._open)

    def _open(self) -> None:
        self._logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        with answering("adopt"):
            for entry in self._engine.list("worker"):
                if entry["State"] == "created":  # its agent ended in between: it never ran, and may be made anew
                    self._engine.delete(entry["Id"])
        self._all_status()

    async def close(self) -> None:
        """Containers go on."""

        def let_go() -> None:
            for follower in self._followers.values():
                follower.close()
            self._followers.clear()
            self._engine.close()

        await self._call(let_go)
        self._threads.shutdown(wait=False)
        self._threads = ThreadPoolExecutor(_THREADS, "engine")  # it may be opened again

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Blocking calls have threads of their own: stopping many workers must not hold up the rest of the agent."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    # Holders

    async def holders(self) -> Mapping[str, Path | None]:
        return await self._call(self._all_holders)

    def _all_holders(self) -> dict[str, Path | None]:
        with answering("list holders"):
            running = [entry for entry in self._engine.list("holder") if entry["State"] == "running"]
            return {entry["Labels"]["ces.allocation"]: self._namespace(entry["Id"]) for entry in running}

    def _namespace(self, container: str) -> Path:
        return Path(f"/proc/{self._engine.pid(container)}/ns/net")

    async def ensure_holder(self, endpoint: Endpoint) -> Path | None:
        """The engine fixes a container's host names when it is made: those of a holder that exists stay."""
        return await self._call(self._ensure_holder, endpoint)

    def _ensure_holder(self, endpoint: Endpoint) -> Path:
        key = check_name(endpoint.allocation)
        hosts_file(endpoint)  # for its checks
        with answering(f"holder of {endpoint.allocation}"):
            found = self._engine.find(key)
            if found is not None and not found["State"]["Running"]:
                self._engine.delete(found["Id"], force=True)  # its namespace went with its process
                found = None
            if found is not None:
                return self._namespace(found["Id"])
            return self._namespace(self._make_holder(endpoint))

    def _make_holder(self, endpoint: Endpoint) -> str:
        client = self._engine.client
        made = client.create_container(
            self._holder_image,
            ["sleep", "infinity"],
            name=self._engine.name(endpoint.allocation),
            hostname=check_host(endpoint.hostname),
            labels={**self._engine.labels, "ces.role": "holder", "ces.allocation": endpoint.allocation},
            host_config=client.create_host_config(
                network_mode="none",
                extra_hosts=endpoint.hosts,
                mem_limit=_HOLDER_MEMORY,
                memswap_limit=_HOLDER_MEMORY,
                pids_limit=_HOLDER_PIDS,
                read_only=True,
                **_SAFE,
            ),
        )
        client.start(made["Id"])
        return str(made["Id"])

    async def remove_holder(self, allocation: str) -> None:
        await self._call(self._remove_holder, allocation)

    def _remove_holder(self, allocation: str) -> None:
        with answering(f"holder of {allocation}"):
            found = self._engine.find(check_name(allocation))
            if found is not None:
                self._engine.delete(found["Id"], force=True)

    # Workers

    async def workers(self) -> Mapping[str, WorkerStatus]:
        return await self._call(self._all_status)

    def _all_status(self) -> dict[str, WorkerStatus]:
        with answering("list workers"):
            entries = {_key(entry["Labels"]): entry for entry in self._engine.list("worker")}
            # One that is only created is not there yet: whoever wants it calls start again.
            there = {key: entry for key, entry in entries.items() if entry["State"] not in ("created", "removing")}
            found = {key: self._status(key, entry) for key, entry in there.items()}
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
        reason = detail["Error"] or None
        if detail["OOMKilled"] and detail["ExitCode"]:
            reason = "out of memory"
        return WorkerStatus(
            allocation=allocation,
            incarnation=incarnation,
            state="exited",
            exit_code=detail["ExitCode"],
            reason=reason,
        )

    def _follow(self, key: str, container: str, labels: Mapping[str, str]) -> None:
        follower = self._followers.get(key)
        if follower is None or not (follower.alive or follower.complete):
            path = self.log(labels["ces.allocation"])
            self._followers[key] = Follower(self._engine.client, container, path, int(labels["ces.log-base"]))

    async def start(self, worker: WorkerWanted) -> None:
        if worker.key in self._starting:
            return  # another call is at it; two of them could start a container, which ended at once, again
        self._starting.add(worker.key)
        try:
            await self._call(self._start, worker)
        finally:
            self._starting.discard(worker.key)

    def _start(self, worker: WorkerWanted) -> None:
        with answering(f"worker {worker.key}"):
            found = self._engine.find(check_name(worker.key))
            if found is None:
                container = self._create(worker)
            elif found["State"]["Status"] == "created":
                container = found["Id"]
            else:
                return
            self._run(container, worker)

    def _create(self, worker: WorkerWanted) -> str:
        client = self._engine.client
        holder = self._engine.find(worker.allocation)
        if holder is None or not holder["State"]["Running"]:
            raise RuntimeUnavailable(f"allocation {worker.allocation} has no holder yet")
        image = self._image(worker.image)
        for follower in [self._followers[key] for key in self._followers if key.startswith(f"{worker.allocation}.")]:
            follower.join(_LOG_PATIENCE_S)  # an earlier incarnation's last words come first
        log = self.log(worker.allocation)
        labels = {
            "ces.role": "worker",
            "ces.allocation": worker.allocation,
            "ces.incarnation": str(worker.incarnation),
            "ces.job": worker.job_name,
            "ces.log-base": str(log.stat().st_size if log.exists() else 0),
        }
        gpus = [DeviceRequest(count=worker.gpu, capabilities=[["gpu"]])] if worker.gpu else None
        try:
            made = client.create_container(
                image,
                worker.command or None,
                name=self._engine.name(worker.key),
                environment=worker.env,
                labels={**self._engine.labels, **labels},
                host_config=client.create_host_config(
                    network_mode=f"container:{holder['Id']}",
                    mem_limit=worker.memory,
                    memswap_limit=worker.memory,
                    nano_cpus=worker.cpu * 1_000_000,
                    pids_limit=PIDS,
                    log_config=_ENGINE_LOG,
                    device_requests=gpus,
                    init=True,  # a program that is process 1 would not hear SIGTERM
                    **_SAFE,
                ),
            )
        except APIError as error:
            if error.status_code != 400:
                raise
            raise Refused(f"the engine does not accept the worker: {explain(error)}") from error
        return str(made["Id"])

    def _image(self, image: str | None) -> str:
        """The image if it may be used and is there. Raises Refused."""
        if not image:
            raise Refused("the task names no image, which this node needs")
        if not any(fnmatch.fnmatchcase(image, pattern) for pattern in self._allowed):
            raise Refused(f"image {image} is not among those that this node allows: {', '.join(self._allowed)}")
        client = self._engine.client
        with contextlib.suppress(ImageNotFound):
            client.inspect_image(image)
            return image
        problem = "pulling is not allowed here"
        if self._pull:
            try:
                client.pull(image, tag=None if ":" in image.rpartition("/")[2] else "latest")
                client.inspect_image(image)
            except APIError as error:
                problem = explain(error)
            else:
                return image
        raise Refused(f"image {image} is not known to this node's engine and could not be pulled: {problem}")

    def _run(self, container: str, worker: WorkerWanted) -> None:
        client = self._engine.client
        detail = client.inspect_container(container)
        missing = self._missing_program(container, detail["Config"])
        try:
            if missing:
                raise Refused(f"{missing}: no such program in image {worker.image}")
            client.start(container)
        except (APIError, Refused):
            if client.inspect_container(container)["State"]["Status"] == "created":
                self._engine.delete(container)  # it never ran
            raise
        if worker.paused:
            client.pause(container)
        self._usage[container] = (time.monotonic(), 0.0)
        self._follow(worker.key, container, detail["Config"]["Labels"])

    def _missing_program(self, container: str, config: Mapping[str, Any]) -> str | None:
        """The command's program where it is not in the image: the engine's init would only exit with 127."""
        if config["Entrypoint"] or not config["Cmd"]:
            return None
        program = str(config["Cmd"][0])
        variables = dict(entry.partition("=")[::2] for entry in config["Env"] or [])
        folders = variables.get("PATH", _DEFAULT_PATH).split(":")
        candidates = [program] if "/" in program else [f"{folder}/{program}" for folder in folders]
        return None if any(self._engine.has_file(container, path) for path in candidates) else program

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
                with contextlib.suppress(APIError):
                    self._engine.client.unpause(container)  # after the signal: it acts before the program goes on
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
            follower = self._followers.get(key)
            if follower is not None:
                follower.join(_LOG_PATIENCE_S)
                follower.close()
                del self._followers[key]
            self._engine.delete(found["Id"])
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
            with contextlib.suppress(NotFound):
                (self._engine.client.pause if frozen else self._engine.client.unpause)(found["Id"])

    async def usage(self) -> list[WorkerUsage]:
        return await self._call(self._all_usage)

    def _all_usage(self) -> list[WorkerUsage]:
        """From /proc, as this host's process ids are shared: the engine takes a second to answer for one container."""
        found = []
        seen: dict[str, tuple[float, float]] = {}
        with answering("usage"):
            for entry in self._engine.list("worker"):
                pid = self._engine.pid(entry["Id"]) if entry["State"] in ("running", "paused") else 0
                if not pid:
                    continue
                pids = [pid, *linux.descendants(pid)]
                now, used = time.monotonic(), linux.processor_time(pids)
                since, before = self._usage.get(entry["Id"], (now, used))
                seen[entry["Id"]] = (now, used)
                cpu = max(0.0, used - before) / (now - since) * 1000 if now > since else 0.0
                allocation = entry["Labels"]["ces.allocation"]
                found.append(WorkerUsage(allocation=allocation, cpu=cpu, memory=linux.resident(pids)))
        self._usage = seen
        return found

    def log(self, allocation: str) -> Path:
        return self._logs / f"{check_name(allocation)}.log"


def _key(labels: Mapping[str, str]) -> str:
    return f"{labels['ces.allocation']}.{labels['ces.incarnation']}"
