"""The training program as it runs in a job: one process per worker, each on a loopback address of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ces_common.topologies import topology_pairs

LIMIT = 60.0
TOPOLOGY = {"ring": "ring", "gossip": "gossip", "etree": "tree", "parameter-server": "star"}
BANDWIDTH = 50_000_000


class Gang:
    """Worker processes of one job, with the flows of ``topology``; by default those that fit the algorithm."""

    def __init__(self, size: int, *arguments: str, algorithm: str = "ring", topology: str = "") -> None:
        self.arguments = ["--algorithm", algorithm, *arguments]
        pairs = topology_pairs(topology or TOPOLOGY[algorithm], size)
        self.flows = [{"src": f"worker-{a}", "dst": f"worker-{b}", "bandwidth": BANDWIDTH} for a, b in pairs]
        prefix = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 200}"
        self.peers: list[dict[str, Any]] = []
        for rank in range(size):
            address = f"{prefix}.{rank + 2}"
            self.peers.append(
                {
                    "rank": rank,
                    "task": f"worker-{rank}",
                    "address": address,
                    "port": free_port(address),
                    "node": f"n{rank}",
                }
            )
        self.workers: dict[int, subprocess.Popen[str]] = {}

    def start(self, rank: int) -> subprocess.Popen[str]:
        me = self.peers[rank]
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(len(self.peers)),
            "MASTER_ADDR": self.peers[0]["address"],
            "MASTER_PORT": str(self.peers[0]["port"]),
            "CES_JOB": "digits",
            "CES_TASK": me["task"],
            "CES_ADDRESS": me["address"],
            "CES_PORT": str(me["port"]),
            "CES_PEERS": json.dumps(self.peers),
            # as a worker finds it: the flows from and to it alone
            "CES_FLOWS": json.dumps([flow for flow in self.flows if me["task"] in (flow["src"], flow["dst"])]),
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "ces_workloads.train", *self.arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.workers[rank] = worker
        return worker

    def start_all(self) -> None:
        for rank in range(len(self.peers)):
            self.start(rank)

    def outcome(self, rank: int) -> tuple[int, list[dict[str, Any]], str]:
        """Exit status, the JSON lines and the log of a worker, once it has ended."""
        out, err = self.workers[rank].communicate(timeout=LIMIT)
        return self.workers[rank].returncode, [json.loads(line) for line in out.splitlines()], err

    def learned(self, rank: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What a worker told of its rounds, and of the whole, once it has succeeded."""
        status, lines, log = self.outcome(rank)
        assert status == 0, log
        assert all(len(json.dumps(line)) < 1000 for line in lines)
        assert list(lines[-1]) == ["result"]
        return [line["progress"] for line in lines if "progress" in line], lines[-1]["result"]

    def stop(self) -> None:
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.kill()
            worker.communicate()


@contextmanager
def started(size: int, *arguments: str, algorithm: str = "ring", topology: str = "") -> Iterator[Gang]:
    """A gang whose workers were all started, and which is gone afterwards."""
    gang = Gang(size, *arguments, algorithm=algorithm, topology=topology)
    try:
        gang.start_all()
        yield gang
    finally:
        gang.stop()


def assert_all_name_a_killed_one(gang: Gang, lost: int) -> None:
    """Kill it amid the training: all others end, and say whom they lost."""
    for worker in gang.workers.values():
        wait_for_line(worker, '"round": 3,')
    gang.workers[lost].send_signal(signal.SIGKILL)
    for rank in gang.workers.keys() - {lost}:
        _, log = gang.workers[rank].communicate(timeout=LIMIT)
        assert gang.workers[rank].returncode == 1, log
        assert "Traceback" not in log
        assert f"error: lost rank {lost} (worker-{lost} on n{lost}" in log


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_for_line(worker: subprocess.Popen[str], words: str, stream: str = "stdout") -> None:
    """Read on until a line has these words; the test's own timeout bounds the wait."""
    pipe = getattr(worker, stream)
    for line in pipe:
        if words in line:
            return
    pytest.fail(f"the worker ended without saying {words!r}")
