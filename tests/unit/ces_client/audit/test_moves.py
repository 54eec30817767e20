"""What an auditor finds of moves that went wrong, each in a log of which one event is other than it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from manager_world import START, World, full_mesh, sqlite_url
from moved_tasks import apart, ask, gone, laid, place, says

from ces_client.audit import Inventory
from ces_client.audit_inputs import judge, request_of
from ces_common.db.outbox import ALL, events_after

NODES = ("a", "b", "c")
LINKS = {(a, b): 10**8 for a in NODES for b in NODES if a != b}
Log = list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, Inventory]:
    """w-0 moves from a to c, and then to b, where it cannot start."""
    world = World(sqlite_url(tmp_path_factory.mktemp("audit")))
    world.add_nodes(*NODES)
    world.put_topology(full_mesh(NODES))
    file = apart()
    job = world.submit(file)
    world.run(job, ["a", "b"])
    for node, word in (("c", "running"), ("b", "refused")):
        old = place(world, job, "w-0")
        ask(world, job, "w-0", node)
        laid(world, job)
        gone(world, old)
        says(world, place(world, job, "w-0"), word)
    says(world, place(world, job, "w-0"), "running")
    world.tell(job, "exited", exit_code=0)
    there = [
        {
            "id": f"{name}-{change}",
            "type": "ces.v1.node.changed",
            "time": START.isoformat(),
            "data": {"node": name, "change": change, "cpu": 2000, "memory": 2**30, "gpu": 0},
        }
        for name in NODES
        for change in ("joined", "ready")
    ]
    with world.uow.read() as tx:
        log = [json.loads(event.body) for event in events_after(tx, 0, ALL, 10**6)]
    world.close()
    return [*there, *log], Inventory(
        links=LINKS, jobs={job: request_of(file)}, nodes=dict.fromkeys(NODES, (2000, 2**30, 0))
    )


def found(story: tuple[Log, Inventory], change: Callable[[Log], None] = lambda _: None) -> list[tuple[str, str]]:
    log = copy.deepcopy(story[0])
    change(log)
    numbered = [event | {"sequence": i} for i, event in enumerate(log, 1)]
    return [(each.kind, each.text) for each in judge(numbered, story[1], finished=True).findings]


def moves(log: Log, kind: str, state: str | None = None) -> Log:
    return [
        each for each in log if each["type"] == f"ces.v1.move.{kind}" and state in (None, each["data"].get("state"))
    ]


def test_a_true_story_has_no_findings(story: tuple[Log, Inventory]) -> None:
    assert found(story) == []
    states = [event["data"]["state"] for event in moves(story[0], "changed")]
    there = ["stopping", "carrying", "starting"]
    assert states == [*there, "done", *there, "clearing", "returning", "kept"]


def test_a_copy_that_starts_before_the_other_is_gone_is_found(story: tuple[Log, Inventory]) -> None:
    def change(log: Log) -> None:
        stopped = next(each for each in log if each["type"] == "ces.v1.allocation.stopped")
        log.remove(stopped)
        log.insert(
            next(
                i
                for i, each in enumerate(log)
                if each["type"] == "ces.v1.move.changed" and each["data"]["state"] == "done"
            ),
            stopped,
        )

    kinds = [kind for kind, _ in found(story, change)]
    assert "twice" in kinds


def test_more_than_there_is_for_a_move_is_found(story: tuple[Log, Inventory]) -> None:
    def change(log: Log) -> None:
        for flow in moves(log, "committed")[0]["data"]["flows"]:
            flow |= {"rate": 96_000_000, "max": 96_000_000}

    assert "link-capacity" in [kind for kind, _ in found(story, change)]


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("state", "step", "the move of w-0 goes from stopping to carrying, and was reserved"),
        ("forgotten", "held", "still moves"),
        ("number", "address", "which is in use"),
        ("path", "flow-path", "its tasks are elsewhere"),
        ("unknown", "step", "goes on that is not under way"),
    ],
)
def test_what_else_is_wrong_is_found(story: tuple[Log, Inventory], what: str, kind: str, words: str) -> None:
    def change(log: Log) -> None:
        first = moves(log, "committed")[0]["data"]
        if what == "state":
            log.remove(moves(log, "changed", "stopping")[0])
        elif what == "forgotten":
            log.remove(moves(log, "changed", "kept")[0])
        elif what == "number":
            first["flows"][0]["number"] = 1
        elif what == "path":
            first["flows"][0]["path"] = ["a", "b"]
        else:
            moves(log, "changed")[0]["data"]["move"] = "another"

    assert any(each == kind and words in text for each, text in found(story, change))
