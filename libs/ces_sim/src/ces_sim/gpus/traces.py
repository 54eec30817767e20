"""The GPU cluster trace of Alibaba, 2023, from ``CES_DATA_DIR``: nodes, and lists of pods as tasks.

Nodes: CSV with ``sn``, ``cpu_milli``, ``memory_mib``, ``gpu`` (how many cards) and ``model``. Pods: gzipped CSV with
``name``, ``cpu_milli``, ``memory_mib``, ``num_gpu``, ``gpu_milli`` and, in most, ``gpu_spec``, models joined by ``|``.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ces_core.gpus.model import GpuNode, GpuTask

FOLDER = "alibaba-gpu-v2023"
"""Where the data lies within CES_DATA_DIR."""
NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_{}.csv.gz"


class TraceError(ValueError):
    """A file is absent, or does not say what it should; the message names it."""


def data_folder() -> Path:
    """The folder of the trace within CES_DATA_DIR. Raises TraceError where there is none."""
    root = os.environ.get("CES_DATA_DIR")
    if not root:
        raise TraceError(
            f"CES_DATA_DIR is not set: the folder that holds {FOLDER}/ (docs/benchmarks/gpus.md says where from)"
        )
    folder = Path(root, FOLDER)
    if not folder.is_dir():
        raise TraceError(f"{folder} is absent: CES_DATA_DIR must hold it")
    return folder


def lists() -> tuple[str, ...]:
    """Names of all lists of pods that are there. Raises TraceError."""
    before, after = PODS.split("{}")
    return tuple(sorted(file.name[len(before) : -len(after)] for file in data_folder().glob(PODS.format("*"))))


def read_nodes() -> list[GpuNode]:
    """All nodes with GPUs, by name. Raises TraceError."""
    file = data_folder() / NODES
    found = []
    for line, row in enumerate(_rows(file), start=2):
        try:
            node = GpuNode(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError(f"{file}, line {line}: {error!r}") from error
        found.append(node)
    return sorted(found, key=lambda node: node.name)


def read_tasks(name: str) -> list[GpuTask]:
    """The pods of one list as tasks, in the order of the file. ``name``: one of :func:`lists`, such as ``default``.
    Raises TraceError."""
    file = data_folder() / PODS.format(name)
    found = []
    for line, row in enumerate(_rows(file), start=2):
        try:
            found.append(_task(row))
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError(f"{file}, line {line}: {error!r}") from error
    if not found:
        raise TraceError(f"{file} holds no pods")
    return found


def _task(row: Mapping[str, str]) -> GpuTask:
    models = frozenset(model for model in (row.get("gpu_spec") or "").split("|") if model)
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    return GpuTask(row["name"], int(row["cpu_milli"]), int(row["memory_mib"]), gpus, milli, models)


def _rows(file: Path) -> Iterator[dict[str, str]]:
    try:
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        yield from csv.DictReader(io.StringIO(text.decode("utf-8"), newline=""))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TraceError(f"{file} cannot be read: {error}") from error
