"""Networks in neutral words: what network-ctl plans for every node, and the kernel objects that its agent makes of it.

Rates of kernel objects are in bytes/s, as the kernel takes them; speaks this tree's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ces_common.jobfile import Flow
from ces_common.messages.records import (
    AllocationRecord,
    FlowRecord,
    JobRecord,
    LinkRecord,
    MediumRecord,
    NodeRecord,
    Snapshot,
    Topology,
)
from ces_common.messages.wanted import NetworkWanted
from ces_common.states import AllocationState, JobState
from ces_common.view import StateView
from ces_edge_agent.dataplane.derive import Derived, Facts, derive
from ces_edge_agent.dataplane.diff import Step, diff
from ces_edge_agent.dataplane.objects import (
    Address,
    Device,
    Filter,
    KernelObject,
    Queue,
    Route,
    Rule,
    ShapedClass,
    Shaper,
    WorkerEnd,
)
from ces_network_ctl.plain import unreserved
from ces_network_ctl.planning import Planner
from equivalence.record import Answers, digest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answer(case: Mapping[str, Any]) -> Answers:
    """For each node: its document and kernel objects before and after a change, and the steps between."""
    planner = Planner()
    before: dict[str, list[KernelObject]] = {}
    found: Answers = {}
    for at, state in enumerate(case["states"]):
        for node, document in planner.plan(_view(case, state, at + 1)).items():
            derived = derive(document, _facts(case, document))
            steps = diff(derived.items.values(), before.get(node, ()))
            before[node] = [*derived.items.values()]
            found[f"{node} at {at}"] = {
                "document": _document(document),
                "objects": _objects(derived),
                "fails": sorted(derived.failed),
                "steps": [_step(step) for step in steps],
                "unreserved": digest(_objects(derive(unreserved(document), _facts(case, document)))),
            }
    return found


def _view(case: Mapping[str, Any], state: Mapping[str, Any], version: int) -> StateView:
    nodes = [
        NodeRecord(name=node["name"], cpu=4000, memory=1 << 32, network=node["network"], subnet=node["subnet"],
                   host_address=node["host"])
        for node in case["nodes"]
    ]  # fmt: skip
    links = [
        LinkRecord(src=link["src"], dst=link["dst"], bandwidth=link["bandwidth"], kind=link["kind"],
                   medium=link["medium"], state="up" if link["up"] else "down", measured=link["measured"])
        for link in state["links"]
    ]  # fmt: skip
    media = [MediumRecord(name=name, bandwidth=bandwidth) for name, bandwidth in case["media"].items()]
    topology = Topology(version=version, links=links, media=media)
    view = StateView()
    jobs = [_job(job) for job in state["jobs"]]
    view.merge(Snapshot(epoch="e", version=version, full=True, nodes=nodes, topology=topology, jobs=jobs))
    return view


def _job(job: Mapping[str, Any]) -> JobRecord:
    return JobRecord(
        id=job["name"],
        name=job["name"],
        priority=50,
        state=JobState(job["state"]),
        attempt=job["attempt"],
        flows=[
            Flow(src=flow["src"], dst=flow["dst"], min=flow["min"], max=flow["max"],
                 mode="elastic" if flow["elastic"] else "strict", datasets=flow["datasets"])
            for flow in job["flows"]
        ],
        allocations=[
            AllocationRecord(id=f"{job['name']}-{task['name']}", task=task["name"], rank=rank, node=task["node"],
                             address=task["address"], port=29500, state=AllocationState(task["state"]))
            for rank, task in enumerate(job["tasks"])
        ],
        reserved=[
            FlowRecord(number=flow["number"], src=flow["src"], dst=flow["dst"], min=flow["min"], max=flow["max"],
                       bandwidth=flow["rate"], path=flow["path"])
            for flow in job["flows"]
        ],
        submitted_at=NOW,
    )  # fmt: skip


def _facts(case: Mapping[str, Any], document: NetworkWanted) -> Facts:
    hosts = [node["host"] for node in case["nodes"]]
    ids = sorted(endpoint.allocation for endpoint in document.endpoints)
    return Facts(
        mtu={link.device: case["mtu"] for link in document.links},
        underlay=dict.fromkeys(hosts, case["underlay_mtu"]),
        holders={name: i + 3 for i, name in enumerate(ids) if name not in case["unconnected"]},
    )


def _document(document: NetworkWanted) -> dict[str, Any]:
    return {
        "node": document.node,
        "mode": document.mode,
        "router": document.router,
        "subnet": document.subnet,
        "links": [
            [each.peer, each.device, each.kind, each.bandwidth, each.unreserved, each.gateway, each.two_way,
             None if each.vxlan is None else [each.vxlan.vni, each.vxlan.remote, each.vxlan.port]]
            for each in document.links
        ],
        "subnets": [[each.subnet, each.via] for each in document.subnets],
        "endpoints": [
            [each.allocation, each.job, each.address, each.hostname, each.hosts,
             [[peer.address, peer.via] for peer in each.peers]]
            for each in document.endpoints
        ],
        "policies": [[each.job, each.src, each.dst, each.via] for each in document.policies],
        "classes": [
            [each.job, each.number, each.kind, each.via, each.src, each.dst, each.rate, each.ceiling, each.small_only]
            for each in document.classes
        ],
        "readers": [[each.job, each.address, each.datasets] for each in document.readers],
    }  # fmt: skip


def _objects(derived: Derived) -> list[Any]:
    """Each with whose it is, in the order in which they were derived."""
    shares = derived.shares
    return [_object(item) | {"of": sorted(shares[key])} for key, item in derived.items.items()]


def _step(step: Step) -> dict[str, Any]:
    old = None if step.old is None else _object(step.old)
    return {"action": step.action, "object": _object(step.item), "old": old, "again": step.again}


def _object(item: KernelObject) -> dict[str, Any]:
    match item:
        case Device():
            tunnel = None if item.tunnel is None else [item.tunnel.vni, item.tunnel.remote, item.tunnel.port]
            told = {"device": item.name, "kind": item.kind, "mtu": item.mtu, "mac": item.mac, "tunnel": tunnel}
            return told | {"what": "device", "namespace": item.holder, "up": item.up}
        case Address():
            return {"what": "address", "device": item.device, "address": item.address}
        case WorkerEnd():
            told = {"device": item.device, "address": item.address, "mtu": item.mtu, "gso": item.gso}
            return told | {"what": "worker's end", "gateway_mac": item.gateway_mac}
        case Route():
            told = {"table": item.table, "destination": item.destination, "device": item.device}
            return told | {"what": "route", "gateway": item.gateway}
        case Rule():
            told = {"priority": item.priority, "table": item.table, "device": item.device}
            return told | {"what": "rule", "source": item.source, "destination": item.destination}
        case Shaper():
            return {"what": "htb", "device": item.device, "default": item.default}
        case ShapedClass():
            rates = {"rate": item.rate, "ceil": item.ceil, "burst": item.burst, "cburst": item.cburst}
            told = {"device": item.device, "class": item.minor, "parent": item.parent, "quantum": item.quantum}
            return rates | told | {"what": "class", "priority": item.priority}
        case Queue():
            return {"what": "queue", "device": item.device, "class": item.minor, "limit": item.limit}
        case Filter():
            told = {"device": item.device, "priority": item.priority, "protocol": item.protocol, "class": item.minor}
            return told | {"what": "filter", "match": _sorted(item.match), "handle": item.handle}


def _sorted(match: Iterable[tuple[int, int, int]]) -> list[list[int]]:
    return sorted([*each] for each in match)
