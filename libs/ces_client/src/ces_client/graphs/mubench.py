"""muBench work models: services, and which of them each one calls."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

from ces_client.graphs.wfcommons import BURST, LEAST_RATE
from ces_common.graphfile import MAX_VERTICES, ApplicationGraph, vertex_name
from ces_common.quantities import Cpu, Memory

REQUEST = 8_000
"""Bits of a call, about: what it carries is not in the model."""

MOST_CALLS = 1e9  # in a second


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Calls(_Part):
    """One group of services: of them ``seq_len`` are called, each with its probability."""

    seq_len: Annotated[int, Field(ge=0, le=10**6)] = 10**6
    services: Annotated[list[str], Field(max_length=MAX_VERTICES)] = []
    probabilities: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}

    def by_service(self) -> dict[str, float]:
        share = min(1.0, self.seq_len / len(self.services)) if self.services else 0.0
        return {name: share * self.probabilities.get(name, 1.0) for name in self.services}


class _Loader(_Part):
    answer: Annotated[float, Field(alias="mean_response_size", ge=0, le=1e9)] = 1.0  # kilobytes


class _Internal(_Part):
    loader: _Loader = _Loader()


class _Service(_Part):
    calls: Annotated[list[_Calls], Field(alias="external_services")]
    internal: Annotated[_Internal, Field(alias="internal_service")] = _Internal()
    cpu: Annotated[Cpu, Field(alias="cpu-requests")] = 100
    memory: Annotated[Memory, Field(alias="memory-requests")] = 64 * 2**20


class WorkModel(RootModel[dict[str, _Service]]):
    def graph(self, name: str, rate: float) -> ApplicationGraph:
        """``rate``: requests in a second to each service that no other calls; these are near the user. Raises
        ValueError where services call each other in a circle."""
        called: dict[str, dict[str, float]] = {}
        for service, told in self.root.items():
            sums = called.setdefault(service, {})
            for group in told.calls:
                for other, share in group.by_service().items():
                    if other not in self.root:
                        raise ValueError(f"{service}.external_services: no service is named {other!r}")
                    sums[other] = sums.get(other, 0.0) + share
        callers: dict[str, set[str]] = {service: set() for service in self.root}
        for service, sums in called.items():
            for other in sums:
                callers[other].add(service)
        try:
            order = tuple(TopologicalSorter(callers).static_order())
        except CycleError as error:
            raise ValueError(f"services call each other in a circle: {' -> '.join(error.args[1])}") from error
        rates = {service: 0.0 if callers[service] else rate for service in self.root}
        edges: list[dict[str, Any]] = []
        for service in order:
            for other, share in called[service].items():
                calls = rates[service] * share
                if calls > MOST_CALLS:
                    raise ValueError(f"{other} is called {calls:.3g} times in a second: {MOST_CALLS:g} are the most")
                rates[other] += calls
                answer = 8_000 * self.root[other].internal.loader.answer
                for src, dst, bits in ((service, other, REQUEST), (other, service, answer)):
                    mean = max(LEAST_RATE, round(calls * bits))
                    edges.append(
                        {
                            "src": vertex_name(src),
                            "dst": vertex_name(dst),
                            "bandwidth": {"min": mean, "max": BURST * mean},
                        }
                    )
        vertices = [
            {"name": vertex_name(service), "cpu": f"{told.cpu}m", "memory": told.memory}
            | ({} if callers[service] else {"near": True})
            for service, told in self.root.items()
        ]
        return ApplicationGraph.model_validate({"name": name, "vertices": vertices, "edges": edges})
