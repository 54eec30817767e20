"""A worker of a job of the mix: no work, only the time that it takes, so that many fit on few cores.

Arguments: the number of steps, and the seconds a, b and c of one, which takes a + b/n + c(n - 1) with n workers. Rank 0
counts them once all others have reached it, tells CES of each, and writes checkpoints: now and then, and when it is
told to end. In the end it says as JSON what happened in all starts of the job, by the machine's clock. The other
ranks end when it is done. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NoReturn

LOAD_S = 0.5  # what a program takes to load, say
SAVE_S = 0.2  # and to write its checkpoint when it is told to end
EVERY_S = 5.0
PATIENCE_S = 60.0
AGAIN_S = 0.1
DONE = b"d"
ENDED = 143


class Told(BaseException):
    """SIGTERM came."""


class Books:
    """How many steps are done, and notes of what happened, in all starts of the job. ``folder``: for checkpoints; a
    rigid job has none. What was counted is kept beside the checkpoint, so that a later start can tell what was lost."""

    def __init__(self, folder: str | None, size: int) -> None:
        self._folder, self._size = folder, size
        self.step, self.notes = 0, list[dict[str, Any]]()
        lost = 0
        if folder is not None:
            with suppress(FileNotFoundError), open(f"{folder}/books") as file:
                self.step, self.notes = json.load(file)
            with suppress(FileNotFoundError, ValueError), open(f"{folder}/.counted") as file:
                lost = max(0, int(file.read()) - self.step)
        self.note("begins", lost=lost)

    def note(self, kind: str, **more: Any) -> None:
        self.notes.append({"kind": kind, "at": time.time(), "size": self._size, "step": self.step, **more})

    def count(self) -> None:
        self.step += 1
        print(json.dumps({"progress": {"step": self.step}}), flush=True)
        if self._folder is not None:
            with open(f"{self._folder}/.counted", "w") as file:
                file.write(str(self.step))

    def write(self) -> None:
        if self._folder is not None:
            with open(f"{self._folder}/.new", "w") as file:
                json.dump([self.step, self.notes], file)
            os.rename(f"{self._folder}/.new", f"{self._folder}/books")


def step_s(a: float, b: float, c: float, size: int) -> float:
    return a + b / size + c * (size - 1)


def lead(steps: int, each_s: float, size: int) -> None:
    """Rank 0."""
    books = Books(os.environ.get("CES_CHECKPOINT"), size)
    try:
        signal.signal(signal.SIGTERM, told)
        time.sleep(LOAD_S)
        with gathered(size - 1) as others:
            books.note("steps")
            books.write()
            due = written = time.monotonic()
            while books.step < steps:
                due = max(due, time.monotonic() - each_s) + each_s  # a little late is caught up with, no more
                time.sleep(max(0.0, due - time.monotonic()))
                books.count()
                if time.monotonic() - written > EVERY_S:
                    books.write()
                    written = time.monotonic()
            books.note("ends")
            for other in others:
                other.sendall(DONE)
    except Told:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        books.note("told")
        time.sleep(SAVE_S)
        books.note("saved")
        books.write()
        sys.exit(ENDED)
    print(json.dumps({"notes": books.notes}), flush=True)


@contextmanager
def gathered(count: int) -> Iterator[list[socket.socket]]:
    """Connections from this many others. Raises TimeoutError."""
    with ExitStack() as stack:
        found = []
        if count:
            address = os.environ["CES_ADDRESS"], int(os.environ["MASTER_PORT"])
            server = stack.enter_context(socket.create_server(address, backlog=count))
            server.settimeout(PATIENCE_S)
            found = [stack.enter_context(server.accept()[0]) for _ in range(count)]
        yield found


def follow() -> None:
    """Every other rank: there until rank 0 is done. Where that goes without a word, this one is about to be told to end
    as well. Raises TimeoutError."""
    time.sleep(LOAD_S)
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            connection = socket.create_connection(address, PATIENCE_S)
            break
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(AGAIN_S)
    with connection, suppress(OSError):
        connection.settimeout(None)
        if connection.recv(1) == DONE:
            return
    time.sleep(PATIENCE_S)
    sys.exit("rank 0 is gone")


def told(*_: object) -> NoReturn:
    raise Told


def main() -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if rank:
        follow()
        return
    a, b, c = map(float, sys.argv[2:5])
    lead(int(sys.argv[1]), step_s(a, b, c, size), size)


if __name__ == "__main__":
    main()
