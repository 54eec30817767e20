"""The work that is measured, a kind each. It is done by what the agent has anyway, in C: Python's own integers and
floats, and memory copied by it. What needs more, numpy or onnxruntime, is measured where that is installed beside the
agent, and absent elsewhere."""

from __future__ import annotations

import math
import os
import platform
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import psutil

from ces_common.messages.scores import Kind
from ces_edge_agent import linux

_NEEDED: Final[Mapping[Kind, str]] = {"matrix": "numpy", "inference": "onnxruntime"}
MODEL: Final = Path(__file__).with_name("inference.onnx")
_COPIED: Final = 2**20
_BUFFER, _LEAST_BUFFER = 16 * 2**20, 4 * 2**20
_MEMORY_SHARE: Final = 1 / 8  # of what is available, at most
_TERMS: Final = 1024
_SIDE: Final = 128
_RECEIVED: Final = 256 * 1024


class Absent(Exception):
    """This kind of work cannot be done here. The text says why."""


@dataclass(frozen=True)
class Kernel:
    """``step``: does some work, a millisecond or less on most machines, and returns how much. ``close``: gives back
    what it holds."""

    step: Callable[[], float]
    source: str
    close: Callable[[], object] = lambda: None


def installed(kind: Kind) -> bool:
    """Whether what this kind needs is there; whether it works is seen when it is loaded."""
    return kind not in _NEEDED or find_spec(_NEEDED[kind]) is not None


def prepare(kind: Kind) -> None:
    """Load what this kind needs, before processes are forked that would each load it. Raises Absent."""
    needed = _NEEDED.get(kind)
    if needed is None:
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    try:
        import_module(needed)
    except ImportError as error:
        raise Absent(f"{needed} is not installed beside the agent") from error


def make(kind: Kind, threads: int) -> Kernel:
    """``threads``: how many of it run at once. Raises Absent, OSError."""
    return {
        "integer": _integer,
        "float": _float,
        "matrix": _matrix,
        "inference": _inference,
        "memory": lambda: _memory(threads),
        "network": _network,
    }[kind]()


def _python() -> str:
    return f"Python {platform.python_version()}"


def _integer() -> Kernel:
    base, modulus = (1 << 511) - 187, (1 << 512) - 569
    exponent, some = (1 << 63) - 25, 4

    def step() -> float:
        for _ in repeat(None, some):
            pow(base, exponent, modulus)
        return some

    return Kernel(step, f"powers of 512-bit integers, exponent of 63 bits, by {_python()}")


def _float() -> Kernel:
    one, other = (tuple(math.sin(each + shift) for each in range(_TERMS)) for shift in (0.0, 0.5))
    some = 8

    def step() -> float:
        for _ in repeat(None, some):
            math.dist(one, other)
        return some * _TERMS

    return Kernel(step, f"distances in {_TERMS} dimensions, in doubles, by {_python()}")


def _memory(threads: int) -> Kernel:
    room = int(psutil.virtual_memory().available * _MEMORY_SHARE) // (2 * threads)
    size = min(_BUFFER, room) // _COPIED * _COPIED
    if size < _LEAST_BUFFER:
        raise Absent("too little memory is free")
    source, target = memoryview(bytearray(os.urandom(1024) * (size // 1024))), memoryview(bytearray(size))
    places = [slice(first, first + _COPIED) for first in range(0, size, _COPIED)]
    turn = 0

    def step() -> float:
        nonlocal turn
        place = places[turn % len(places)]
        target[place] = source[place]
        turn += 1
        return _COPIED

    return Kernel(step, f"copies between buffers of {size // 2**20} MiB, counted once, by {_python()}")


def _matrix() -> Kernel:
    numpy: Any = import_module("numpy")
    one = numpy.linspace(-1, 1, _SIDE * _SIDE, dtype=numpy.float32).reshape(_SIDE, _SIDE)
    into = numpy.empty_like(one)

    def step() -> float:
        numpy.matmul(one, one.T, out=into)
        return 2 * _SIDE**3

    return Kernel(step, f"products of {_SIDE} x {_SIDE} matrices, in single precision, by numpy {numpy.__version__}")


def _inference() -> Kernel:
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = runtime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
        given = session.get_inputs()[0]
        image = {given.name: import_module("numpy").zeros(given.shape, dtype="float32")}
        session.run(None, image)
    except Exception as error:  # its errors have no common base
        raise Absent(f"onnxruntime does not run it: {error}") from error

    def step() -> float:
        session.run(None, image)
        return 1.0

    return Kernel(step, f"three convolutions on an image of 64 x 64, by onnxruntime {runtime.__version__}")


def _network() -> Kernel:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        sender = os.fork()
        if sender == 0:
            _send_to(server.getsockname())
        server.settimeout(5.0)
        try:
            taken, _ = server.accept()
        except OSError:
            os.kill(sender, signal.SIGKILL)
            os.waitpid(sender, 0)
            raise
    taken.settimeout(5.0)
    buffer = memoryview(bytearray(_RECEIVED))

    def step() -> float:
        return taken.recv_into(buffer)

    def close() -> None:
        taken.close()
        os.kill(sender, signal.SIGKILL)
        os.waitpid(sender, 0)

    return Kernel(step, "TCP between two processes, through the machine's own loopback", close)


def _send_to(address: tuple[str, int]) -> None:
    """In a process of its own, which ends here."""
    try:
        linux.die_with_parent(signal.SIGKILL)
        with socket.create_connection(address, timeout=5.0) as connection:
            while True:
                connection.sendall(bytes(_RECEIVED))
    finally:
        os._exit(0)
