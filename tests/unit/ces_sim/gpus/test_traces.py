"""Nodes and tasks are read from the public trace's files, and what is wrong with these is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from gpu_tasks import HEAD, write_trace

from ces_core.gpus.model import GpuNode, GpuTask
from ces_sim.gpus.traces import TraceError, lists, read_nodes, read_tasks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_trace(tmp_path, nodes=3, pods=9)
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    return tmp_path / "alibaba-gpu-v2023"


def test_what_the_files_say(folder: Path) -> None:
    assert lists() == ("default",)
    assert read_nodes()[1] == GpuNode("node-0001", 16_000, 131_072, 2, "P100")
    tasks = read_tasks("default")
    assert tasks[0] == GpuTask("pod-0000", 2000, 1024, 1, 810, frozenset({"T4", "P100"}))
    assert tasks[6] == GpuTask("pod-0006", 2500, 7168)


def test_some_lists_have_no_models(folder: Path) -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,2,1000\n"
    (folder / "openb_pod_list_plain.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert read_tasks("plain") == [GpuTask("p", 1, 2, 2, 1000)]


def test_without_data_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CES_DATA_DIR", raising=False)
    with pytest.raises(TraceError, match="CES_DATA_DIR is not set"):
        lists()
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    with pytest.raises(TraceError, match="alibaba-gpu-v2023 is absent"):
        read_nodes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress((HEAD + "p,1,2,2,500,\n").encode()), "line 2: .*2 x 500 milli"),
        (gzip.compress((HEAD + "p,1,x,0,0,\n").encode()), "line 2: .*'x'"),
        (gzip.compress((HEAD + "p,1\n").encode()), "line 2"),
        (gzip.compress(b"name\np\n"), "line 2: KeyError"),
        (gzip.compress(HEAD.encode()), "holds no pods"),
        (gzip.compress(b"\xff\xfe"), "cannot be read"),
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"x" * 1000)[:20], "cannot be read"),
    ],
    ids=[
        "a share of two cards",
        "no number",
        "too few fields",
        "other fields",
        "no pods",
        "no text",
        "no gzip",
        "torn",
    ],
)
def test_bad_files_are_named(folder: Path, content: bytes, said: str) -> None:
    (folder / "openb_pod_list_bad.csv.gz").write_bytes(content)
    with pytest.raises(TraceError, match=f"openb_pod_list_bad.csv.gz.*{said}"):
        read_tasks("bad")
