"""The job file: the contract's example, every way to get one wrong, and what the named topologies stand for."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common.jobfile import ABOUT_INPUT, LONGEST_RUN, MAX_TASKS, Flow, JobFile
from ces_common.topologies import topology_pairs

EXAMPLES = Path(__file__).parents[3] / "examples" / "jobs"
TEN = {"min": "10Mbit", "max": "50Mbit"}


def job(**fields: object) -> dict[str, object]:
    return {"name": "j", "tasks": [{"name": "w", "replicas": 3, "command": ["run"]}], **fields}


def group(**fields: object) -> dict[str, object]:
    return job(tasks=[{"name": "w", "command": ["run"], **fields}])


def edge(src: str = "w-0", dst: str = "w-1", low: str = "1Mbit", high: str = "2Mbit") -> dict[str, object]:
    return {"src": src, "dst": dst, "bandwidth": {"min": low, "max": high}}


def test_the_contracts_example_parses() -> None:
    text = """
    name: digits-ring
    priority: 50
    tasks:
      - name: worker
        replicas: 5
        image: ces-worker-train
        command: [python, -m, ces_workloads.train, --algorithm, ring]
        resources: {cpu: 500m, memory: 256Mi, gpu: 0}
        constraints: {arch: arm64, labels: {site: roof}}
    flows:
      topology: ring
      direction: forward
      bandwidth: {min: 10Mbit, max: 50Mbit}
    restart: {policy: on-failure, max: 3, scope: gang}
    disconnect: stop
    """
    parsed = JobFile.model_validate(yaml.safe_load(text))
    tasks = parsed.expand_tasks()
    assert [(task.name, task.rank) for task in tasks] == [(f"worker-{i}", i) for i in range(5)]
    assert {(task.cpu, task.memory, task.arch) for task in tasks} == {(500, 256 * 2**20, "arm64")}
    assert tasks[0].labels == {"site": "roof"}
    flows = parsed.expand_flows()
    assert [(flow.src, flow.dst) for flow in flows] == [(f"worker-{i}", f"worker-{(i + 1) % 5}") for i in range(5)]
    assert {(flow.min, flow.max) for flow in flows} == {(10**7, 5 * 10**7)}


def test_workers_outlive_their_nodes_lease_by_five_minutes_unless_the_file_says_otherwise() -> None:
    assert JobFile.model_validate(job()).disconnect == "5m"
    assert JobFile.model_validate(job(disconnect="5m")) == JobFile.model_validate(job())
    assert JobFile.model_validate(job(disconnect="stop")).disconnect == "stop"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_examples_parse(path: Path) -> None:
    assert JobFile.model_validate(yaml.safe_load(path.read_text())).expand_tasks()


def test_edges_and_several_groups() -> None:
    parsed = JobFile.model_validate(
        job(
            tasks=[{"name": "ps", "image": "i"}, {"name": "w", "replicas": 2, "script": "train.py"}],
            flows={"topology": "edges", "edges": [edge("ps-0", "w-1"), edge("w-1", "ps-0")]},
        )
    )
    assert [(task.rank, task.name) for task in parsed.expand_tasks()] == [(0, "ps-0"), (1, "w-0"), (2, "w-1")]
    assert parsed.expand_tasks()[1].command == ["python", "train.py"]
    assert [(flow.src, flow.dst) for flow in parsed.expand_flows()] == [("ps-0", "w-1"), ("w-1", "ps-0")]


@pytest.mark.parametrize(
    ("wrong", "field", "why"),
    [
        (job(nmae="x"), "nmae", "Extra inputs"),
        (job(name="Big"), "name", "match"),
        (job(name="a" * 64), "name", "match"),
        (job(name="-a"), "name", "match"),
        (job(name="a\n"), "name", "match"),
        (job(priority=101), "priority", "100"),
        (job(tasks=[]), "tasks", "at least 1"),
        (job(disconnect="perhaps"), "disconnect", "stop"),
        (job(restart={"scope": "world"}), "restart.scope", "gang"),
        (job(restart={"max": -1}), "restart.max", "greater"),
        (group(replica=2), "tasks.0.replica", "Extra inputs"),
        (group(name="a.b"), "tasks.0.name", "match"),
        (group(replicas=0), "tasks.0.replicas", "greater"),
        (group(script="x.py"), "tasks.0", "command or script, not both"),
        (job(tasks=[{"name": "w"}]), "tasks.0", "nothing to run"),
        (group(env={"A B": "c"}), "tasks.0.env.A B", "match"),
        (group(resources={"cpu": "fast"}), "tasks.0.resources.cpu", "no CPU quantity"),
        (group(resources={"cpu": "0"}), "tasks.0.resources.cpu", "more than zero"),
        (group(resources={"memory": "1Foo"}), "tasks.0.resources.memory", "unknown memory unit"),
        (group(resources={"memory": 10**16}), "tasks.0.resources.memory", "too large"),
        (group(resources={"gpu": -1}), "tasks.0.resources.gpu", "must be at least 0"),
        (group(constraints={"arch": "ARM 64"}), "tasks.0.constraints.arch", "match"),
        (group(constraints={"labels": {"": "x"}}), "tasks.0.constraints.labels", "at least 1"),
        (job(flows={"topology": "ring"}), "flows", "ring needs bandwidth"),
        (job(flows={"topology": "mesh"}), "flows.topology", "ring"),
        (job(flows={"bandwidth": TEN}), "flows", "belongs to each edge"),
        (job(flows={"topology": "ring", "bandwidth": TEN, "edges": [edge()]}), "flows", "only with topology: edges"),
        (job(flows={"topology": "star", "direction": "both", "bandwidth": TEN}), "flows", "direction"),
        (job(flows={"topology": "ring", "bandwidth": {"min": 2, "max": 1}}), "flows.bandwidth", "min is more than max"),
        (job(flows={"topology": "ring", "bandwidth": {"min": 0, "max": 1}}), "flows.bandwidth", "more than zero"),
        (job(flows={"topology": "ring", "bandwidth": {"min": "x", "max": 1}}), "flows.bandwidth.min", "no bandwidth"),
        (job(flows={"edges": [edge(dst="w-9")]}), "", r"flows.edges\[0\]: no task is named 'w-9'; tasks are w-0"),
        (job(flows={"edges": [edge(), edge()]}), "", r"flows.edges\[1\]: a second flow from w-0 to w-1"),
        (job(flows={"edges": [edge(dst="w-0")]}), "", r"flows.edges\[0\]: a flow needs two different tasks"),
        (job(flows={"edges": [edge(low="9Mbit")]}), "flows.edges.0.bandwidth", "min is more than max"),
        (
            job(tasks=[{"name": "w", "image": "i"}, {"name": "w", "image": "i"}]),
            "",
            "tasks: the group name 'w' is used twice",
        ),
        (
            job(tasks=[{"name": "a", "image": "i", "replicas": MAX_TASKS}, {"name": "b", "image": "i"}]),
            "",
            f"tasks: {MAX_TASKS + 1} tasks are more than the {MAX_TASKS}",
        ),
        (
            job(
                tasks=[{"name": "w", "image": "i", "replicas": 100}],
                flows={"topology": "full", "bandwidth": {"min": 1, "max": 2}},
            ),
            "",
            "flows: 9900 flows are more than the 4096",
        ),
        (job(tenant="Team A"), "tenant", "match"),
        (job(tenant=""), "tenant", "match"),
        (job(duration="45 minutes"), "duration", "unknown unit of time 'minutes'; write 90s, 45m"),
        (job(duration="-5m"), "duration", "is no duration; write it like 45m"),
        (job(duration=0), "duration", "more than zero, and 3650d at most; leave it out if unknown"),
        (job(duration="3651d"), "duration", "3650d at most"),
        (group(command=["echo", "a\0b"]), "tasks.0.command.1", "null character"),
        (group(env={"A": "\0"}), "tasks.0.env.A", "null character"),
        (
            job(tasks=[{"name": "a" * 61, "image": "i", "replicas": 11}]),
            "",
            "tasks: the task name 'a+-10' has more than 63",
        ),
    ],
)
def test_a_wrong_file_names_the_field(wrong: dict[str, object], field: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as refused:
        JobFile.model_validate(wrong)
    places = [".".join(map(str, error["loc"])) for error in refused.value.errors()]
    assert any(place.startswith(field) for place in places), places


def pairs(topology: str, count: int, direction: str = "forward") -> set[tuple[int, int]]:
    return set(topology_pairs(topology, count, direction))


@pytest.mark.parametrize("topology", ["ring", "star", "tree", "full", "gossip"])
def test_one_task_has_no_flows(topology: str) -> None:
    assert pairs(topology, 1) == set()


@pytest.mark.parametrize("topology", ["star", "tree", "full", "gossip"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_all_but_the_ring_go_both_ways(topology: str, count: int) -> None:
    found = pairs(topology, count)
    assert found == {(b, a) for a, b in found}


def test_rings() -> None:
    assert pairs("ring", 2) == {(0, 1), (1, 0)}
    assert pairs("ring", 3) == {(0, 1), (1, 2), (2, 0)}
    assert pairs("ring", 3, "reverse") == {(1, 0), (2, 1), (0, 2)}
    assert pairs("ring", 3, "both") == set(permutations(range(3), 2))
    assert pairs("ring", 5) == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)}


def test_stars() -> None:
    assert pairs("star", 2) == {(0, 1), (1, 0)}
    assert pairs("star", 3) == {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert len(pairs("star", 5)) == 8


def test_trees() -> None:
    assert pairs("tree", 3) == pairs("star", 3)
    down = {(0, 1), (0, 2), (1, 3), (1, 4)}
    assert pairs("tree", 5) == down | {(b, a) for a, b in down}


def test_full() -> None:
    assert pairs("full", 3) == set(permutations(range(3), 2))
    assert len(pairs("full", 5)) == 20


def test_gossip() -> None:
    assert pairs("gossip", 2) == {(0, 1), (1, 0)}
    assert pairs("gossip", 3) == pairs("full", 3)
    assert pairs("gossip", 5) == pairs("full", 5)
    assert (0, 3) not in pairs("gossip", 6)
    assert len(pairs("gossip", 6)) == 24


@given(
    st.sampled_from(["ring", "star", "tree", "full", "gossip"]),
    st.integers(1, 40),
    st.sampled_from(["forward", "reverse", "both"]),
)
def test_at_most_one_flow_per_ordered_pair_and_none_to_itself(topology: str, count: int, direction: str) -> None:
    found = topology_pairs(topology, count, direction)
    assert len(found) == len(set(found))
    assert all(a != b and 0 <= a < count and 0 <= b < count for a, b in found)
    if count > 1:
        assert {end for pair in found for end in pair} == set(range(count))


def test_who_names_no_tenant_and_no_duration_has_the_default_and_none() -> None:
    plain = JobFile.model_validate(job())
    assert (plain.tenant, plain.duration) == ("default", None)
    told = JobFile.model_validate(job(tenant="vision", duration="45m"))
    assert (told.tenant, told.duration) == ("vision", 2700)


@given(
    st.integers(1, 12),
    st.sampled_from(["ring", "star", "tree", "full", "gossip"]),
    st.none() | st.integers(1, LONGEST_RUN),
)
def test_a_job_file_survives_its_own_json(replicas: int, topology: str, duration: int | None) -> None:
    tasks = [{"name": "w", "replicas": replicas, "image": "i"}]
    written = JobFile.model_validate(
        job(tasks=tasks, flows={"topology": topology, "bandwidth": TEN}, duration=duration)
    )
    again = JobFile.model_validate_json(written.model_dump_json())
    assert again == written
    assert again.expand_flows() == written.expand_flows()


def with_inputs(*inputs: dict[str, Any], **flows: Any) -> dict[str, Any]:
    group = {"name": "w", "replicas": 2, "command": ["true"]}
    return {"name": "j", "tasks": [group], "flows": {"inputs": list(inputs), **flows}}


SOURCE = {"node": "n3", "dst": "w-1", "bandwidth": {"min": "5Mbit", "max": "50Mbit"}}


def test_data_of_a_node_is_a_flow_beside_those_between_tasks() -> None:
    named = SOURCE | {"dst": "w-0", "datasets": ["mnist", "words.v2"]}
    ring = {"topology": "ring", "mode": "elastic", "bandwidth": {"min": "1Mbit", "max": "2Mbit"}}
    flows = JobFile.model_validate(with_inputs(SOURCE, named, **ring)).expand_flows()
    assert [(flow.src, flow.dst, flow.data_node) for flow in flows[:2]] == [("w-0", "w-1", None), ("w-1", "w-0", None)]
    assert flows[2:] == [
        Flow(src="@n3", dst="w-1", min=5_000_000, max=50_000_000, mode="elastic"),
        Flow(src="@n3", dst="w-0", min=5_000_000, max=50_000_000, mode="elastic", datasets=["mnist", "words.v2"]),
    ]
    assert {flow.data_node for flow in flows[2:]} == {"n3"}


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([SOURCE | {"dst": "w-7"}], "flows.inputs[0].dst: no task is named 'w-7'; tasks are w-0, w-1..."),
        ([SOURCE, SOURCE], "flows.inputs[1]: a second input from n3 to w-1; name all that it reads there"),
        ([SOURCE | {"datasets": ["a", "a"]}], "flows.inputs[0].datasets: 'a' is named twice"),
        ([SOURCE | {"datasets": ["../etc"]}], "'../etc' is no dataset's name"),
        ([SOURCE | {"datasets": ["a/b"]}], "'a/b' is no dataset's name"),
        ([SOURCE | {"datasets": [".hidden"]}], "'.hidden' is no dataset's name"),
        ([SOURCE | {"datasets": ["a\n"]}], "is no dataset's name"),
        ([SOURCE | {"node": "n/3"}], "flows.inputs.0.node"),
        ([SOURCE | {"path": "x"}], "flows.inputs.0.path"),
        ([SOURCE | {"bandwidth": {"min": "0", "max": "1Mbit"}}], "min must be more than zero"),
    ],
)
def test_inputs_that_make_no_sense_are_refused(inputs: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        JobFile.model_validate(with_inputs(*inputs))
    assert said in str(refused.value)


def test_what_one_task_reads_fits_in_its_environment() -> None:
    """Linux refuses to start a program with a variable of more than 128 KiB."""
    names = [f"{i:02}" + "x" * 61 for i in range(64)]
    many = [SOURCE | {"node": f"{i:03}" + "n" * 60, "datasets": names} for i in range(40)]
    with pytest.raises(ValidationError, match=r"flows.inputs\[\d+\]: what w-1 reads.*name fewer datasets, or none"):
        JobFile.model_validate(with_inputs(*many))
    half = [each | {"dst": f"w-{i % 2}"} for i, each in enumerate(many)]
    flows = JobFile.model_validate(with_inputs(*half)).expand_flows()
    assert len(flows) == 40
    url = f"http://[{'ffff:' * 7}ffff]:65535/"
    told = [
        {"node": flow.data_node, "url": url, "datasets": flow.datasets, "bandwidth": 10**15}
        for flow in flows
        if flow.dst == "w-0"
    ]
    assert len(json.dumps(told)) < 2**17
    plain = {"node": "", "url": url, "datasets": [], "bandwidth": 10**15}
    assert len(json.dumps([plain])) <= ABOUT_INPUT, "what is counted for each"


@pytest.mark.parametrize(("cpu", "fits"), [("199m", False), ("200m", True), ("1", True), (2, True), ("2001m", False)])
def test_elastic_cpu_holds_what_the_group_begins_with(cpu: object, fits: bool) -> None:
    asked = group(resources={"cpu": cpu}) | {
        "elastic": {"group": "w", "workers": {"min": 2, "max": 2}, "cpu": {"min": "200m", "max": 2}}
    }
    if fits:
        assert JobFile.model_validate(asked).at_size(2).expand_tasks()[1].name == "w-1"
        return
    with pytest.raises(
        ValidationError, match=r"w starts with a resources.cpu of .*; give it 200m to 2, as elastic.cpu"
    ):
        JobFile.model_validate(asked)
