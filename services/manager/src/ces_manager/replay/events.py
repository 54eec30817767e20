"""What each event changes of the cluster as it was. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ces_common.states import JOB_OVER, JOB_WAITS, JobState
from ces_manager.replay.moves import move_begins, move_goes_on
from ces_manager.replay.past import Facts, Given, Past, PastJob, Place, Size, settle

Data = Mapping[str, Any]  # an event's data, as parsed JSON
Amounts = tuple[int, int, int]  # millicores, bytes, GPUs


@dataclass(frozen=True)
class Network:
    """Nodes, links and media as configured, without what is held there."""

    nodes: Mapping[str, Facts]
    links: Mapping[str, Facts]
    media: Mapping[str, int]


@dataclass(frozen=True)
class JobFacts:
    """What events do not tell of a job: ``facts`` as it is listed; ``amounts`` that each task asks for, at any size;
    ``elastic``: whether a task is of the group whose CPU changes."""

    facts: Facts
    amounts: Mapping[str, Amounts]
    elastic: Callable[[str], bool]


@dataclass(frozen=True)
class Known:
    """What is looked up beside the events. ``job`` returns None for one that is kept no longer; ``network``: as an
    event of this number, or one soon after it, left it."""

    job: Callable[[str], JobFacts | None]
    network: Callable[[int], Network]


NODE_CHANGES: Mapping[str, Facts] = {
    "ready": {"state": "ready"},
    "unreachable": {"state": "unreachable"},
    "cordoned": {"cordoned": True},
    "drained": {"cordoned": True},
    "uncordoned": {"cordoned": False},
    "reclaimed": {"reclaimed": True},
    "lent": {"reclaimed": False},
}


def replay(past: Past, event: Data, known: Known) -> None:
    """Let an event have happened, at the instant that ``past`` tells. Events that change nothing of what is shown are
    passed over."""
    _, _, aggregate, kind = event["type"].split(".")
    data, number = event["data"], past.sequence
    match aggregate, kind:
        case "node", "changed":
            _node(past, data, known, number)
        case "link", "changed":
            _link(past, data)
        case "topology", "changed":
            _topology(past, known.network(number))
        case "job", "waiting":
            if (job := past.jobs.get(data["job"])) is not None:
                job.waiting = {"reason": data["reason"], "queue_status": data.get("queue_status")}
        case "job", "deadline":
            if (job := past.jobs.get(data["job"])) is not None:
                job.facts["expected_end_at"] = data.get("end_at")
        case "job", _:
            _job(past, data, known)
        case (("allocation" | "plan" | "resize" | "cpu" | "move"), _) if data.get("job") in past.jobs:
            _placed(past.jobs[data["job"]], (aggregate, kind), data, known)
            settle(past, data["job"])


def _node(past: Past, data: Data, known: Known, number: int) -> None:
    name, what = data["node"], data["change"]
    if what == "forgotten":
        past.nodes.pop(name, None)
        return
    if name not in past.nodes:
        past.nodes[name] = dict(known.network(number).nodes.get(name, {"labels": {}}))
    facts = past.nodes[name]
    if what == "joined":
        facts |= {"state": "unreachable", "cordoned": False, "reclaimed": False}
    facts |= {resource: data[resource] for resource in ("cpu", "memory", "gpu", "cards") if resource in data}
    facts |= NODE_CHANGES.get(what, {})


def _link(past: Past, data: Data) -> None:
    facts = past.links.get(f"{data['src']}>{data['dst']}")
    if facts is not None:
        facts |= {name: data.get(name) for name in ("state", "reason", "bandwidth", "measured")}


def _topology(past: Past, network: Network) -> None:
    """A link that stays keeps its state; a measurement of one whose configuration has changed is void."""
    past.media = dict(network.media)
    former, past.links = past.links, {}
    for key, given in network.links.items():
        before = former.get(key, {})
        same = all(before.get(name) == given.get(name) for name in ("bandwidth", "kind", "medium"))
        past.links[key] = dict(given) | {
            "state": before.get("state", "up"),
            "reason": before.get("reason"),
            "measured": before.get("measured") if same else None,
        }


def _job(past: Past, data: Data, known: Known) -> None:
    name, state = data["job"], data["state"]
    if name not in past.jobs:
        found = known.job(name)
        if found is None:
            return
        past.jobs[name] = PastJob(dict(found.facts))
    job = past.jobs[name]
    job.facts |= {"state": state, "attempt": data["attempt"], "reason": data.get("reason"), "name": data["name"]}
    if state == JobState.RUNNING and not job.facts.get("started_at"):
        job.facts["started_at"] = past.at
    if state in JOB_OVER:
        job.facts["finished_at"] = past.at
    if data.get("previous") in JOB_WAITS:
        job.waiting = None
    if state == JobState.SUSPENDED:
        for place in job.live:
            place.cpu = 0
    elif state == JobState.RUNNING and data.get("previous") == JobState.SUSPENDED:
        found = known.job(name)
        for place in job.live:
            place.cpu = place.cpu if found is None else found.amounts[place.task][0]
    settle(past, name)


def _placed(job: PastJob, event: tuple[str, str], data: Data, known: Known) -> None:
    match event:
        case "plan", "committed":
            job.now = _size(data, known)
        case "plan", "revised":
            job.now.flows |= _flows(data)
        case "resize", "committed":
            job.coming = _size(data, known)
        case "resize", "ended":
            if data["done"] and job.coming is not None:
                job.now = job.coming
                job.facts["attempt"] = data["attempt"]
            job.coming = None
        case "cpu", "committed":
            found = known.job(data["job"])
            for place in job.now.places.values():
                if found is not None and place.state == "running" and found.elastic(place.task):
                    place.cpu = max(place.cpu, data["cpu"])
        case "cpu", "released":
            if (released := job.now.places.get(data["allocation"])) is not None:
                released.cpu = data["cpu"]
        case "move", "committed":
            allocations = [data["new"], data["back"]]
            move_begins(job, data, _size({**data, "allocations": allocations}, known))
        case "move", "changed":
            move_goes_on(job, data)
        case "allocation", state:
            if (moved := job.now.places.get(data["allocation"])) is not None:
                moved.state = state


def _size(data: Data, known: Known) -> Size:
    found = known.job(data["job"])
    places = {}
    for each in data.get("allocations", []):
        cpu, memory, gpu = (0, 0, 0) if found is None else found.amounts[each["task"]]
        chosen = each.get("cpu")
        state = each.get("state", "pending")
        places[each["id"]] = Place(
            *(each["task"], each["node"], state, cpu if chosen is None else chosen, memory, gpu),
            *(each.get("cards", []), each.get("gpu_share", 0)),
        )
    return Size(places, _flows(data))


def _flows(data: Data) -> dict[int, Given]:
    return {
        each["number"]: Given(each["src"], each["dst"], each["min"], each["max"], each["rate"], each["path"])
        for each in data.get("flows", [])
    }
