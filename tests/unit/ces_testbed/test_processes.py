"""Processes are known for certain, and ended step by step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ces_testbed.processes import MARK, Known, Records, end, marked

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
WILLING = "import time; print('on', flush=True); time.sleep(60)"


@contextmanager
def program(text: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def known(process: subprocess.Popen[str]) -> Known:
    found = Known.of("it", process.pid)
    assert found is not None
    return found


def test_a_process_with_another_start_is_a_stranger_and_is_spared() -> None:
    with program(WILLING) as process:
        stranger = replace(known(process), started=known(process).started - 100)
        assert not stranger.alive()
        assert end([stranger], [(signal.SIGKILL, 1)]) == []
        assert process.poll() is None


def test_a_process_that_ended_is_not_alive_even_while_nobody_collects_it() -> None:
    with program(WILLING) as process:
        it = known(process)
        assert it.alive()
        assert end([it], [(signal.SIGTERM, 10)]) == []
        assert not it.alive()  # a zombie by now


def test_the_next_signal_is_for_those_who_outlive_the_last() -> None:
    with program(STUBBORN) as stubborn, program(WILLING) as willing:
        assert end([known(stubborn), known(willing)], [(signal.SIGTERM, 0.3)]) == [known(stubborn)]
        assert end([known(stubborn)], [(signal.SIGTERM, 0.1), (signal.SIGKILL, 10)]) == []
        assert willing.wait() == -signal.SIGTERM
        assert stubborn.wait() == -signal.SIGKILL


def test_processes_of_a_cluster_are_found_by_their_mark(tmp_path: Path) -> None:
    with program(WILLING, **{MARK: str(tmp_path)}) as mine, program(WILLING, **{MARK: f"{tmp_path}-other"}) as other:
        pids = {each.pid for each in marked(tmp_path)}
        assert mine.pid in pids
        assert other.pid not in pids


def test_naming_the_folder_on_a_command_line_is_not_enough(tmp_path: Path) -> None:
    with program(WILLING + f"; '{tmp_path}/logs/manager.log'"):
        assert marked(tmp_path) == []


def test_records_come_back_as_written_and_broken_ones_are_none(tmp_path: Path) -> None:
    records = Records(tmp_path / "processes.json")
    assert records.read() == []
    me = Known.of("supervisor", os.getpid())
    assert me is not None
    gone = replace(me, name="gone", started=1.0)
    records.write([me, gone])
    assert records.read() == [me, gone]
    assert records.living() == [me]
    assert records.living("gone") == []
    (tmp_path / "processes.json").write_text('[{"name": "x"}]')
    assert records.read() == []
