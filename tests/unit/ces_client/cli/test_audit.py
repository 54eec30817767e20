"""``ces audit``: what it reads, what it says, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from audit_logs import START, WHOLE, Fact, numbered, started
from typer.testing import CliRunner

from ces_client.cli import app
from ces_common.messages.api import LinkView, NodeView, TaskView, TopologyView

TOPOLOGY = "links: [{src: a, dst: b, bandwidth: %s, both: false}]\n"


JOB = "name: j\ntasks: [{name: t, replicas: 2, command: [x], resources: {cpu: %s, memory: 64Mi}}]\n"


def ces(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, ["audit", *(str(word) for word in arguments)])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def written(path: Path, facts: list[Fact]) -> Path:
    """As `ces events -o json` writes them."""
    lines = [{"type": e["type"], "sequence": e["sequence"], "data": e} for e in numbered(facts)]
    news = {"type": "progress", "sequence": None, "data": {"round": 3}}
    path.write_text("\n".join(json.dumps(line) for line in [news, *lines]) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "log", WHOLE)


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "topology.yaml"
    path.write_text(TOPOLOGY % "100bit")
    return path


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "jobs" / "j.yaml"
    path.parent.mkdir()
    path.write_text(JOB % "600m")
    return path


def test_a_clean_log(log: Path, topology: Path, job: Path) -> None:
    """What the job asks for in memory does not fit the nodes of the sample, which have 100 bytes."""
    text = ces("--log", log, "--topology", topology, "--job", job, code=1).stdout
    assert "memory of node a: 67108864 of 100 is overbooked" in text
    text = ces("--log", log, "--topology", topology).stdout
    assert "nothing was wrong in 41 checks of 8 promises" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("link-capacity"))
    assert row[:3] == ["link-capacity", "1", "0"]
    assert "Quotas and shares of tenants" in text, "what is not checked is said as well"
    assert "1 (1 succeeded)" in text
    assert "CPU, memory and GPUs of 1 jobs: what their tasks asked for is not known" in text
    told = json.loads(ces("--log", log, "--topology", topology, "-o", "json").stdout)
    assert (told["clean"], told["events"], told["plans"], told["findings"]) == (True, len(WHOLE), 1, [])
    assert [(peak["what"], peak["share"]) for peak in told["peaks"]] == [("link", 0.5)]


def test_findings_end_it_with_status_1(log: Path, topology: Path) -> None:
    topology.write_text(TOPOLOGY % "52bit")
    text = ces("--log", log, "--topology", topology, code=1).stdout
    assert "link a -> b: 50 of 52 is overbooked" in text
    assert "1 finding" in text
    told = json.loads(ces("--log", log, "--topology", topology, "-o", "json", code=1).stdout)
    (finding,) = told["findings"]
    assert (finding["event"], finding["kind"]) == (6, "link-capacity")


def test_only_a_finished_log_must_hold_nothing(tmp_path: Path, topology: Path) -> None:
    log = written(tmp_path / "half", [*START, *started()])
    assert "2 allocations" in ces("--log", log, "--topology", topology).stdout
    assert "job j ends running" in ces("--log", log, "--topology", topology, "--finished", code=1).stdout


def test_a_folder_of_job_files(log: Path, topology: Path, job: Path) -> None:
    (job.parent / "notes.txt").write_text("no job")
    told = ces("--log", log, "--topology", topology, "--job", job.parent, "-o", "json", code=1).stdout
    assert json.loads(told)["unjudged"] == []
    (job.parent / "k.yaml").write_text(JOB % "700m")
    assert "two jobs are called j" in ces("--log", log, "--job", job.parent, code=2).stderr
    empty = job.parent / "empty"
    empty.mkdir()
    assert "holds no job files" in ces("--log", log, "--job", empty, code=2).stderr


def test_bad_input_is_named_and_ends_it_with_status_2(tmp_path: Path, log: Path, topology: Path) -> None:
    assert "there is no such file" in ces("--log", tmp_path / "none", code=2).stderr
    topology.write_text("links: [{src: a}]")
    assert "links[0].dst" in ces("--log", log, "--topology", topology, code=2).stderr
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:3], "half a li"]))
    assert "line 4" in ces("--log", log, code=2).stderr
    events = numbered(WHOLE)
    del events[4]["data"]["state"]
    log.write_text("\n".join(json.dumps({"type": e["type"], "sequence": e["sequence"], "data": e}) for e in events))
    answer = ces("--log", log, code=2).stderr
    assert "event 5 of it: it has no field 'state'" in answer
    assert "remedy" in answer
    error = json.loads(ces("--log", log, "-o", "json", code=2).stdout)["error"]
    assert error["errors"][0]["field"] == "event 5 of it"


def test_a_whole_cluster(connected: Any, samples: Any) -> None:
    """Events, topology and what was asked for come over the REST API."""
    nodes = [
        NodeView(
            name=name, state="ready", cordoned=False, cpu=1000, memory=100, gpu=0, cpu_allocated=0, memory_allocated=0,
            gpu_allocated=0, arch="", runtime="process", network="tc", host_address="10.0.0.1", subnet="10.1.0.0/24",
        )
        for name in "ab"
    ]  # fmt: skip
    link = LinkView(src="a", dst="b", bandwidth=100, reserved=0, kind="veth")
    connected.on("GET", "topology", TopologyView(version=1, nodes=nodes, links=[link]))
    tasks = [TaskView(name=f"t-{i}", rank=i, cpu=600, memory=10) for i in range(2)]
    view = samples.job("succeeded").model_copy(update={"id": "j", "name": "j", "placement": tasks})
    connected.on("GET", "jobs", [view])
    connected.on("GET", "jobs/j", view)
    events = [(event["sequence"], event["type"], event) for event in numbered(WHOLE)]
    connected.on("GET", "events", samples.sse(*events, so_far=len(WHOLE)))
    told = json.loads(ces("--finished", "-o", "json").stdout)
    assert (told["events"], told["unjudged"], told["findings"]) == (len(WHOLE), [], [])
    assert {peak["what"]: peak["share"] for peak in told["peaks"]} == {"cpu": 0.6, "memory": 0.1, "link": 0.5}
    connected.on(
        "GET", "jobs/j", view.model_copy(update={"placement": [t.model_copy(update={"cpu": 1001}) for t in tasks]})
    )
    assert "cpu of node a: 1001 of 1000 is overbooked" in ces(code=1).stdout


def test_what_happens_while_it_reads_is_left_out(connected: Any, samples: Any, topology: Path) -> None:
    """A busy cluster's log would have no end."""
    events = [(event["sequence"], event["type"], event) for event in numbered(WHOLE)]
    connected.on("GET", "topology", TopologyView(version=1, nodes=[], links=[]))
    connected.on("GET", "events", samples.sse(*events[:7], (None, "so-far", {"number": 7}), *events[7:]))
    connected.on("GET", "jobs", [])
    assert json.loads(ces("--topology", topology, "-o", "json").stdout)["events"] == 7


def test_a_log_that_breaks_off_is_not_judged_as_if_it_were_whole(connected: Any, samples: Any) -> None:
    events = [(event["sequence"], event["type"], event) for event in numbered(WHOLE)]
    connected.on("GET", "events", samples.sse(*events[:7]))
    assert "the stream ended before all events so far had come" in ces(code=2).stderr
