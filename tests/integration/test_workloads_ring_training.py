"""Training around a ring, and what goes wrong with any algorithm: late, lost and strange peers, bad input."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from training_gang import LIMIT, Gang, assert_all_name_a_killed_one, wait_for_line


@pytest.fixture
def gangs() -> Iterator[list[Gang]]:
    made: list[Gang] = []
    yield made
    for gang in made:
        gang.stop()


def gang_of(gangs: list[Gang], size: int, *arguments: str) -> Gang:
    gang = Gang(size, *arguments)
    gangs.append(gang)
    return gang


@pytest.mark.timeout(90)
def test_five_workers_learn_the_digits_and_agree(gangs: list[Gang]) -> None:
    gang = gang_of(gangs, 5)
    gang.start_all()
    results = []
    for rank in range(5):
        progress, result = gang.learned(rank)
        assert [entry["round"] for entry in progress] == list(range(1, 41))
        assert progress[-1]["bytes_sent"] > progress[0]["bytes_sent"] > 0
        assert progress[-1]["seconds"] >= progress[-1]["seconds_communicating"] > 0
        results.append(result)
    assert results[0]["accuracy"] >= 0.93
    assert len({result["digest"] for result in results}) == 1
    assert len({(result["loss"], result["accuracy"]) for result in results}) == 1


@pytest.mark.timeout(90)
def test_a_target_accuracy_ends_the_training_at_all_workers_together(gangs: list[Gang]) -> None:
    gang = gang_of(gangs, 3, "--until-accuracy", "0.8", "--hidden", "64", "--rounds", "500")
    gang.start_all()
    results = [gang.learned(rank)[1] for rank in range(3)]
    assert results[0]["accuracy"] >= 0.8
    assert results[0]["rounds"] < 500
    assert len({(result["digest"], result["rounds"]) for result in results}) == 1


@pytest.mark.timeout(90)
def test_a_worker_that_starts_late_is_waited_for(gangs: list[Gang]) -> None:
    gang = gang_of(gangs, 3, "--rounds", "3")
    first, second = gang.start(0), gang.start(1)
    # Both are trying to close the ring by now, and cannot: rank 2 is not there yet.
    for worker in (first, second):
        wait_for_line(worker, "sends to", "stderr")
    gang.start(2)
    assert len({gang.learned(rank)[1]["digest"] for rank in range(3)}) == 1


@pytest.mark.timeout(90)
def test_a_killed_worker_ends_the_gang_and_all_name_it(gangs: list[Gang]) -> None:
    gang = gang_of(gangs, 5, "--rounds", "100000")
    gang.start_all()
    assert_all_name_a_killed_one(gang, 2)


@pytest.mark.timeout(90)
def test_a_peer_that_never_comes_is_named(gangs: list[Gang]) -> None:
    gang = gang_of(gangs, 2, "--rendezvous-timeout", "0.5")
    gang.start(0)
    status, lines, log = gang.outcome(0)
    assert status == 1
    assert lines == []
    assert "could not connect to rank 1 (worker-1 on n1" in log
    assert "Traceback" not in log


@pytest.mark.timeout(90)
@pytest.mark.parametrize("moment", ["waiting", "training"])
def test_sigterm_ends_a_worker_promptly_and_quietly(gangs: list[Gang], moment: str) -> None:
    size = 2 if moment == "waiting" else 1
    gang = gang_of(gangs, size, "--rounds", "100000")
    worker = gang.start(0)
    if moment == "waiting":
        wait_for_line(worker, "sends to", "stderr")
    else:
        wait_for_line(worker, '"round": 2,')
    worker.terminate()
    _, log = worker.communicate(timeout=60)
    assert worker.returncode == 143
    assert "Traceback" not in log


@pytest.mark.timeout(90)
def test_strangers_and_wrong_ranks_are_turned_away(gangs: list[Gang]) -> None:
    gang = gang_of(gangs, 2, "--rounds", "2")
    waiting = gang.start(0)
    wait_for_line(waiting, "sends to", "stderr")
    address = (gang.peers[0]["address"], gang.peers[0]["port"])
    hello = json.dumps({"job": "another", "rank": 1, "world_size": 2}, sort_keys=True).encode() + b"\n"
    listening = connect_when_listening(address, hello)
    gang.start(1)
    assert [gang.outcome(rank)[0] for rank in (0, 1)] == [0, 0]
    with listening:
        assert listening.recv(1) == b""


def connect_when_listening(address: tuple[str, int], greeting: bytes) -> socket.socket:
    """Connect as soon as someone listens; the test's own timeout bounds the wait."""
    while True:
        try:
            connection = socket.create_connection(address, timeout=10)
        except ConnectionRefusedError:
            continue
        connection.sendall(greeting)
        return connection


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algorithm", "ring"], "RANK is not set"),
        (["--algorithm", "ring", "--hidden", "0"], "0 is not at least 1"),
        (["--algorithm", "carrier-pigeon"], "invalid choice"),
    ],
)
def test_bad_input_is_exit_status_2(arguments: list[str], words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "ces_workloads.train", *arguments],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert run.returncode == 2
    assert words in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.timeout(90)
def test_absent_data_is_exit_status_2(gangs: list[Gang], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    gang = gang_of(gangs, 1, "--data", "mnist")
    gang.start(0)
    status, _, log = gang.outcome(0)
    assert status == 2
    assert "CES_DATA_DIR" in log
