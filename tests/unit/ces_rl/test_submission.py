"""A run as a job of a cluster, and its files back from the log."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ces_client import Unreachable
from ces_common.jobfile import JobFile
from ces_rl.parcels import packed
from ces_rl.run import RunExistsError
from ces_rl.submission import FIRST, Workers, fetch, follow, training_job

WORKERS = Workers(1, 4, "500m", "1Gi", "ces-worker-rl")
SPEC = {
    "algorithm": "es",
    "env": "longrun",
    "seed": 1,
    "settings": {"algorithm": {"updates": 7, "pairs": 2}, "env": {"jobs": 20, "odds": {"thesis": 1.0}}},
}
CARD = {"version": "longrun-1"}


class Jobs:
    """The part of a client that is asked. ``logs``: what each connection hears; an exception ends it."""

    def __init__(self, logs: list[list[Any]], states: list[Any]) -> None:
        self._logs, self._states, self.tails = logs, states, list[int | None]()

    def logs(self, job: str, task: str, *, follow: bool = False, tail: int | None = None) -> Iterator[str]:
        assert (job, task) == ("J", FIRST)
        self.tails.append(tail)
        for line in self._logs.pop(0) if len(self._logs) > 1 else self._logs[0]:
            if isinstance(line, Exception):
                raise line
            yield line

    def get(self, job: str) -> Any:
        state = self._states.pop(0)
        if isinstance(state, Exception):
            raise state
        return SimpleNamespace(state=state)


def client(logs: list[list[Any]], *states: Any) -> Any:
    return SimpleNamespace(jobs=Jobs(logs, list(states)))


def test_the_job_is_one_that_the_manager_takes() -> None:
    job = JobFile.model_validate(training_job(SPEC, WORKERS))
    assert job.name == "train-es-longrun"
    assert job.elastic is not None
    assert list(job.elastic.allowed) == [1, 2, 3, 4]
    assert job.elastic.speed.total == 7
    (group,) = job.tasks
    assert group.command is not None
    assert group.command[:3] == ["python", "-m", "ces_rl.rank"]
    assert json.loads(group.command[3]) == SPEC


def spec_with(**env: Any) -> dict[str, Any]:
    return SPEC | {"settings": {"algorithm": {"updates": 1, "problems": 3}, "env": env}}


def test_a_file_of_this_machine_is_refused_but_for_common_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "topologies").mkdir()
    two = Workers(1, 2, "1", "1Gi", "image")
    monkeypatch.delenv("CES_DATA_DIR", raising=False)
    with pytest.raises(ValueError, match=r"--topology: .* is here, and not on the nodes"):
        training_job(spec_with(topology=str(tmp_path / "topologies")), two)
    monkeypatch.chdir(tmp_path)
    assert "CES_DATA_DIR" not in training_job(spec_with(topology="ring", setting="topologies"), two)["tasks"][0]["env"]
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    job = training_job(spec_with(topology=str(tmp_path / "topologies")), two)
    assert job["tasks"][0]["env"]["CES_DATA_DIR"] == str(tmp_path)


def test_more_ranks_than_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="--workers: at most 3, the problems of an update"):
        training_job(spec_with(), WORKERS)


@pytest.mark.parametrize(("said", "least", "most"), [("1:4", 1, 4), ("3", 3, 3), ("2:2", 2, 2)])
def test_numbers_of_workers(said: str, least: int, most: int) -> None:
    assert Workers.of(said, "1", "1Gi", "image") == Workers(least, most, "1", "1Gi", "image")


@pytest.mark.parametrize("said", ["", "0:4", "4:1", "1:", ":4", "a:b", "1-4", "-1:2"])
def test_wrong_numbers_of_workers_are_refused(said: str) -> None:
    with pytest.raises(ValueError, match=f"--workers {said}: "):
        Workers.of(said, "1", "1Gi", "image")


def test_what_the_first_rank_says_is_said_until_the_job_is_over_whatever_is_interrupted() -> None:
    lost = Unreachable("https://manager", "gone", "look")
    first, more = ["es learns longrun", '{"progress": {"step": 1}}', "update 1/7: x"], ["update 2/7: y"]
    said: list[str] = []
    asked = client([[*first, lost], [*more, *packed("run.json", b"{}")], []], "running", "succeeded")
    assert follow(asked, "J", said.append) == "succeeded"
    assert [line for line in said if "is away" not in line] == [first[0], first[2], *more]
    assert asked.jobs.tails == [None, 0, 0], "what was said already is not said again"


def test_files_are_those_that_the_log_has(tmp_path: Path) -> None:
    files = {"model-card.json": json.dumps(CARD).encode(), "value.json": b"[1]"}
    sent = [line for name, content in files.items() for line in packed(name, zlib.compress(content))]
    assert fetch(client([["a line", *sent]]), "J", tmp_path / "out", "value.json") == files
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == files


def test_where_one_is_not_there_nothing_is_written(tmp_path: Path) -> None:
    sent = list(packed("value.json", zlib.compress(b"[1]")))
    with pytest.raises(ValueError, match=r"job J has not sent model-card.json: `ces logs J` shows how far it came"):
        fetch(client([sent]), "J", tmp_path / "out", "value.json", "model-card.json")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_a_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"a run")
    with pytest.raises(RunExistsError, match="holds a run: name another folder"):
        fetch(client([[]]), "J", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]
