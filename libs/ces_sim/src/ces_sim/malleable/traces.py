"""Traces of training jobs and measured speeds, in the files of the public ElasticFlow artifact, from ``CES_DATA_DIR``.

Jobs: CSV with ``submission_time`` or ``submit_time`` (s), ``num_iteration`` or ``iteration``, ``model_name``,
``deadline`` or ``ddl`` (s), ``batch_size``, ``num_gpu`` and ``duration`` (s). Speeds: a CSV file for each model, a row
for each global batch size, a column of iterations/s for each number of GPUs. Clusters: ``n16g8`` is 16 nodes of 8 GPUs.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ces_core.malleable.model import MalleableJob, SpeedProfile

FOLDER = "dl-jobs"
"""Where the data lies within CES_DATA_DIR."""
JOB_FOLDERS = ("elasticflow-itp", "elasticflow-philly")
Speeds = Mapping[tuple[str, int], Mapping[int, float]]
"""Of (model, global batch size): GPUs -> iterations/s, not a number where the cell says so; empty cells are absent."""


class TraceError(ValueError):
    """A file is absent, or does not say what it should; the message names it."""


@dataclass(frozen=True)
class TracedJob:
    """A row of a trace, with what was measured of its model. ``duration_s``: at ``gpus`` GPUs, as the trace says."""

    number: int
    name: str
    arrived_s: int
    iterations: int
    model: str
    deadline_s: float
    batch: int
    gpus: int
    duration_s: int
    speeds: Mapping[int, float]

    def malleable(self, capacity: int) -> MalleableJob:
        """To choose from: sizes up to the batch size, and to ``capacity``, that are faster than all smaller ones."""
        usable = {size: rate for size, rate in self.speeds.items() if size <= min(capacity, self.batch)}
        measured = SpeedProfile.of(usable)
        return MalleableJob(
            self.name, float(self.arrived_s), float(self.iterations), float(self.deadline_s), measured.rising,
            self.gpus, measured=measured,
        )  # fmt: skip


@dataclass(frozen=True)
class ClusterSpec:
    """``nodes`` alike, of ``gpus`` GPUs each."""

    nodes: int
    gpus: int

    @staticmethod
    def of(text: str) -> ClusterSpec:
        """From a name such as n16g8. Raises TraceError."""
        found = re.fullmatch(r"n([1-9]\d{0,4})g([1-9]\d{0,2})", text)
        if not found:
            raise TraceError(f"{text!r} is no cluster: n16g8 is 16 nodes of 8 GPUs")
        return ClusterSpec(int(found[1]), int(found[2]))

    @property
    def capacity(self) -> int:
        return self.nodes * self.gpus


def data_folder() -> Path:
    """Raises TraceError where there is none."""
    root = os.environ.get("CES_DATA_DIR")
    if not root:
        raise TraceError(
            "CES_DATA_DIR is not set: the folder that holds dl-jobs/ (docs/benchmarks/elastic.md says where from)"
        )
    folder = Path(root, FOLDER)
    if not folder.is_dir():
        raise TraceError(f"{folder} is absent: CES_DATA_DIR must hold it")
    return folder


def read_speeds(gpu: str) -> Speeds:
    """All that was measured on this type of GPU, A100 or T4. Raises TraceError."""
    folder = data_folder() / "elasticflow-philly" / f"throughputs_{gpu}"
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise TraceError(f"{folder} holds no speeds")
    found: dict[tuple[str, int], dict[int, float]] = {}
    for file in files:
        for row in _rows(file):
            try:
                batch = int(row.pop("global_batch_size"))
                found[file.stem, batch] = {int(size): float(cell) for size, cell in row.items() if cell}
            except (KeyError, ValueError) as error:
                raise TraceError(f"{file}: {error}") from error
    return found


def read_trace(name: str, gpu: str) -> list[TracedJob]:
    """The jobs of a trace by its name, in order of arrival. Raises TraceError."""
    file = next((found for folder in JOB_FOLDERS if (found := data_folder() / folder / f"{name}.csv").is_file()), None)
    if file is None:
        raise TraceError(f"no {name}.csv in {' or '.join(JOB_FOLDERS)} of {data_folder()}")
    speeds = read_speeds(gpu)
    try:
        jobs = [_job(number, row, speeds) for number, row in enumerate(_rows(file))]
    except (KeyError, ValueError) as error:
        raise TraceError(f"{file}: {error!r}") from error
    return sorted(jobs, key=lambda job: job.arrived_s)


def _job(number: int, row: Mapping[str, str], speeds: Speeds) -> TracedJob:
    def cell(*names: str) -> int:
        return int(float(next(row[name] for name in names if name in row)))

    best_effort = row.get("best_effort") == "1"
    model, batch = row["model_name"], cell("batch_size")
    return TracedJob(
        number, row["job_id"], cell("submission_time", "submit_time"), cell("num_iteration", "iteration"), model,
        math.inf if best_effort else cell("deadline", "ddl"), batch, cell("num_gpu"), cell("duration"),
        speeds[model, batch],
    )  # fmt: skip


def _rows(file: Path) -> Iterator[dict[str, str]]:
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            yield from csv.DictReader(stream)
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error}") from error
