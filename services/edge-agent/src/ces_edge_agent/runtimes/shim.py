"""The shim: one small process per worker that outlives the agent. But for ces_common.cgroups it needs the standard
library only, so that it starts fast.

It claims the worker, starts its program (in the sandbox's network namespace, with mounts, process ids, a user and a
control group of its own, and fewer system calls), copies its output to the allocation's log, and records how it ended.
Secrets of the worker come on standard input, and go from there into the memory that its own mounts show.
The agent controls it by signals: SIGTERM asks the program to end, SIGUSR1 kills it, SIGUSR2 applies the ``paused``
mark. When the lease has run out, the shim ends the program, whether or not an agent runs. One line on standard output
tells the agent how the start went: ``running``, ``refused: why`` (the program cannot be executed) or ``failed: why``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ces_common.cgroups import Group
from ces_edge_agent import linux
from ces_edge_agent.deadline import LAST_GRACE_S, LEASE_OVER, LeaseWatch, boot_clock
from ces_edge_agent.runtimes import isolation, record, secret_files, syscall_filter
from ces_edge_agent.runtimes.disk_meter import DiskMeter
from ces_edge_agent.runtimes.log_file import LogFile

_WATCH_S = 0.5  # how often the lease is checked, and memory if the kernel does not limit it
_DRAIN_S = 2.0
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_NEVER_RAN = 127
_TOO_LARGE = 128 + signal.SIGXFSZ


class Shim:
    """Supervises one worker from its start to its exit record."""

    def __init__(self, directory: Path, worker: record.WorkerRecord, secrets: Mapping[str, bytes]) -> None:
        self._directory = directory
        self._worker = worker
        self._secrets = secrets
        self._group = Group(worker.cgroup_roots, worker.cgroup)
        self._log = LogFile(worker.log, worker.log_limit)
        self._enforced: frozenset[str] = frozenset()
        self._init: int | None = None
        self._program = 0
        self._status: int | None = None
        self._stopping = False
        self._reason: str | None = None
        self._lease = (
            LeaseWatch(Path(worker.deadline), worker.boot, outlives_s=worker.outlives_s) if worker.deadline else None
        )
        self._disk = DiskMeter(worker.writable, worker.disk, _below_here) if worker.disk else None
        self._kill_at: float | None = None  # on the boot clock; None while the lease holds

    def run(self, report: Callable[[str], None]) -> None:
        wake = _wakeups()
        started = time.time()
        worker = self._worker
        self._enforced = self._group.create(worker.cpu, worker.memory, worker.pids, worker.lowest)
        try:
            self._run(report, started, wake)
        finally:
            self._group.remove()

    def _run(self, report: Callable[[str], None], started: float, wake: int) -> None:
        output, output_end = os.pipe()
        os.set_blocking(output, False)
        problem = self._launch(output_end)
        self._secrets = {}
        os.close(output_end)
        if problem:
            self._finish(output)
            reason = problem.partition(": ")[2]
            ended = record.Exit(_NEVER_RAN, reason, started, time.time())
            record.write_exit(self._directory, ended)
            report(problem)
            return
        started_record: dict[str, object] = {
            "pid": self._program,
            "enforced": sorted(self._enforced - {"freezer"}),
        }
        try:
            record.write(self._directory / "started.json", started_record)
        except OSError as error:  # a worker without a record must not run
            self._reason, self._stopping = f"its start could not be recorded: {error}", True
            self._kill()
        report("running")
        self._supervise(wake, output)
        self._finish(output)
        record.write_exit(self._directory, self._exit(started))

    def _launch(self, output_end: int) -> str:
        """Start the program; returns what went wrong, or an empty string."""
        ready, ready_end = os.pipe()
        try:
            if not self._worker.confined:
                linux.adopt_orphans()
            else:
                # The init of a new process id namespace: when it ends, the kernel kills everything else in there.
                linux.unshare(linux.CLONE_NEWPID)
                self._init = os.fork()
                if self._init == 0:
                    _idle()
            self._program = os.fork()
        except OSError as error:
            return f"failed: {error}"
        if self._program == 0:
            os.close(ready)
            _become(self._worker, self._secrets, self._group, output_end, ready_end)
        os.close(ready_end)
        with open(ready, "rb") as file:  # reaches its end when the program is executed; otherwise says why it is not
            return file.read().decode(errors="replace")

    def _supervise(self, wake: int, output: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(output, select.POLLIN)
        measured = "memory" not in self._enforced
        watching = measured or self._lease is not None or self._disk is not None
        watched = 0.0
        while self._status is None:
            for fd, _ in poll.poll(_WATCH_S * 1000 if watching else None):
                if fd == wake:
                    for number in set(os.read(wake, 4096)):
                        self._on_signal(number)
                elif not self._copy(output):
                    poll.unregister(output)
            if watching and time.monotonic() - watched > _WATCH_S:
                watched = time.monotonic()
                if measured:
                    self._watch_memory()
                self._watch_disk()
                self._watch_lease()

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGTERM:
            if self._kill_at is None:  # otherwise it was asked already, and its grace is not extended
                self._ask_to_end()
        elif number == signal.SIGUSR1:
            self._stopping = True
            self._kill()
        elif number == signal.SIGUSR2 and not self._stopping:
            self._set_frozen((self._directory / "paused").exists())

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._program:
                    self._status = status
                elif pid == self._init:
                    self._init = None

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._program, number)

    def _set_frozen(self, frozen: bool) -> None:
        if "freezer" in self._enforced and self._group.freeze(frozen):
            return
        self._signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _kill(self) -> None:
        self._group.kill()
        if self._init is not None:
            os.kill(self._init, signal.SIGKILL)
        for pid in linux.descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _watch_memory(self) -> None:
        used = linux.resident([self._program, *linux.descendants(self._program)])
        if used > self._worker.memory:
            self._end(f"out of memory: {used} bytes in use, {self._worker.memory} allowed")

    def _watch_disk(self) -> None:
        if self._disk is not None and (problem := self._disk.look()):
            self._end(problem)

    def _end(self, reason: str) -> None:
        """End the program for what it has done, unless it is about to end for another reason."""
        if not self._stopping:
            self._reason, self._stopping = reason, True
            self._kill()

    def _watch_lease(self) -> None:
        if self._lease is None or self._status is not None:
            return
        if self._kill_at is not None:
            if boot_clock() >= self._kill_at:
                self._kill()
        elif self._lease.lapsed():
            self._kill_at = boot_clock() + LAST_GRACE_S
            if not self._stopping:
                self._ask_to_end()

    def _ask_to_end(self) -> None:
        self._stopping = True
        self._signal(signal.SIGTERM)
        self._set_frozen(False)

    def _copy(self, output: int) -> bool:
        """Copy waiting output to the log; False once every writer has closed it."""
        try:
            data = os.read(output, 65536)
        except BlockingIOError:
            return True
        self._log.write(data)
        return bool(data)

    def _finish(self, output: int) -> None:
        """End the program's descendants, and copy the rest of their output."""
        deadline = time.monotonic() + _DRAIN_S
        with contextlib.suppress(ChildProcessError):
            while time.monotonic() < deadline:
                self._kill()
                self._copy(output)
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    time.sleep(0.002)
                elif pid == self._init:
                    self._init = None
        poll = select.poll()
        poll.register(output, select.POLLIN)
        while time.monotonic() < deadline and poll.poll(100):
            if not self._copy(output):
                break

    def _exit(self, started: float) -> record.Exit:
        code = os.waitstatus_to_exitcode(self._status or 0)
        reason = self._reason
        if code == -signal.SIGKILL and self._group.memory_kills():
            reason = f"out of memory: more than {self._worker.memory} bytes"
        if code < 0:
            code = 128 - code
        if code == _TOO_LARGE and self._worker.disk:
            reason = reason or f"disk limit exceeded: a file of more than {self._worker.disk} bytes"
        lapsed = self._kill_at is not None
        return record.Exit(code, reason or (LEASE_OVER if lapsed else None), started, time.time(), lapsed)


def _below_here() -> list[int]:
    """All processes of the worker, also those whose parents have ended."""
    return linux.descendants(os.getpid())


def _wakeups() -> int:
    """A descriptor from which the number of every arriving signal can be read."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader


def _idle() -> None:
    """Be the init of a process id namespace: adopt orphans, and end with the shim."""
    signal.set_wakeup_fd(-1)
    linux.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the kernel reaps
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    while True:
        signal.pause()


def _become(
    worker: record.WorkerRecord, secrets: Mapping[str, bytes], group: Group, output_end: int, ready_end: int
) -> None:
    """Turn this process into the worker's program. Does not return."""
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        group.join()
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500")  # rather a worker than its shim
        os.umask(0o022)
        groups = isolation.device_groups(worker.devices)
        if worker.confined:
            isolation.enter(worker, secrets)
        elif worker.secrets is not None:
            raise PermissionError("secrets are for workers with mounts of their own")
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output_end, 1)
        os.dup2(output_end, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if worker.disk:
            _limit_files(worker.disk)
        linux.drop_privileges(worker.uid, worker.gid, groups)
        linux.die_with_parent(signal.SIGKILL)
        os.chdir(worker.folder)
        for number in (*_SIGNALS, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if syscall_filter.available():
            syscall_filter.install()
    except BaseException as error:  # in no case may this process go on as a second shim
        os.write(ready_end, f"failed: {error}".encode())
        os._exit(126)
    try:
        os.execve(worker.program, worker.argv, worker.env)  # noqa: S606
    except OSError as error:
        os.write(ready_end, f"refused: {worker.argv[0]}: {error.strerror}".encode())
    os._exit(126)


def _limit_files(size: int) -> None:
    """No file of this process, or of those that come of it, grows larger."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def main(folder: str) -> None:
    """Become the shim of the worker in ``folder``, detached from the caller."""
    if os.fork():
        os._exit(0)
    os.setsid()
    report_end = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    worker = record.WorkerRecord.load(Path(folder))
    try:
        secrets = {} if worker.secrets is None else secret_files.receive(0)
    except ValueError:  # its cause would show what came
        sys.exit("the agent ended before it had handed over the worker's secrets")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)

    def report(line: str) -> None:
        with contextlib.suppress(OSError):  # the agent may be gone; the record is enough
            os.write(report_end, line.encode())
        os.close(report_end)

    directory = Path(folder)
    lock = record.claim(directory)
    if lock is None:
        return
    os.chdir("/")
    shim = Shim(directory, worker, secrets)
    del secrets
    shim.run(report)
    os.close(lock)


if __name__ == "__main__":
    main(sys.argv[1])
