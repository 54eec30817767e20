"""The runs: what is asked of a cluster and kept of it, and what the command refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from bench_command import run_bench, words_of
from cpu_log import LOG
from resize_log import START
from submitted_jobs import SubmittedJobs

from ces_experiments.common import job_runs
from ces_experiments.common.command import carry_out
from ces_experiments.malleable import commands
from ces_experiments.malleable.cpu import run as running
from ces_experiments.malleable.cpu.jobs import CpuJob
from ces_experiments.malleable.cpu.report import CPU
from ces_experiments.malleable.cpu.run import FIRST_SEED, Bench, Question
from ces_testbed.errors import TestbedError

QUESTION = Question.of(seeds=2, jobs=2, nodes=4, amounts=("even", "patient"), fixed=("100m", "200m"))
JOB = CpuJob("000", 0.0, 2, 4.0)
SAYS = [json.dumps({"burnt": {"began": START + 2, "ended": START + 42, "spent_s": 4.0}})]


def test_the_same_seeds_are_run_in_all_ways() -> None:
    assert list(QUESTION.seeds) == [FIRST_SEED, FIRST_SEED + 1]
    assert QUESTION.ways == ["even", "patient", "100m", "200m"]


@pytest.mark.parametrize("way", ["even", "100m"])
def test_a_run_submits_the_jobs_and_reads_what_became_of_them(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SubmittedJobs(lambda job: True, SAYS)
    log = [each | {"data": each["data"] | {"job": "1"}} for each in LOG]
    monkeypatch.setattr(job_runs, "events_until_now", lambda _: log)
    (job,) = Bench(cluster).run(7, way, [JOB])["jobs"]
    assert [file.name for file in cluster.files] == [f"cpu-7-{way}-000"]
    assert (cluster.files[0].elastic is not None) == (way == "even")
    assert (job["fate"], job["spent_s"], job["ran_s"]) == ("succeeded", 8.0, 80.0)


def test_what_is_known_is_kept_whatever_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_run(question: Question) -> Iterator[Any]:
        rest = {"services_s": 1.0, "load_average": 0.5, "stolen": 0.01, "took_s": 100}
        yield {"seed": 11, "way": "even", "jobs": [], **rest}, {"events": 3, "plans": 1, "findings": []}
        raise TestbedError("a service is gone")

    monkeypatch.setattr(running, "runs", one_run)
    monkeypatch.setattr(running, "why_no_tc", lambda: None)
    with pytest.raises(typer.Exit):
        carry_out("cpu", CPU, QUESTION, tmp_path, plots=False)
    assert "a service is gone" in capsys.readouterr().err
    kept = json.loads((tmp_path / "results.json").read_text())
    assert [run["seed"] for run in kept["runs"]] == [11]
    assert kept["question"]["fixed"] == ["100m", "200m"]


def test_it_says_why_it_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running, "why_no_tc", lambda: "it needs root")
    assert "it needs root" in bench("--out", tmp_path, "--no-plots", code=1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fixed", "300m"), "'300m' is not within 10m..200m, a whole host"),
        (("--fixed", "100m,9m"), "'9m' is not within 10m..200m"),
        (("--fixed", "100m,,50m"), "--fixed"),
        (("--amounts", "even,much"), "'much' is none of even, patient, tapfinger"),
        (("--fixed", "much"), "write it like 500m or 1.5"),
        (("--nodes", "1"), "--nodes"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in bench(*arguments, "--out", tmp_path, code=2)


def test_an_amount_counts_once_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_run(question: Question) -> Iterator[Any]:
        raise TestbedError(f"asked for {question.fixed}")
        yield

    monkeypatch.setattr(running, "why_no_tc", lambda: None)
    monkeypatch.setattr(running, "runs", no_run)
    said = bench("--fixed", "0.2, 200m,50m", "--out", tmp_path, "--no-plots", code=1)
    assert "asked for ('200m', '50m')" in said


def bench(*arguments: object, code: int) -> str:
    return words_of(run_bench(commands.cpu, *arguments, code=code))
