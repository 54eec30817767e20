"""The judge must see every kind of mistake."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ces_core.checker import check

INSTANCE: dict[str, Any] = {
    "nodes": [
        {"name": "a", "cpu": 4, "memory": 4},
        {"name": "b", "cpu": 4, "memory": 4},
        {"name": "c", "cpu": 4, "memory": 4, "gpu": 1},
        {"name": "s"},
    ],
    "links": [
        {"src": "a", "dst": "b", "bandwidth": 100},
        {"src": "b", "dst": "c", "bandwidth": 100, "medium": "air"},
        {"src": "a", "dst": "c", "bandwidth": 100},
    ],
    "media": {"air": 50},
    "job": {
        "name": "j",
        "tasks": [{"name": "t", "cpu": 2, "memory": 3}, {"name": "u", "cpu": 2, "memory": 3, "allowed": ["a", "b"]}],
        "flows": [{"src": "t", "dst": "u", "min": 10, "max": 60}, {"src": "u", "dst": "@c", "min": 5, "max": 50}],
    },
}
GOOD: dict[str, Any] = {
    "feasible": True,
    "assignments": {"t": "a", "u": "b"},
    "flows": [
        {"src": "t", "dst": "u", "bandwidth": 60.0, "path": ["a", "b"]},
        {"src": "u", "dst": "@c", "bandwidth": 50.0, "path": ["b", "c"]},
    ],
    # CPU 0.5 0.5 0 and memory 0.75 0.75 0; links 0.6 0.5 0
    "metrics": {
        "load_imbalance": (0.5 * 2**0.5 / 3 + 0.75 * 2**0.5 / 3 + (0.62 / 9) ** 0.5) / 3,
        "bandwidth_satisfaction": 1.0,
        "composite": 0.5 * (1 - (0.5 * 2**0.5 / 3 + 0.75 * 2**0.5 / 3 + (0.62 / 9) ** 0.5) / 3) + 0.5,
    },
}


def test_objects_are_refused_with_what_to_give_instead() -> None:
    objects: Any = object()
    with pytest.raises(TypeError, match=r"give it result\.to_dict\(\)"):
        check(INSTANCE, objects)
    with pytest.raises(TypeError, match=r"give it write_instance\(problem\)"):
        check(objects, {})


def test_a_correct_plan_passes() -> None:
    assert check(INSTANCE, GOOD) == []


def _flow(index: int, key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda answer: answer["flows"][index].__setitem__(key, value)


def _put(task: str, node: str) -> Callable[[dict[str, Any]], None]:
    return lambda answer: answer["assignments"].__setitem__(task, node)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda answer: answer["assignments"].pop("u"), "unplaced"),
        (_put("x", "a"), "unknown-task"),
        (_put("t", "zz"), "unknown-node"),
        (_put("u", "c"), "not-allowed"),
        (_put("t", "s"), "switch"),
        (_put("u", "a"), "memory-capacity"),
        (lambda answer: answer["flows"].pop(), "unplanned-flow"),
        (lambda answer: answer["flows"].append(answer["flows"][0]), "unknown-flow"),
        (_flow(0, "bandwidth", 61), "rate"),
        (_flow(0, "bandwidth", 9), "rate"),
        (_flow(0, "bandwidth", float("nan")), "rate"),
        (_flow(0, "path", ["b", "a"]), "path-ends"),
        (_flow(0, "path", []), "path-ends"),
        (_flow(1, "path", ["b", "a", "c"]), "path-link"),
        (lambda answer: answer["metrics"].__setitem__("composite", 0.99), "metric"),
        (lambda answer: answer.pop("metrics"), "metric"),
        (lambda answer: answer.update(feasible=False), "no-reason"),
    ],
)
def test_a_mistake_is_seen(change: Callable[[dict[str, Any]], Any], code: str) -> None:
    answer = copy.deepcopy(GOOD)
    change(answer)
    assert code in {violation.code for violation in check(INSTANCE, answer)}


def test_overbooked_links_and_media_are_seen() -> None:
    used = copy.deepcopy(INSTANCE)
    used["links"][0]["bandwidth_used"] = 41
    assert [violation.code for violation in check(used, GOOD)] == ["link-capacity"]
    used = copy.deepcopy(INSTANCE)
    used["links"][1]["bandwidth_used"] = 1
    assert [violation.code for violation in check(used, GOOD)] == ["medium-capacity"]


def test_a_detour_is_seen() -> None:
    instance, answer = copy.deepcopy(INSTANCE), copy.deepcopy(GOOD)
    answer["assignments"] = {"t": "a", "u": "a"}
    instance["job"]["tasks"][0]["memory"] = 1
    answer["flows"] = [
        {"src": "t", "dst": "u", "bandwidth": 60.0, "path": ["a"]},
        {"src": "u", "dst": "@c", "bandwidth": 50.0, "path": ["a", "b", "c"]},
    ]
    assert [violation.code for violation in check(instance, answer)] == ["path-length"]


def _square(*path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Nodes a to d, all linked with each other both ways, and a flow from a to d that takes ``path``."""
    instance = {
        "nodes": [{"name": name} for name in "abcd"] + [{"name": "e", "cpu": 1}],
        "links": [{"src": a, "dst": b, "bandwidth": 10} for a in "abcd" for b in "abcd" if a != b],
        "job": {"tasks": [{"name": "t"}], "flows": [{"src": "@a", "dst": "@d", "min": 1, "max": 1}]},
    }
    answer = {
        "feasible": True,
        "assignments": {"t": "e"},
        "flows": [{"src": "@a", "dst": "@d", "bandwidth": 1.0, "path": list(path)}],
    }
    return instance, answer


@pytest.mark.parametrize(
    ("path", "paths", "codes"),
    [
        ("ad", None, set()),
        ("abd", None, {"path-length"}),
        ("ad", 1, set()),
        ("abd", 1, {"path-length"}),
        ("acd", 2, set()),  # one path is shorter; which of the two of this length is second is not the judge's matter
        ("abcd", 3, {"path-length"}),  # three are shorter: direct, over b, over c
        ("abcd", 4, set()),
        ("abcbd", 99, {"path-simple"}),
    ],
)
def test_the_length_of_paths_follows_the_path_set(path: str, paths: int | None, codes: set[str]) -> None:
    instance, answer = _square(*path)
    assert {violation.code for violation in check(instance, answer, paths=paths)} - {"metric"} == codes


def test_an_answer_names_the_paths_that_were_asked_for() -> None:
    assert check(INSTANCE, GOOD | {"paths": "hop-shortest"}) == []
    assert [violation.code for violation in check(INSTANCE, GOOD | {"paths": "2-shortest"})] == ["path-set"]
    assert [violation.code for violation in check(INSTANCE, GOOD | {"paths": "hop-shortest"}, paths=2)] == ["path-set"]


def test_what_others_overbooked_is_not_the_plans_fault() -> None:
    instance = copy.deepcopy(INSTANCE)
    instance["links"][2]["bandwidth_used"] = 500
    instance["nodes"][2]["cpu_used"] = 9
    assert {violation.code for violation in check(instance, GOOD)} == {"metric"}
