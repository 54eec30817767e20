"""The experiment's runs: what is kept of them whatever comes, when they count, and what their cluster leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from experiment_runs import MBIT, flow, flows_view, job_view, log, plan_of, run_of

from ces_common.jobfile import JobFile
from ces_common.messages.api import JobFlowsView, JobView, PlanView
from ces_common.states import JobState
from ces_experiments.common.command import carry_out
from ces_experiments.testbed import run as running
from ces_experiments.testbed import scenario as scenarios
from ces_experiments.testbed.question import PLAIN, Question
from ces_experiments.testbed.report import TESTBED
from ces_experiments.testbed.trial import run_job
from ces_testbed.errors import TestbedError


def test_what_is_known_is_kept_whatever_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def two_runs(question: Question) -> Iterator[Any]:
        yield run_of(6, "gossip", "imitation", 5.0)
        yield run_of(6, "gossip", PLAIN, 7.0)
        raise TestbedError("a link is gone")

    monkeypatch.setattr(running, "runs", two_runs)
    monkeypatch.setattr(running, "why_no_tc", lambda: None)
    with pytest.raises(typer.Exit):
        carry_out("testbed", TESTBED, Question(("imitation", PLAIN), ("gossip",)), tmp_path)
    assert "a link is gone" in capsys.readouterr().err
    kept = json.loads((tmp_path / "results.json").read_text())
    assert list(kept["runs"]) == ["6 gossip imitation", f"6 gossip {PLAIN}"]
    assert kept["question"]["seeds"] == [6]


class Jobs:
    """The jobs of a cluster on which a training runs for ever, until it is cancelled: then it is ``at_last``, and its
    logs are whole or not."""

    def __init__(self, job: JobFile, at_last: JobState) -> None:
        self._job, self._at_last, self._state = job, at_last, JobState.RUNNING

    def submit(self, job: JobFile) -> JobView:
        return self.get("1")

    def get(self, job: str) -> JobView:
        return job_view(self._state)

    def cancel(self, job: str) -> None:
        self._state = self._at_last

    def flows(self, job: str, since: datetime | None = None) -> JobFlowsView:
        return flows_view()

    def plan(self, job: str) -> PlanView:
        return plan_of(self._job)

    def logs(self, job: str, task: str) -> Iterator[str]:
        return log(4, 5.0, over=self._state == JobState.SUCCEEDED)


@pytest.mark.parametrize(
    ("at_last", "ended", "seconds"), [(JobState.CANCELLED, False, 4), (JobState.SUCCEEDED, True, 5)]
)
def test_a_job_that_ended_just_before_it_was_cut_is_not_cut(at_last: JobState, ended: bool, seconds: float) -> None:
    job = scenarios.training(1, "ring", 0.9)
    client: Any = SimpleNamespace(jobs=Jobs(job, at_last))
    found = run_job(client, job, job, "2", limit_s=0)
    assert found["failed"] is None
    assert (found["training"]["ended"], found["training"]["seconds"]) == (ended, seconds)
    assert len(found["training"]["curve"]) == 4


@pytest.mark.parametrize("guaranteed", [4 * MBIT, 0])
def test_a_run_counts_only_where_the_network_is_still_as_it_was_set(
    guaranteed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = flows_view(flow("a", "b", 4 * MBIT, ["n1", "n2"], [[1.0]], given=guaranteed))
    client: Any = SimpleNamespace(jobs=SimpleNamespace(flows=lambda job: view))
    cluster: Any = None
    bench = running.Bench(cluster, client)  # keeps reservations, as a cluster starts
    monkeypatch.setattr(running, "STILL_S", 0.0)
    if guaranteed == 0:
        with pytest.raises(TestbedError, match="network-ctl"):
            bench._unchanged("2")
    else:
        bench._unchanged("2")
