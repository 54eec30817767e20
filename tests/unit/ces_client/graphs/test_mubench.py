"""muBench work models."""

from __future__ import annotations

from typing import Any

import pytest

from ces_client.graphs.mubench import REQUEST, WorkModel


def service(*groups: dict[str, Any], size: float = 1, **more: Any) -> dict[str, Any]:
    return {"external_services": list(groups), "internal_service": {"loader": {"mean_response_size": size}}} | more


def test_calls_multiply_along_the_way() -> None:
    model = {
        "front": service(
            {"seq_len": 9, "services": ["a", "b"], "probabilities": {"b": 0.5}}, **{"cpu-requests": "250m"}
        ),
        "a": service({"seq_len": 1, "services": ["c", "b"]}, size=10),
        "b": service(size=100),
        "c": service(),
    }
    graph = WorkModel.model_validate(model).graph("shop", rate=10)
    assert [(each.name, each.cpu, each.near) for each in graph.vertices] == [
        ("front", 250, True), ("a", 100, None), ("b", 100, None), ("c", 100, None),
    ]  # fmt: skip
    rates = {(edge.src, edge.dst): edge.bandwidth.min for edge in graph.edges}
    assert rates["front", "a"] == 10 * REQUEST
    assert rates["a", "front"] == 10 * 80_000
    assert rates["front", "b"] == 5 * REQUEST
    assert rates["b", "a"] == 5 * 800_000  # of two services one is called
    assert all(edge.bandwidth.max == 2 * edge.bandwidth.min for edge in graph.edges)


def test_a_circle_has_no_rates() -> None:
    model = {"a": service({"services": ["b"]}), "b": service({"services": ["a"]})}
    with pytest.raises(ValueError, match="in a circle"):
        WorkModel.model_validate(model).graph("loop", rate=1)


def test_a_service_that_is_not_there_is_named() -> None:
    model = {"a": service({"services": ["z"]})}
    with pytest.raises(ValueError, match=r"a\.external_services: no service is named 'z'"):
        WorkModel.model_validate(model).graph("loop", rate=1)
