"""The desired workers: who is desired, what each is told, and which generation the agents must show."""

import json
from typing import Any

import pytest
from applications import inspection_file
from cluster_state import MBIT, NOW, job, node, view_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_common.jobfile import Flow, JobFile
from ces_common.messages.checkpoints import Checkpoint, JobCheckpoints
from ces_common.messages.desired import CheckpointSource, DesiredCompute, DesiredCopy, DesiredWorker
from ces_common.messages.records import FlowRecord, JobRecord, Snapshot
from ces_common.names import DATA_PORT, WORKER_DEVICE
from ces_common.state_view import StateView
from ces_common.states import AllocationState, JobState
from ces_common.torchrun import environment
from ces_compute_ctl.desired_compute import Planner, least_generations

CHECKPOINT = Checkpoint(attempt=1, incarnation=1, name="step", size=9, digest="0" * 64)
NODES = [node("a", 1), node("b", 2), node("c", 3, network="none")]


def ring(**fields: Any) -> JobRecord:
    flows = [(0, 1, 20 * MBIT, ["a", "b"]), (1, 0, 10 * MBIT, ["b", "a"])]
    return job("j", ["a", "b"], flows, addresses=["10.77.1.2", "10.77.2.2"], **fields)


def workers(*jobs: JobRecord) -> dict[str, list[DesiredWorker]]:
    return {name: document.workers for name, document in Planner().plan(view_of(NODES, [], jobs)).items()}


def test_a_worker_is_told_all_that_a_stock_program_needs() -> None:
    task = {"image": "img", "command": ["python", "x.py"], "env": {"MINE": "1"}, "gpu": 1}
    planned = workers(ring(task=task, allocation={"cards": ["GPU-b"]}))
    (second,) = planned["b"]
    assert (second.allocation, second.incarnation, second.key) == ("j-w-1", 1, "j-w-1.1")
    assert (second.job, second.task, second.rank) == ("j", "w-1", 1)
    assert (second.image, second.command) == ("img", ["python", "x.py"])
    assert (second.cpu, second.memory, second.gpu, second.cards) == (500, 2**28, 1, ["GPU-b"])
    assert {key: second.env[key] for key in second.env if key not in ("CES_PEERS", "CES_FLOWS")} == {
        "MINE": "1",
        "RANK": "1",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "10.77.1.2",
        "MASTER_PORT": "29500",
        "GLOO_SOCKET_IFNAME": WORKER_DEVICE,
        "CES_JOB": "j",
        "CES_JOB_NAME": "j",
        "CES_TASK": "w-1",
        "CES_ADDRESS": "10.77.2.2",
        "CES_PORT": "29500",
        "CES_INCARNATION": "1",
        "CES_INPUTS": "[]",
    }
    assert json.loads(second.env["CES_PEERS"]) == [
        {"rank": 0, "task": "w-0", "address": "10.77.1.2", "port": 29500, "node": "a"},
        {"rank": 1, "task": "w-1", "address": "10.77.2.2", "port": 29500, "node": "b"},
    ]
    assert json.loads(second.env["CES_FLOWS"]) == [
        {"src": "w-0", "dst": "w-1", "bandwidth": 20 * MBIT},
        {"src": "w-1", "dst": "w-0", "bandwidth": 10 * MBIT},
    ]
    (first,) = planned["a"]
    assert first.env["CES_PEERS"] == second.env["CES_PEERS"]


MALLEABLE = JobFile.model_validate(
    {
        "name": "j",
        "tasks": [{"name": "w", "command": ["torchrun", "train.py"]}],
        "elastic": {"group": "w", "workers": {"max": 4}, "grace": 7},
    }
)


def test_a_part_of_a_split_job_is_told_of_all_its_peers_and_its_rank_among_them() -> None:
    place = {"task": "m-0", "region": "south", "address": "10.99.5.2", "port": 29400}
    part = {"tasks": ["w-0", "w-1"], "ranks": {"m-0": 0, "w-0": 1, "w-1": 2}, "places": [place]}
    (second,) = workers(ring(part=part))["b"]
    assert (second.env["RANK"], second.env["WORLD_SIZE"]) == ("2", "3")
    assert (second.env["MASTER_ADDR"], second.env["MASTER_PORT"]) == ("10.99.5.2", "29400")
    assert [(peer["rank"], peer["task"], peer["node"]) for peer in json.loads(second.env["CES_PEERS"])] == [
        (0, "m-0", "south"),
        (1, "w-0", "a"),
        (2, "w-1", "b"),
    ]


def test_torchrun_is_told_of_a_malleable_job() -> None:
    forged = dict.fromkeys(["PET_NNODES", "PET_NODE_RANK", "PET_RDZV_ENDPOINT"], "x")
    (second,) = workers(ring(spec=MALLEABLE, task={"env": forged}, allocation={"incarnation": 3}))["b"]
    told = {name: value for name, value in second.env.items() if name.startswith("PET_")}
    shared = environment(nodes=2, address="10.77.1.2", port=29500, rendezvous="j-w-0.3", grace=7)
    assert told == shared | {"PET_NODE_RANK": "1"}


def test_torchrun_counts_the_elastic_group_alone() -> None:
    group = MALLEABLE.tasks[0].model_dump(exclude_defaults=True)
    beside = [{"name": "driver", "command": ["torchrun", "--standalone", "drive.py"]}, group]
    spec = JobFile.model_validate(MALLEABLE.model_dump(exclude_defaults=True) | {"tasks": beside})
    record = job("j", ["a", "b", "b"], addresses=["10.77.1.2", "10.77.2.2", "10.77.2.3"], spec=spec)
    names = ["driver-0", "w-0", "w-1"]
    tasks = [each.model_copy(update={"name": name}) for each, name in zip(record.tasks, names, strict=True)]
    ids = [{"id": f"j-{name}", "task": name, "port": 29500 + rank} for rank, name in enumerate(names)]
    allocations = [each.model_copy(update=to) for each, to in zip(record.allocations, ids, strict=True)]
    planned = workers(record.model_copy(update={"tasks": tasks, "allocations": allocations}))
    assert not [name for name in planned["a"][0].env if name.startswith("PET_")]
    shared = environment(nodes=2, address="10.77.2.2", port=29501, rendezvous="j-w-0.1", grace=7)
    for rank, each in enumerate(planned["b"]):
        told = {name: value for name, value in each.env.items() if name.startswith("PET_")}
        assert told == shared | {"PET_NODE_RANK": str(rank)}


def test_a_worker_is_told_of_its_own_flows_only() -> None:
    flows = [(0, 1, MBIT, ["a", "b"]), (1, 2, MBIT, ["b", "c"]), (2, 0, MBIT, ["c", "b", "a"])]
    (first,) = workers(job("j", ["a", "b", "c"], flows))["a"]
    assert [(flow["src"], flow["dst"]) for flow in json.loads(first.env["CES_FLOWS"])] == [
        ("w-0", "w-1"),
        ("w-2", "w-0"),
    ]


def test_a_jobs_own_environment_cannot_override_what_ces_says() -> None:
    forged = dict.fromkeys(["RANK", "WORLD_SIZE", "MASTER_ADDR", "CES_PEERS", "CES_ADDRESS", "GLOO_SOCKET_IFNAME"], "x")
    (first,) = workers(ring(task={"env": forged}))["a"]
    assert "x" not in first.env.values()


def test_workers_without_a_network_of_their_own_use_the_hosts_loopback() -> None:
    (only,) = workers(job("j", ["c"], addresses=["127.0.0.1"]))["c"]
    assert only.env["GLOO_SOCKET_IFNAME"] == "lo"


def test_which_device_of_a_host_is_not_guessed() -> None:
    (only,) = workers(job("j", ["c"], addresses=["192.0.2.3"]))["c"]
    assert "GLOO_SOCKET_IFNAME" not in only.env


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("allocation", list(AllocationState))
def test_who_is_desired(state: JobState, allocation: AllocationState) -> None:
    planned = workers(ring(state=state, allocation={"state": allocation}))
    alive = state in ("starting", "running", "paused", "suspended") and allocation in ("pending", "running")
    assert [len(planned[name]) for name in "abc"] == ([1, 1, 0] if alive else [0, 0, 0])


@pytest.mark.parametrize("state", ["paused", "suspended"])
def test_paused_and_suspended_jobs_have_paused_workers(state: str) -> None:
    assert workers(ring(state=state))["a"][0].paused
    assert not workers(ring())["a"][0].paused


def test_disconnect_and_incarnation_are_passed_on() -> None:
    (first,) = workers(ring(disconnect="keep", allocation={"incarnation": 4}))["a"]
    assert (first.disconnect, first.key, first.env["CES_INCARNATION"]) == ("keep", "j-w-0.4", "4")


def test_nodes_that_have_not_joined_are_left_out_and_idle_ones_have_an_empty_document() -> None:
    planned = Planner().plan(view_of([NODES[0]], [], [ring()], version=8))
    assert set(planned) == {"a"}
    assert Planner().plan(view_of(NODES, version=8))["c"] == DesiredCompute(
        node="c", epoch="e", generation=8, checkpoints=[]
    )


def moving(**known: Any) -> JobRecord:
    """A malleable job of one task on b, which was on a before; a copy of its checkpoint is on c."""
    spec = {"name": "j", "tasks": [{"name": "w", "command": ["x"]}], "elastic": {"group": "w", "sizes": [1]}}
    copy = {**CHECKPOINT.model_dump(), "nodes": ["c"], "at": NOW}
    return job("j", ["b"], addresses=["10.77.2.2"], spec=spec, size=1, checkpoint_node="b").model_copy(
        update={"checkpoints": JobCheckpoints.model_validate({"stored": [copy]} | known)}
    )


def test_a_first_task_that_goes_elsewhere_is_told_from_where_it_has_its_checkpoint() -> None:
    nodes = [*NODES[:2], node("c", 3, network="none", data_port=5000)]
    planned = Planner().plan(view_of(nodes, [], [moving(restoring=True, former="a")]))
    (worker,) = planned["b"].workers
    assert worker.restore
    assert worker.checkpoints == [
        CheckpointSource(node="a", url=f"http://10.77.1.1:{DATA_PORT}/.checkpoints/j"),
        CheckpointSource(node="c", url="http://192.0.2.3:5000/.checkpoints/j", checkpoint=CHECKPOINT),
    ]
    assert {name: document.checkpoints for name, document in planned.items()} == {"a": ["j"], "b": ["j"], "c": []}
    assert planned["c"].copies == [DesiredCopy(job="j", checkpoint=CHECKPOINT)]
    (begun,) = Planner().plan(view_of(nodes, [], [moving()]))["b"].workers
    assert (begun.restore, begun.checkpoints) == (False, [])


def test_the_newest_is_copied_to_one_other_node_and_what_lies_there_stays() -> None:
    newer = CHECKPOINT.model_copy(update={"digest": "1" * 64})
    stored = [{**newer.model_dump(), "at": NOW}, {**CHECKPOINT.model_dump(), "nodes": ["c"], "at": NOW}]
    planned = Planner().plan(view_of(NODES, [], [moving(stored=stored)]))
    source = CheckpointSource(node="b", url=f"http://10.77.2.1:{DATA_PORT}/.checkpoints/j", checkpoint=newer)
    assert planned["c"].copies == [
        DesiredCopy(job="j", checkpoint=CHECKPOINT),
        DesiredCopy(job="j", checkpoint=newer, source=source),
    ]
    assert planned["a"].copies == planned["b"].copies == []
    over = moving(stored=stored).model_copy(update={"state": JobState.SUCCEEDED})
    planned = Planner().plan(view_of(NODES, [], [over]))
    assert all((document.checkpoints, document.copies) == ([], []) for document in planned.values())


def test_an_agent_must_show_a_generation_from_after_the_last_stop() -> None:
    one = ring(state="cancelled", allocation={"state": "stopping", "stopping_since": 5})
    two = job("k", ["b", "c"], state="failed", allocation={"state": "stopping", "stopping_since": 7})
    three = job("l", ["c"], state="failed", allocation={"state": "stopped", "stopping_since": 9})
    assert least_generations(view_of(NODES, [], [one, two, three])) == {"a": 5, "b": 7, "c": 7}
    lost = NODES[0].model_copy(update={"least_generation": 6})
    assert least_generations(view_of([lost, *NODES[1:]], [], [one, two, three])) == {"a": 6, "b": 7, "c": 7}


def test_a_worker_has_what_was_committed_for_it_and_only_those_of_the_elastic_group_may_change() -> None:
    file = {
        "name": "j",
        "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "500m"}}, {"name": "ps", "command": ["x"]}],
        "elastic": {"group": "w", "workers": {"max": 4}, "cpu": {"min": "100m", "max": "2"}},
    }
    spec = JobFile.model_validate(file)
    records = [each.model_dump() for each in ring().allocations]
    records[0] |= {"cpu": 900, "cpu_desired": 700, "cpu_since": 6, "state": "running"}
    records[1] |= {"task": "ps-0"}
    sized = {"spec": spec, "size": 1, "tasks": spec.at_size(1).expand_tasks()}
    changed = JobRecord.model_validate(ring().model_dump() | sized | {"allocations": records})
    ((first,), (second,)) = (workers(changed)[name] for name in ("a", "b"))
    assert (first.cpu, first.elastic_cpu) == (700, True)
    assert (second.cpu, second.elastic_cpu) == (100, False)
    assert [(each.cpu, each.elastic_cpu) for each in workers(ring())["a"]] == [(500, False)]
    assert least_generations(view_of(NODES, [], [changed])) == {"a": 6}, "its agent is to say that it has no more"
    records[0] |= {"cpu": 700}
    settled = JobRecord.model_validate(ring().model_dump() | sized | {"allocations": records})
    assert least_generations(view_of(NODES, [], [settled])) == {}


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(JobState), st.sampled_from(AllocationState)), max_size=8))
@settings(max_examples=50, deadline=None)
def test_what_a_planner_remembers_never_shows(steps: list[tuple[int, JobState, AllocationState]]) -> None:
    planner, view = Planner(), view_of(NODES)
    for version, (number, state, allocation) in enumerate(steps, 2):
        record = job(f"j{number}", "abc"[: number + 1], state=state, allocation={"state": allocation})
        moved = node("b", 2, network="none" if version % 3 == 0 else "tc")
        view.merge(Snapshot(epoch="e", version=version, full=False, jobs=[record], nodes=[moved]))
        assert _unstamped(planner.plan(view)) == _unstamped(Planner().plan(_fresh(view)))


def _fresh(view: StateView) -> StateView:
    return view_of(view.nodes.values(), view.topology.links, view.jobs.values(), version=view.version)


def _unstamped(documents: dict[str, DesiredCompute]) -> dict[str, DesiredCompute]:
    return {name: document.model_copy(update={"generation": 0}) for name, document in documents.items()}


def test_a_worker_is_told_where_its_data_is_read() -> None:
    flows = [
        Flow(src="@a", dst="w-0", min=1, max=MBIT, datasets=["mnist"]),
        Flow(src="@c", dst="w-0", min=1, max=MBIT),
        Flow(src="w-0", dst="w-1", min=1, max=MBIT),
    ]
    reserved = [
        FlowRecord(number=i, src=flow.src, dst=flow.dst, min=1, max=MBIT, rate=i, path=["a", "b"])
        for i, flow in enumerate(flows, start=1)
    ]
    nodes = [node("a", 1), node("b", 2), node("c", 3, network="none", data_port=4711)]
    record = job("j", ["b", "b"], flows=(), **{"reserved": reserved}).model_copy(update={"flows": flows})
    first, second = Planner().plan(view_of(nodes, [], [record]))["b"].workers
    assert json.loads(first.env["CES_INPUTS"]) == [
        {"node": "a", "url": f"http://10.77.1.1:{DATA_PORT}/", "datasets": ["mnist"], "bandwidth": 1},
        {"node": "c", "url": "http://192.0.2.3:4711/", "datasets": [], "bandwidth": 2},
    ]
    assert json.loads(second.env["CES_INPUTS"]) == []
    assert json.loads(first.env["CES_FLOWS"]) == [{"src": "w-0", "dst": "w-1", "bandwidth": 3}], "peers alone"


def test_tasks_that_requests_pass_are_told_their_ways_and_others_nothing() -> None:
    file = inspection_file()
    placed = job("j", ["a", "b"]).model_copy(update={"tasks": file.expand_tasks(), "flows": file.expand_flows()})
    application = placed.model_copy(update={"requests": file.requests, "users": file.users})
    planned = workers(application)
    (client,), (detect,) = planned["a"], planned["b"]
    way = {
        "name": "loop",
        "rate": 10.0,
        "deadline_us": 60_000,
        "steps": ["client-0", "detect-0", "client-0"],
        "messages": [10_000, 1000],
        "answered": True,
    }
    assert json.loads(client.env["CES_REQUESTS"]) == {"work": None, "requests": [way]}
    work = {"us": 20_000, "class": "matrix"}
    assert json.loads(detect.env["CES_REQUESTS"]) == {"work": work, "requests": [way]}
    assert all("CES_REQUESTS" not in worker.env for each in workers(ring()).values() for worker in each)
