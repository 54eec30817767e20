"""The hosts' data planes: the agent's own code, a process for each host."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil

from ces_experiments.network.row import HOSTS, PORT, Row
from ces_testbed.errors import TestbedError

END_S = 10.0
LOOK_S = 0.1
ANSWER_S = 60.0  # the longest that a host may take to apply its document


class DataPlane:
    """``python -m ces_edge_agent.dataplane`` for one host of a row."""

    def __init__(self, row: Row, host: int) -> None:
        self._row, self._host = row, host
        command = [sys.executable, "-m", "ces_edge_agent.dataplane", f"n{host}", row.namespace(host)]
        if row.kind != "veth":
            command = [sys.executable, "-m", "ces_testbed.enter", row.underlay(host), *command]
        if row.kind == "wireguard":
            command += [str(row.folder / f"n{host}.json"), str(PORT)] if row.folder is not None else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if row.kind == "wireguard":
            told = asked(self._process, b'{"keys": true}\n', f"the data plane of n{host}")["keys"]
            if not told:
                raise TestbedError("links cannot be encrypted on this machine: `ces doctor` says why")
            row.keys[host] = told

    def order(self, generation: int) -> float:
        """Have the host's document applied; gives the moment of the command. Raises TestbedError."""
        document = self._row.desired(self._host, generation).model_dump(mode="json")
        sandboxes = {allocation: str(file) for allocation, file in self._row.sandboxes(self._host).items()}
        line = json.dumps({"desired": document, "sandboxes": sandboxes}).encode() + b"\n"
        commanded = time.monotonic()
        answer = asked(self._process, line, f"the data plane of n{self._host}")
        if answer["failed"]:
            raise TestbedError(f"n{self._host} could not apply its network: {answer['failed']}")
        return commanded

    def await_links(self) -> None:
        """Until its neighbours answer over all of them. Raises TestbedError."""
        wanted = {f"n{peer}": "up" for peer in (self._host - 1, self._host + 1) if peer in self._row.hosts}
        deadline = time.monotonic() + ANSWER_S
        while True:
            said = asked(self._process, b'{"links": true}\n', f"the data plane of n{self._host}")["links"]
            if said == wanted:
                return
            if time.monotonic() > deadline:
                raise TestbedError(f"the links of n{self._host} do not come up: {said}")
            time.sleep(LOOK_S)

    def cpu_s(self) -> float:
        """CPU time that it has used so far."""
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def asked(process: subprocess.Popen[bytes], line: bytes, who: str, seconds: float = ANSWER_S) -> dict[str, Any]:
    """The JSON line that a process gives for a line; it is killed after ``seconds``. Raises TestbedError."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, give_up)
    timer.start()
    try:
        process.stdin.write(line)
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
    except (OSError, ValueError) as error:
        why = f"did not answer within {seconds:g} s" if late.is_set() else "ended: its words are above"
        raise TestbedError(f"{who} {why}") from error
    finally:
        timer.cancel()
    return answer


class DataPlanes:
    """All hosts' data planes."""

    def __init__(self, row: Row) -> None:
        self.of = {host: DataPlane(row, host) for host in HOSTS}
        self._generation = 0
        self._pool = ThreadPoolExecutor(len(HOSTS))

    def apply(self) -> tuple[float, float]:
        """Have what the row reserves applied on every host at once; gives the moments of the command and of the last
        answer."""
        self._generation += 1
        moments = [self._pool.submit(each.order, self._generation) for each in self.of.values()]
        commanded, answered = min(moment.result() for moment in moments), time.monotonic()
        if self._generation == 1:  # nothing is measured before there is a network
            for each in self.of.values():
                each.await_links()
        return commanded, answered

    def close(self) -> None:
        self._pool.shutdown()
        for each in self.of.values():
            each.close()
