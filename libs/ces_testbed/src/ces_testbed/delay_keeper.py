"""``python -m ces_testbed.delay_keeper CLUSTER DIGEST``: is the wires of a cluster's links that have a delay.

Not every kernel can delay packets (netem). So a wire with a delay is two TAP devices, and this program holds each frame
for its time. One process does it for all wires of a cluster; which there are comes on standard input. It returns once
they carry, and goes on in the background until their devices are gone or it is told to end.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import psutil

from ces_testbed.delay_line import Frames, Line, room
from ces_testbed.delays import DelayedWire
from ces_testbed.errors import TestbedError
from ces_testbed.processes import Known, end
from ces_testbed.taps import LARGEST, open_tap

MODULE = "ces_testbed.delay_keeper"
START_S = 60.0
BATCH = 32  # frames that one device may hand over before others are looked at
PRIORITY = 1  # real time: a wire waits for no program
LONGEST_US = 200_000  # of work without a rest; then it has the priority of others
_STEPS = ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0))
TFD_TIMER_ABSTIME = 1


def start_delays(cluster: str, wires: Sequence[DelayedWire], *, again: bool) -> None:
    """See to it that these wires, whose devices are there, delay what they carry. ``again``: devices are new. Raises
    TestbedError."""
    told = json.dumps([wire.model_dump() for wire in wires])
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    running = _keepers(cluster)
    if running and not again and all(each.name == digest for each in running):
        return
    end(running, _STEPS)
    if not wires:
        return
    command = [sys.executable, "-m", MODULE, cluster, digest]
    try:
        done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=START_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"the wires with delays did not come up within {START_S:g} s") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise TestbedError(f"the wires with delays did not come up: {said[-1]}")


def end_delays(cluster: str) -> None:
    end(_keepers(cluster), _STEPS)


def keeps_delays(cluster: str) -> list[int]:
    """The processes that are wires of this cluster."""
    return [each.pid for each in _keepers(cluster)]


def _keepers(cluster: str) -> list[Known]:
    """By name, the digest of what they were told. Only this user's, in this network namespace: others may be called
    anything."""
    found, here = [], _namespace("self")
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            line = process.cmdline()
            if line[1:4] != ["-m", MODULE, cluster] or len(line) != 5 or process.uids().effective != os.geteuid():
                continue
            if _namespace(process.pid) == here and (known := Known.of(line[4], process.pid)):
                found.append(known)
    return [each for each in found if each.alive()]


def _namespace(process: int | str) -> tuple[int, int]:
    """Which network namespace a process is in."""
    found = os.stat(f"/proc/{process}/ns/net")
    return found.st_dev, found.st_ino


def keep(lines: dict[int, Line]) -> None:
    """Carry frames until no device is left. ``lines``: by the handle that they begin at."""
    timer, frames, poll = _Timer(), Frames(), select.epoll()
    poll.register(timer.handle, select.EPOLLIN)
    for handle in lines:
        poll.register(handle, select.EPOLLIN)
    while lines:
        for handle, _ in poll.poll():
            if handle == timer.handle:
                timer.clear()
            elif handle in lines and not _read(handle, lines[handle], frames):
                _close(handle, lines, poll)
        for line, frame in frames.due(time.monotonic_ns()):
            with contextlib.suppress(OSError):  # the device is down or gone: the frame is lost
                os.write(line.out, frame)
        timer.set(frames.next)


def _read(handle: int, line: Line, frames: Frames) -> bool:
    """Whether the device is still there."""
    for _ in range(BATCH):
        try:
            frame = os.read(handle, LARGEST)
        except BlockingIOError:
            return True
        except OSError:
            return False
        frames.take(line, frame, time.monotonic_ns())
    return True


def _close(handle: int, lines: dict[int, Line], poll: select.epoll) -> None:
    """A wire without one of its ends: the other end shall see that, too."""
    for each in (handle, lines[handle].out):
        poll.unregister(each)
        del lines[each]
        os.close(each)


class _Timer:
    """Rings at moments of time.monotonic_ns(): epoll itself counts in whole milliseconds."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.handle = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.handle < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._set: int | None = None

    def set(self, moment: int | None) -> None:
        if moment is not None and moment != self._set:
            self._set = moment
            seconds, nanoseconds = divmod(moment, 1_000_000_000)
            spec = (ctypes.c_long * 4)(0, 0, seconds, nanoseconds)
            self._libc.timerfd_settime(self.handle, TFD_TIMER_ABSTIME, ctypes.byref(spec), None)

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.handle, 8)
        self._set = None


def opened(wires: Sequence[DelayedWire]) -> dict[int, Line]:
    """Raises TestbedError."""
    lines: dict[int, Line] = {}
    for wire in wires:
        a, b = open_tap(wire.a_space, wire.a_device), open_tap(wire.b_space, wire.b_device)
        lines[a] = Line(b, wire.there_us * 1000, room(wire.rate, wire.there_us))
        lines[b] = Line(a, wire.back_us * 1000, room(wire.rate, wire.back_us))
    return lines


def _come_first() -> None:
    """At real-time priority, but for whoever floods a wire without end: it must not take a core from everybody."""

    def step_back(*_: object) -> None:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    signal.signal(signal.SIGXCPU, step_back)
    with contextlib.suppress(OSError, ValueError):  # not everywhere may it be had
        _, most = resource.getrlimit(resource.RLIMIT_RTTIME)
        resource.setrlimit(resource.RLIMIT_RTTIME, (LONGEST_US, most))
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: python -m {MODULE} CLUSTER DIGEST < WIRES")
    try:
        lines = opened([DelayedWire.model_validate(each) for each in json.load(sys.stdin)])
    except TestbedError as error:
        raise SystemExit(str(error)) from error
    if os.fork():
        os._exit(0)
    _come_first()
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    keep(lines)


if __name__ == "__main__":
    main()
