"""The runs of a mix: in which order, what is kept of them whatever comes, and what the command refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from bench_command import run_bench, words_of
from resize_log import LOG, NOTES
from submitted_jobs import SubmittedJobs

from ces_common.states import JobState
from ces_experiments.common import job_runs
from ces_experiments.common.command import carry_out
from ces_experiments.common.ways import in_order
from ces_experiments.malleable import commands
from ces_experiments.malleable.mix import run as running
from ces_experiments.malleable.mix.jobs import MALLEABLE, MixJob
from ces_experiments.malleable.mix.report import MIX
from ces_experiments.malleable.mix.run import FIRST_SEED, Bench, Question
from ces_testbed.errors import TestbedError

QUESTION = Question.of(seeds=2, jobs=1, nodes=4, rigid=("1", "0.5"))
AUDIT = {"events": 3, "plans": 1, "findings": [], "deadlines_kept": 1}


def found(seed: int, way: str) -> dict[str, Any]:
    job = {"name": "000", "fate": "succeeded", "took_s": 10.0, "within_s": 30, "size": None, "on_time": True}
    rest = {"given_up": 0, "starts": 0, "lost": 0, "load_average": 0.5, "stolen": 0.01, "took_s": 100}
    return {"seed": seed, "way": way, "jobs": [job], "resizes": [], **rest}


def test_each_seed_has_all_ways_in_an_order_of_its_own() -> None:
    assert list(QUESTION.seeds) == [FIRST_SEED, FIRST_SEED + 1]
    orders = [tuple(in_order(seed, QUESTION.ways)) for seed in range(30)]
    assert all(set(order) == {MALLEABLE, "1", "0.5"} for order in orders)
    assert {order[0] for order in orders} == {MALLEABLE, "1", "0.5"}
    assert in_order(3, QUESTION.ways) == in_order(3, QUESTION.ways)


def test_what_is_known_is_kept_whatever_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_run(question: Question) -> Iterator[Any]:
        yield found(11, MALLEABLE), AUDIT
        raise TestbedError("a service is gone")

    monkeypatch.setattr(running, "runs", one_run)
    monkeypatch.setattr(running, "why_no_tc", lambda: None)
    with pytest.raises(typer.Exit):
        carry_out("malleable", MIX, QUESTION, tmp_path, plots=False)
    assert "a service is gone" in capsys.readouterr().err
    kept = json.loads((tmp_path / "results.json").read_text())
    assert [run["seed"] for run in kept["runs"]] == [11]
    assert kept["question"]["rigid"] == ["1", "0.5"]


def test_it_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running, "why_no_tc", lambda: "it needs root")
    shown = bench("--out", tmp_path, "--no-plots", code=1)
    assert "it needs root" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rigid", "1.5"), "1.5 is more than all of it"),
        (("--rigid", "none"), "'none' is no number above 0"),
        (("--nodes", "1"), "--nodes"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in bench(*arguments, "--out", tmp_path, code=2)


def bench(*arguments: object, code: int) -> str:
    return words_of(run_bench(commands.malleable, *arguments, code=code))


SAYS = ['{"progress": {"step": 3}}', json.dumps({"notes": NOTES})]
JOB = MixJob("000", 0.0, 10, 0.02, 0.5, 0.004, 40)


def test_a_run_submits_the_jobs_and_reads_what_became_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SubmittedJobs(lambda job: True, SAYS)
    log = [each | {"data": each["data"] | {"job": "1"}} for each in LOG]
    log[0] = log[0] | {"type": "ces.v1.job.queued"}
    monkeypatch.setattr(job_runs, "events_until_now", lambda _: log)
    bench = Bench(cluster)
    told = bench.run(7, MALLEABLE, [JOB])
    assert [file.name for file in cluster.files] == ["mix-7-malleable-000"]
    assert [job["fate"] for job in told["jobs"]] == ["succeeded"]
    assert [resize["saving"] > 0 for resize in told["resizes"]] == [True]
    assert bench.run(7, "0.5", [JOB])["jobs"] == [], "what an earlier run left in the log is not this one's"


def test_who_is_not_done_in_time_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SubmittedJobs(lambda job: False, SAYS)
    monkeypatch.setattr(job_runs, "events_until_now", lambda _: [])
    monkeypatch.setattr(running, "LATE_S", -100.0)
    bench = Bench(cluster)
    bench.run(7, "1", [JOB])
    assert cluster.states == {"1": JobState.CANCELLED}
