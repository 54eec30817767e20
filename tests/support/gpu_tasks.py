"""Nodes with GPUs and tasks that share them, for tests: drawn ones, and a small trace in the public one's files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from hypothesis import strategies as st
from typer.testing import CliRunner

from ces_core.gpus.model import CARD, Asked, GpuNode, GpuTask, Models

MODELS = ("T4", "P100", "G2")


def asked(
    cpu: int = 0, gpus: int = 1, milli: int = CARD, models: int = 0, memory: int = 0, card_memory: int = 0
) -> Asked:
    """As compiled code has it."""
    return Asked(cpu, memory, gpus, milli, models, card_memory)


@st.composite
def gpu_nodes(draw: st.DrawFn, most: int = 6) -> list[GpuNode]:
    return [
        GpuNode(
            f"n{i}", draw(st.integers(0, 16)) * 1000, draw(st.integers(0, 64)) * 1024, draw(st.integers(0, 4)),
            draw(st.sampled_from(MODELS)), draw(st.sampled_from([8000, 16000])),
        )
        for i in range(draw(st.integers(1, most)))
    ]  # fmt: skip


@st.composite
def gpu_tasks(draw: st.DrawFn, most: int = 30) -> list[GpuTask]:
    """At least one of them asks for a GPU."""
    found = []
    for i in range(draw(st.integers(1, most))):
        gpus = draw(st.sampled_from([0, 1, 1, 1, 2, 4])) if i else 1
        milli = 0 if not gpus else CARD if gpus > 1 else draw(st.sampled_from([50, 320, 470, 500, 810, CARD]))
        models = draw(st.sets(st.sampled_from(MODELS), max_size=2)) if gpus else set()
        found.append(
            GpuTask(
                f"t{i}", draw(st.integers(0, 8)) * 500, draw(st.integers(0, 16)) * 512, gpus, milli, frozenset(models),
                milli * draw(st.sampled_from([4, 8, 12])) if gpus else 0,
            )
        )  # fmt: skip
    return found


def all_asked(models: Models, tasks: list[GpuTask]) -> list[Asked]:
    return [models.asked(task) for task in tasks]


HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def write_trace(root: Path, *, nodes: int = 80, pods: int = 400) -> None:
    """A small one under ``root``, as CES_DATA_DIR: nodes with T4 and P100, pods of which most share a card."""
    folder = root / "alibaba-gpu-v2023"
    folder.mkdir(parents=True)
    rows = [f"node-{i:04},{(32, 16)[i % 2]}000,131072,2,{('T4', 'P100')[i % 2]}\n" for i in range(nodes)]
    (folder / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "".join(rows))
    shares = (810, 470, 320, 1000, 650, 230, 0)
    lines = [
        f"pod-{i:04},{2000 + 500 * (i % 5)},{1024 * (1 + i % 7)},{int(shares[i % 7] > 0)},{shares[i % 7]},"
        f"{'T4|P100' if i % 11 == 0 and shares[i % 7] else ''}\n"
        for i in range(pods)
    ]
    (folder / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress((HEAD + "".join(lines)).encode()))


def bench(command: Callable[..., None], *arguments: object, code: int = 0) -> Any:
    """A command of ``ces bench``, which must end with ``code``."""
    app = typer.Typer()
    app.command()(command)
    run = CliRunner().invoke(app, [str(word) for word in arguments])
    assert run.exit_code == code, run.output + repr(run.exception)
    return run
