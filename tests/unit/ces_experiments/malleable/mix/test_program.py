"""The program that jobs of the mix run: real processes, told to end, killed, and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from ces_experiments.malleable.mix.program import ENDED, step_s
from ces_testbed.spec import LOCALHOST, free_port

LIMIT_S = 60


class Gang:
    """Its workers, of which all that still run are killed in the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.workers: list[subprocess.Popen[str]] = []

    def start(self, size: int, steps: int, each_s: float = 0.01) -> None:
        port = str(free_port(LOCALHOST, set()))
        self.workers = []
        for rank in range(size):
            own = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": LOCALHOST, "MASTER_PORT": port}
            own |= {"CES_ADDRESS": LOCALHOST} | ({"CES_CHECKPOINT": str(self._folder)} if not rank else {})
            command = [sys.executable, "-m", "ces_experiments.malleable.mix.program", str(steps), str(each_s), "0", "0"]
            self.workers.append(
                subprocess.Popen(
                    command, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            )

    def counted(self) -> int:
        try:
            return int((self._folder / ".counted").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def ends(self, number: int | None = None) -> tuple[list[int], list[dict[str, Any]]]:
        """How all end, rank 0 by a signal where one is named; and the lines of rank 0."""
        if number is not None:
            self.workers[0].send_signal(number)
        out, _ = self.workers[0].communicate(timeout=LIMIT_S)
        for other in self.workers[1:]:
            if number is not None:
                other.terminate()
            other.communicate(timeout=LIMIT_S)
        return [each.returncode for each in self.workers], [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[Gang]:
    gang = Gang(tmp_path)
    yield gang
    for each in gang.workers:
        each.kill()
        each.communicate()


def kinds(notes: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(note["kind"], note["size"]) for note in notes]


def test_steps_take_as_long_as_the_law_says() -> None:
    assert step_s(0.1, 0.8, 0.01, 1) == pytest.approx(0.9)
    assert step_s(0.1, 0.8, 0.01, 4) == pytest.approx(0.33)


def test_all_end_when_the_steps_are_done(gang: Gang) -> None:
    gang.start(3, 20)
    codes, lines = gang.ends()
    assert codes == [0, 0, 0]
    assert [line["progress"]["step"] for line in lines[:-1]] == list(range(1, 21))
    notes = lines[-1]["notes"]
    assert kinds(notes) == [("begins", 3), ("steps", 3), ("ends", 3)]
    assert [note["at"] for note in notes] == sorted(note["at"] for note in notes)


def test_one_that_is_told_to_end_goes_on_where_it_was_at_another_size(gang: Gang) -> None:
    gang.start(2, 10**6)
    wait_for(lambda: gang.counted() > 5, "it counts")
    codes, lines = gang.ends(signal.SIGTERM)
    assert codes == [ENDED, -signal.SIGTERM]
    done = lines[-1]["progress"]["step"]
    gang.start(1, done + 5)
    codes, lines = gang.ends()
    assert codes == [0]
    assert [line["progress"]["step"] for line in lines[:-1]] == list(range(done + 1, done + 6))
    notes = lines[-1]["notes"]
    assert kinds(notes) == [
        ("begins", 2), ("steps", 2), ("told", 2), ("saved", 2), ("begins", 1), ("steps", 1), ("ends", 1),
    ]  # fmt: skip
    assert [(note["step"], note["lost"]) for note in notes if note["kind"] == "begins"] == [(0, 0), (done, 0)]


def test_one_that_is_killed_tells_what_was_lost(gang: Gang) -> None:
    gang.start(1, 10**6)
    wait_for(lambda: gang.counted() > 5, "it counts")
    gang.ends(signal.SIGKILL)
    lost = gang.counted()
    gang.start(1, 3)
    _, lines = gang.ends()
    assert [note["lost"] for note in lines[-1]["notes"] if note["kind"] == "begins"] == [0, lost]
    assert lines[0]["progress"]["step"] == 1


def test_one_that_is_told_before_all_are_there_ends_at_once(gang: Gang) -> None:
    gang.start(2, 10**6)
    gang.workers[1].kill()
    wait_for(lambda: _listens(gang.workers[0]), "it waits for the other")
    codes, _ = gang.ends(signal.SIGTERM)
    assert codes[0] == ENDED


def _listens(worker: subprocess.Popen[str]) -> bool:
    rows = [line.split() for line in Path(f"/proc/{worker.pid}/net/tcp").read_text().splitlines()[1:]]
    sockets = {os.readlink(each) for each in Path(f"/proc/{worker.pid}/fd").iterdir() if each.is_symlink()}
    return any(f"socket:[{row[9]}]" in sockets and row[3] == "0A" for row in rows)
