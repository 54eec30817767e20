"""What is asked of the engine for a job's checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes import container_checkpoints
from ces_edge_agent.runtimes.engine import Engine


class Client:
    """The engine's client, as far as volumes go."""

    def __init__(self) -> None:
        self.made: dict[str, dict[str, Any]] = {}

    def create_volume(self, name: str, **options: Any) -> None:
        self.made.setdefault(name, options)

    def volumes(self, filters: dict[str, list[str]]) -> dict[str, Any]:
        found = [{"Name": name, "Labels": made["labels"]} for name, made in self.made.items()]
        wanted = {tuple(label.split("=", 1)) for label in filters["label"]}
        return {"Volumes": [each for each in found if wanted <= each["Labels"].items()] or None}

    def remove_volume(self, name: str) -> None:
        del self.made[name]


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def engine(client: Client, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(Engine, "client", client)
    return Engine(None, "ces", "n1")


@pytest.mark.parametrize(("limit", "options"), [(5 * 2**30, {"size": str(5 * 2**30)}), (None, None)])
def test_the_volume_is_limited_where_the_engine_can(
    engine: Engine, client: Client, limit: int | None, options: dict[str, str] | None
) -> None:
    mounted = container_checkpoints.mount(engine, "01JOB", limit)
    ((name, made),) = client.made.items()
    assert (mounted["Source"], mounted["Type"]) == (name, "volume")
    assert (made["driver"], made["driver_opts"]) == ("local", options)


def test_it_is_its_jobs_alone_and_goes_with_it(engine: Engine, client: Client) -> None:
    first, same, other = (container_checkpoints.mount(engine, job, None) for job in ("01JOB", "01JOB", "01OTHER"))
    assert first["Source"] == same["Source"] != other["Source"]
    container_checkpoints.keep(engine, {"01JOB"})
    assert list(client.made) == [first["Source"]]
    container_checkpoints.keep(engine, ())
    container_checkpoints.keep(engine, ())
    assert client.made == {}


def test_no_name_leads_elsewhere(engine: Engine) -> None:
    with pytest.raises(Refused):
        container_checkpoints.mount(engine, "../other", None)
