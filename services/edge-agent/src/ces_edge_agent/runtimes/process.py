"""The process runtime: workers are processes of this machine, each under a shim that outlives the agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO

import structlog

from ces_common import cgroups
from ces_common.disconnect import KEEP, outlives_s
from ces_common.messages.confinement import REMEDY, Confinement
from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_common.messages.reports import WorkerState, WorkerStatus, WorkerUsage
from ces_common.names import short_hash
from ces_common.service import BadSetup
from ces_edge_agent import linux
from ces_edge_agent.cards import NO_CARDS, MachineCards, of_numbers
from ces_edge_agent.checkpoints.archive import Packed, Unfit
from ces_edge_agent.deadline import deadline_file
from ces_edge_agent.files import sync
from ces_edge_agent.ports import CHECKPOINT, NO_SECRETS, SECRETS_DIR, Refused, RuntimeUnavailable, SandboxNamespaces
from ces_edge_agent.runtimes import log_file, record, secret_files, shim_signals, syscall_filter
from ces_edge_agent.runtimes.checkpoint_folders import CheckpointFolders
from ces_edge_agent.runtimes.cpu_meter import CpuMeter
from ces_edge_agent.runtimes.disk_meter import DISK
from ces_edge_agent.runtimes.isolation import private_tmp
from ces_edge_agent.runtimes.log_folder import LogFolder
from ces_edge_agent.runtimes.names import check_name
from ces_edge_agent.runtimes.programs import SEARCH_PATH, closed_to_others, environment, resolve
from ces_edge_agent.runtimes.sandboxes import Sandboxes
from ces_edge_agent.runtimes.worker_users import DEFAULT_UIDS, WorkerUsers, parse_uids
from ces_edge_agent.trees import remove_tree

log = structlog.get_logger()
PIDS = 1024
_RESOLVER = "/etc/resolv.conf"  # often a link to /run, which is hidden
_MARK = "CES_WORKER"
_KILL_PATIENCE_S = 5.0
_SOURCES = str(Path(__file__).parents[2]), str(Path(cgroups.__file__).parents[1])
_SHIM = "import sys; sys.path += sys.argv[2:]; from ces_edge_agent.runtimes.shim import main; main(sys.argv[1])"


class ProcessRuntime:
    """``isolate`` (needs root) gives each allocation a network namespace. Workers of root's agent are confined:
    each has mounts and process ids of its own, and a user of ``uids``. ``hide``: files and folders that they do not
    see, besides ``state_dir``. ``disk``: bytes that a worker may keep in its folder. ``lent``: its owner's programs get
    the CPU first. ``cards``: the machine's GPUs. An image is ignored; ``python`` is the agent's interpreter."""

    def __init__(
        self,
        state_dir: Path,
        node: str,
        isolate: bool,
        cluster: str = "ces",
        hide: Sequence[Path] = (),
        uids: range = parse_uids(DEFAULT_UIDS),
        disk: int = DISK,
        lent: bool = False,
        cards: MachineCards = NO_CARDS,
    ) -> None:
        self._state = state_dir.resolve()
        self._isolate = isolate
        self._hide = [str(self._state), *(str(path.resolve()) for path in hide)]
        self._workers = self._state / "workers"
        self._users = WorkerUsers(self._state / "work", uids)
        self._checkpoints = CheckpointFolders(self._state / "checkpoints")
        self._sandboxes = Sandboxes(self._state / "sandboxes", f"{cluster}-{node}", isolate)
        self._disk, self._lent, self._cards = disk, lent, cards
        # Apart, where one machine has lent nodes and others: a whole subtree has the lowest weight.
        self._group_prefix = f"{'ces-lent' if lent else 'ces'}/{cluster}-{node}-{short_hash(str(self._state))}"
        self._roots: dict[str, str] = {}
        self.logs = LogFolder(self._state / "logs")
        self._cpu = CpuMeter()
        self.enforced: frozenset[str] = frozenset()
        """Which of ``cpu``, ``memory`` and ``pids`` the kernel limits. If not ``memory``, the shim watches it."""

    @property
    def confinement(self) -> Confinement:
        confined = self._confined
        return Confinement(
            user="own" if self._users.several else "shared",
            filter=syscall_filter.available(),
            root="read-only" if confined else "writable",
            disk="measured" if confined else "unbounded",  # it could write elsewhere
        )

    @property
    def _confined(self) -> bool:
        """Whether workers get mounts and process ids of their own."""
        return self._users.own or self._isolate

    async def open(self) -> None:
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            raise RuntimeUnavailable(f"process runtime: {error}") from error

    def _open(self) -> None:
        self.logs.create()
        self._workers.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._users.open()
        self._checkpoints.open()
        if self._users.own and (closed := closed_to_others(environment())):
            raise BadSetup(
                f"workers run as users of their own, who may not read {closed[0]}, which the agent's Python needs: "
                f"chmod -R o+rX {closed[0]}"
            )
        if not syscall_filter.available():
            log.warning("no system calls are kept from workers: the kernel has no seccomp, or another architecture")
        self._roots = cgroups.hierarchies()
        probe = cgroups.Group(self._roots, f"{self._group_prefix}/probe")
        self.enforced = probe.create(1000, 2**30, PIDS) - {"freezer"}
        probe.remove()
        self._sandboxes.open()
        for directory in self._workers.iterdir():
            if directory.name.startswith("."):
                remove_tree(directory)  # the agent ended before the record was complete
            else:
                self._adopt(directory)

    def _adopt(self, directory: Path) -> None:
        if record.read_exit(directory):
            return
        lock = record.claim(directory)
        if lock is None:
            shim_signals.tell(directory, signal.SIGUSR2)  # repeat a pause or resume that may have been cut short
            return
        # We hold the claim, so no shim has started the worker, and a late one will not: it never ran and may be started
        # again. Renamed before it is deleted, since a shim finds its folder by name.
        discarded = tempfile.mkdtemp(prefix=f".{directory.name}.", dir=self._workers)
        os.rename(directory, discarded)
        os.close(lock)
        remove_tree(Path(discarded))

    async def close(self) -> None:
        """Shims and workers go on."""
        self._cpu = CpuMeter()

    async def sandboxes(self) -> SandboxNamespaces:
        return await asyncio.to_thread(self._sandboxes.all)

    async def ensure_sandbox(self, endpoint: Endpoint) -> str | None:
        try:
            return await asyncio.to_thread(self._sandboxes.ensure, endpoint)
        except OSError as error:
            raise RuntimeUnavailable(f"sandbox of {endpoint.allocation}: {error}") from error

    async def remove_sandbox(self, allocation: str) -> None:
        def remove() -> None:
            self._sandboxes.remove(allocation)
            remove_tree(self._state / "work" / allocation)

        try:
            await asyncio.to_thread(remove)
        except OSError as error:
            raise RuntimeUnavailable(f"sandbox of {allocation}: {error}") from error

    async def workers(self) -> Mapping[str, WorkerStatus]:
        return await asyncio.to_thread(self._all_status)

    def _all_status(self) -> dict[str, WorkerStatus]:
        statuses = {directory.name: self._status(directory) for directory in self._directories()}
        return {name: status for name, status in statuses.items() if status is not None}

    def _directories(self) -> list[Path]:
        return [entry for entry in self._workers.iterdir() if not entry.name.startswith(".")]

    def _status(self, directory: Path) -> WorkerStatus | None:
        allocation, _, incarnation = directory.name.rpartition(".")
        # Before the look at its lock: a shim that comes in between has not vanished.
        claimed = (directory / "claim").exists()
        alive = record.claimant(directory) is not None
        started = record.read_started(directory)
        ended = record.read_exit(directory)
        state: WorkerState = "starting" if started is None else "running"
        if (directory / "paused").exists():
            state = "paused"
        if ended is None and not alive and claimed:
            ended = self._vanished(directory)
        if ended is not None:
            state = "exited"
        elif not directory.exists():
            return None
        return WorkerStatus(
            allocation=allocation,
            incarnation=int(incarnation),
            state=state,
            exit_code=ended.code if ended else None,
            reason=ended.reason if ended else None,
            pid=started.pid if started and not ended else None,
            lapsed=ended.lapsed if ended else False,
        )

    def _vanished(self, directory: Path) -> record.Exit:
        """End what a shim left that was killed or could not write its exit record, and write that record for it."""
        try:
            rebooted = record.WorkerRecord.load(directory).boot != linux.boot_id()
        except (OSError, ValueError):
            rebooted = False  # nothing to end then, and no harm in trying
        reason = "node rebooted"
        if not rebooted:
            reason = "shim vanished" + record.last_words(directory)
            group = cgroups.Group(self._roots, f"{self._group_prefix}/{directory.name}")
            group.kill()
            for pid in linux.carrying(self._mark(directory.name)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            group.remove()
        remove_tree(record.secrets_folder(directory))
        ended = record.Exit(record.UNKNOWN_EXIT, reason, ended=time.time())
        with contextlib.suppress(OSError):  # on a full disk, say: the next look tries again
            record.write_exit(directory, ended)
        return ended

    def _mark(self, key: str) -> str:
        return f"{_MARK}={short_hash(str(self._state))}/{key}"

    async def prepare(self, worker: DesiredWorker) -> None:
        """There is nothing to fetch. Secrets of workers that share a user would be each other's."""
        await asyncio.to_thread(self._cards.check, worker)  # it may have to ask the driver
        if worker.secrets and not self.confinement.keeps_secrets:
            raise Refused(f"only workers with a user of their own are given secrets, and here all share one: {REMEDY}")

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        check_name(worker.allocation)
        if (self._workers / worker.key).exists():
            return
        if self._isolate and not self._sandboxes.exists(worker.allocation):
            raise RuntimeUnavailable(f"allocation {worker.allocation} has no sandbox yet")
        try:
            answer = await asyncio.to_thread(self._start, worker, secrets, checkpoint)
        except (OSError, Unfit) as error:
            raise RuntimeUnavailable(f"worker {worker.key}: {error}") from error
        kind, _, text = answer.partition(": ")
        if kind != "running":
            await shim_signals.ended(self._workers / worker.key, _KILL_PATIENCE_S)
            await self.remove(worker.key)  # the program never ran
            raise Refused(text) if kind == "refused" else RuntimeUnavailable(f"worker {worker.key}: {text or answer}")
        if worker.paused:
            await self.pause(worker.key)

    def _start(self, worker: DesiredWorker, secrets: Mapping[str, bytes], checkpoint: IO[bytes] | None) -> str:
        directory = self._workers / worker.key
        plan = self._plan(worker, checkpoint)
        spare = Path(tempfile.mkdtemp(prefix=f".{worker.key}.", dir=self._workers))
        plan.save(spare)
        try:
            os.rename(spare, directory)
        except OSError:
            remove_tree(spare)
            if directory.exists():
                return "running"  # another call was faster
            raise
        sync(self._workers)
        with open(record.shim_log(directory), "wb") as errors:
            shim = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _SHIM, str(directory), *_SOURCES],
                input=secret_files.encode(secrets) if plan.secrets else b"",
                stdout=subprocess.PIPE,
                stderr=errors,
                env={},
                check=False,
            )
        self._cpu.start(worker.key)
        answer = shim.stdout.decode(errors="replace")
        if not answer and (directory / "claim").exists():
            return "running"  # it may have run: it must not be started again
        return answer or "failed: the shim ended before it began" + record.last_words(directory)

    def _plan(self, worker: DesiredWorker, checkpoint: IO[bytes] | None) -> record.WorkerRecord:
        owners = self._checkpoints.owners()
        like = owners.get(worker.job) if worker.checkpoint else None
        folder, uid, gid = self._users.give(worker.allocation, like, owners.values())
        devices = self._cards.device_files(worker)
        env = {
            "PATH": f"{Path(sys.executable).parent}:{SEARCH_PATH}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            **worker.env,
            **self._cards.environment(worker, hidden=self._confined and of_numbers(devices)),
            _MARK: self._mark(worker.key).removeprefix(f"{_MARK}="),
        }
        program, argv = resolve(worker.command, env["PATH"], folder)
        boxes = self._sandboxes if self._isolate else None
        if (confined := self._confined) and not private_tmp(program, argv):
            env.setdefault("TMPDIR", str(folder))
        secrets = checkpoints = None
        if worker.checkpoint:
            given = self._checkpoints.give(worker.job, worker.key, uid, gid, checkpoint, self._disk)
            env[CHECKPOINT] = checkpoints = str(given)
        if worker.secrets:
            env[SECRETS_DIR] = secrets = secret_files.PRIVATE_FOLDER
        return record.WorkerRecord(
            key=worker.key,
            allocation=worker.allocation,
            incarnation=worker.incarnation,
            boot=linux.boot_id(),
            program=program,
            argv=argv,
            env=env,
            folder=str(folder),
            confined=confined,
            hide=self._hide,
            show=[*environment(), *([] if boxes else [os.path.realpath(_RESOLVER)])] if confined else [],
            log=str(self.logs.path(worker.allocation)),
            log_limit=log_file.LIMIT,
            uid=uid,
            gid=gid,
            cpu=worker.cpu,
            memory=worker.memory,
            pids=PIDS,
            devices=devices,
            cgroup=f"{self._group_prefix}/{worker.key}",
            cgroup_roots=self._roots,
            netns=str(boxes.namespace(worker.allocation)) if boxes else None,
            hosts=str(boxes.hosts(worker.allocation)) if boxes else None,
            hostname=boxes.hostname(worker.allocation) if boxes else None,
            deadline=None if worker.disconnect == KEEP else str(deadline_file(self._state)),
            outlives_s=0.0 if worker.disconnect == KEEP else outlives_s(worker.disconnect),
            secrets=secrets,
            disk=self._disk,
            checkpoints=checkpoints,
            lowest=self._lent,
        )

    async def keep_checkpoints(self, jobs: Collection[str]) -> None:
        await asyncio.to_thread(self._checkpoints.keep, jobs)

    async def pack_checkpoint(self, job: str, into: IO[bytes], limit: int, seen: str | None) -> Packed | None:
        return await asyncio.to_thread(self._checkpoints.pack, job, into, limit, seen)

    async def stop(self, key: str, grace_s: float) -> None:
        directory = self._directory(key)
        if not shim_signals.tell(directory, signal.SIGTERM) or await shim_signals.ended(directory, grace_s):
            return
        shim_signals.tell(directory, signal.SIGUSR1)
        if await shim_signals.ended(directory, _KILL_PATIENCE_S):
            return
        shim_signals.tell(directory, signal.SIGKILL)  # it hangs; _status ends what it leaves behind
        await shim_signals.ended(directory, _KILL_PATIENCE_S)
        await asyncio.to_thread(self._status, directory)

    def _directory(self, key: str) -> Path:
        return self._workers / check_name(key)

    async def remove(self, key: str) -> None:
        directory = self._directory(key)
        if record.claimant(directory) is None:
            await asyncio.to_thread(remove_tree, directory)

    async def pause(self, key: str) -> None:
        directory = self._directory(key)
        if record.claimant(directory) is not None:
            (directory / "paused").touch()
            shim_signals.tell(directory, signal.SIGUSR2)

    async def resume(self, key: str) -> None:
        directory = self._directory(key)
        (directory / "paused").unlink(missing_ok=True)
        shim_signals.tell(directory, signal.SIGUSR2)

    async def limit_cpu(self, key: str, cpu: int, *, usual_weight: bool = False) -> None:
        group = cgroups.Group(self._roots, f"{self._group_prefix}/{check_name(key)}")
        if not group.limit_cpu(cpu, usual_weight=usual_weight) and "cpu" in self.enforced:
            raise RuntimeUnavailable(f"worker {key}: its CPU cannot be limited")

    async def usage(self) -> list[WorkerUsage]:
        return await asyncio.to_thread(self._all_usage)

    def _all_usage(self) -> list[WorkerUsage]:
        found, running = [], set()
        for directory in self._directories():
            shim = record.claimant(directory)
            started = record.read_started(directory)
            if shim is None or started is None:
                continue
            group = cgroups.Group(self._roots, f"{self._group_prefix}/{directory.name}")
            used, memory = group.processor_time(), group.memory()
            if used is None or memory is None:
                pids = linux.descendants(shim)
                used = linux.processor_time(pids) if used is None else used
                memory = linux.resident(pids) if memory is None else memory
            running.add(directory.name)
            allocation, cpu = directory.name.rpartition(".")[0], self._cpu.sample(directory.name, used)
            found.append(WorkerUsage(allocation=allocation, cpu=cpu, memory=memory, cpu_s=used))
        self._cpu.keep(running)
        return found
