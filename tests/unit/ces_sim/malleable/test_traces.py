"""Traces and speeds are read as they are, and whatever is amiss is named."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ces_sim.malleable.traces import ClusterSpec, TraceError, read_speeds, read_trace

HEAD = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "dl-jobs"
    speeds = folder / "elasticflow-philly" / "throughputs_A100"
    speeds.mkdir(parents=True)
    (speeds / "bert.csv").write_text("global_batch_size,1,2,4\n64,3.0,5.0,4.0\n4,1.0,,nan\n")
    (folder / "elasticflow-itp").mkdir()
    monkeypatch.setenv("CES_DATA_DIR", str(tmp_path))
    return folder


def test_jobs_in_the_order_of_their_arrival(data: Path) -> None:
    (data / "elasticflow-itp" / "t.csv").write_text(HEAD + "b,20,100,bert,90,64,2,20\na,10,50,bert,70,64,1,17\n")
    first, second = read_trace("t", "A100")
    assert (first.name, first.arrived_s, first.deadline_s, second.gpus, second.duration_s) == ("a", 10, 70, 2, 20)
    assert first.malleable(8).profile.sizes == (1, 2)  # four are slower than two
    assert first.malleable(8).speeds.sizes == (1, 2, 4)
    assert first.malleable(1).speeds.sizes == (1,)


def test_the_other_files_call_columns_otherwise(data: Path) -> None:
    head = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n"
    (data / "elasticflow-philly" / "t.csv").write_text(head + "b,20,100,bert,90,64,2,20,1\n")
    (job,) = read_trace("t", "A100")
    assert (job.iterations, job.deadline_s) == (100, math.inf)


def test_empty_cells_are_absent(data: Path) -> None:
    speeds = read_speeds("A100")["bert", 4]
    assert set(speeds) == {1, 4}
    assert math.isnan(speeds[4])


def test_what_is_absent_or_broken_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TraceError, match=r"no missing\.csv"):
        read_trace("missing", "A100")
    with pytest.raises(TraceError, match="throughputs_T4"):
        read_speeds("T4")
    (data / "elasticflow-itp" / "t.csv").write_text(HEAD + "b,20,100,gpt9,90,64,2,20\n")
    with pytest.raises(TraceError, match="gpt9"):
        read_trace("t", "A100")
    monkeypatch.delenv("CES_DATA_DIR")
    with pytest.raises(TraceError, match="CES_DATA_DIR is not set"):
        read_trace("t", "A100")


def test_clusters() -> None:
    assert ClusterSpec.of("n16g8").capacity == 128
    for text in ("n0g8", "16x8", "n16g8x", ""):
        with pytest.raises(TraceError, match="n16g8"):
            ClusterSpec.of(text)
