"""An experiment as a job of a cluster: what is sent, and what is refused before."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from ces_common.jobfile import JobFile
from ces_experiments.common import submitted
from ces_rl.parcels import packed

CLUSTER = {"workers": "1:4", "cpu": "1", "memory": "1Gi", "image": "ces-worker-rl"}


class Cluster:
    """A client of a cluster on which a job ends as it is told, with this log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: str, log: list[str]) -> None:
        self.sent: list[Any] = []
        self._state, self._log, self.jobs = state, log, self
        monkeypatch.setattr(submitted, "connect", self._connected)

    @contextmanager
    def _connected(self) -> Iterator[Cluster]:
        yield self

    def submit(self, job: Any) -> Any:
        self.sent.append(JobFile.model_validate(job))
        return SimpleNamespace(id="J", name=job["name"])

    def logs(self, *_: Any, **__: Any) -> Iterator[str]:
        return iter(self._log)

    def get(self, _: str) -> Any:
        return SimpleNamespace(state=self._state)


def test_it_is_sent_followed_and_its_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, "succeeded", ["a [table]", *packed("results.json", zlib.compress(b"{}"))])
    submitted.submit("longrun", {"seed": 3, "plots": False}, CLUSTER | {"out": tmp_path / "out"})
    (job,) = cluster.sent
    assert (job.name, job.tasks[0].command[:4]) == (
        "bench-longrun",
        ["python", "-m", "ces_experiments.rank", "longrun"],
    )
    assert json.loads(job.tasks[0].command[4]) == {"seed": 3, "plots": False}
    assert (tmp_path / "out" / "results.json").read_bytes() == b"{}"
    assert capsys.readouterr().out == "a [table]\n"


@pytest.mark.parametrize(("state", "log"), [("failed", []), ("succeeded", [])])
def test_what_failed_or_sent_nothing_ends_the_command(
    state: str, log: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster(monkeypatch, state, log)
    with pytest.raises(typer.Exit):
        submitted.submit("longrun", {}, CLUSTER | {"out": tmp_path / "out"})


def test_what_no_node_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CES_DATA_DIR", raising=False)
    (tmp_path / "mine.csv").touch()
    for given, cluster in (({"trace": str(tmp_path / "mine.csv")}, {}), ({}, {"workers": "4:1"})):
        with pytest.raises(typer.BadParameter):
            submitted.submit("online", given, CLUSTER | cluster | {"out": tmp_path})
