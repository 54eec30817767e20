"""Graphs of applications over the API: a file as it is, what is too large, and what the scheduler answers."""

from __future__ import annotations

from rest_api import Api

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.messages.decompositions import (
    MOST_EDGES_PREVIEWED,
    MOST_PREVIEWED,
    DecompositionAnswer,
    DecompositionQuery,
)

GRAPH = "graph:\n  name: g\n  vertices:\n    - {name: one}\n    - {name: two, class: matrix}\n"
YAML = {"Content-Type": "application/yaml"}


async def test_a_graph_file_goes_to_the_scheduler_with_what_was_asked(api: Api) -> None:
    heard: list[DecompositionQuery] = []

    async def say(message: Message) -> bytes:
        heard.append(DecompositionQuery.model_validate_json(message.data))
        return DecompositionAnswer(refusal="no").encode()

    await api.bus.serve(subjects.rpc("scheduler", "decompose"), say)
    path = "/v1/decompositions?by=optimal&parts=2&granularity=fine"
    answer = await api.http.post(path, content=GRAPH, headers=YAML)
    assert answer.json()["refusal"] == "no"
    (query,) = heard
    assert (query.by, query.parts, query.granularity) == ("optimal", 2, "fine")
    assert [(vertex.name, vertex.work_class) for vertex in query.graph.vertices] == [("one", None), ("two", "matrix")]


async def test_what_is_wrong_or_too_large_is_refused_by_field(api: Api) -> None:
    wrong = await api.http.post("/v1/decompositions", content=GRAPH + "    - {name: one}\n", headers=YAML)
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["problem"].endswith("the name 'one' is used twice")
    graph = {"name": "g", "vertices": [{"name": f"v{number}"} for number in range(MOST_PREVIEWED + 1)]}
    large = await api.http.post("/v1/decompositions", json={"graph": graph})
    assert large.status_code == 422
    assert large.json()["errors"][0]["field"] == "graph.vertices"
    assert large.json()["errors"][0]["problem"].endswith("use `ces decompose`")


async def test_who_asks_too_often_or_while_others_are_served_is_told_to_wait(api: Api) -> None:
    answer = await api.http.post("/v1/decompositions", content=GRAPH, headers=YAML)
    assert answer.status_code == 503
    assert "no scheduler is there, or an older one" in answer.json()["detail"]
    told = DecompositionAnswer(busy=True, refusal="other graphs are being divided").encode()

    async def say(_: Message) -> bytes:
        return told

    await api.bus.serve(subjects.rpc("scheduler", "decompose"), say)
    answer = await api.http.post("/v1/decompositions", content=GRAPH, headers=YAML)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    told = b'{"parts": 7}'
    answer = await api.http.post("/v1/decompositions", content=GRAPH, headers=YAML)
    assert (answer.status_code, answer.json()["detail"]) == (
        503,
        "the scheduler answers with what cannot be read; the manager's log says more",
    )
    codes = [(await api.http.post("/v1/decompositions", content=GRAPH, headers=YAML)).status_code for _ in range(5)]
    assert codes[-1] == 429, "not more than so many at once"


async def test_edges_are_bounded_too(api: Api) -> None:
    names = [f"v{number}" for number in range(60)]
    pairs = [(a, b) for a in names for b in names if a != b][: MOST_EDGES_PREVIEWED + 1]
    rate = {"min": "1Mbit", "max": "1Mbit"}
    graph = {"name": "g", "vertices": [{"name": name} for name in names]}
    graph["edges"] = [{"src": a, "dst": b, "bandwidth": rate} for a, b in pairs]
    answer = await api.http.post("/v1/decompositions", json={"graph": graph})
    assert answer.json()["errors"][0]["field"] == "graph.edges"
