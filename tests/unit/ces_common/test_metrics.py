"""Metrics over HTTP: who is refused, in which format they are told, and how often they are worked out."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.registry import Collector
from starlette.requests import Request

from ces_common import metrics
from ces_common.metrics import Exposition, bearer_of, is_token, refusal, registry_of

TOKEN = "what-prometheus-knows"


def asked(client: str | None, **headers: str) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "client": None if client is None else (client, 1234),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    return Request(scope)


class Once(Collector):
    """Counts how often it was worked out."""

    def __init__(self) -> None:
        self.times = 0

    def collect(self) -> Iterable[Metric]:
        self.times += 1
        family = GaugeMetricFamily("ces_times", "How often")
        family.add_metric([], self.times)
        yield family


@pytest.fixture
def once() -> Once:
    return Once()


@pytest.fixture
def registry(once: Once) -> CollectorRegistry:
    found = CollectorRegistry()
    found.register(once)
    return found


@pytest.mark.parametrize("client", ["127.0.0.1", "127.9.9.9", "::1"])
def test_without_a_token_this_machine_is_told(client: str) -> None:
    assert refusal(asked(client), None) is None


@pytest.mark.parametrize("client", ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "testclient", "", None])
def test_without_a_token_nobody_else_is(client: str | None) -> None:
    refused = refusal(asked(client), None)
    assert refused is not None
    assert refused.status_code == 403
    assert b"CES_METRICS_TOKEN_FILE" in refused.body


def test_with_a_token_nobody_is_told_without_it() -> None:
    assert refusal(asked("192.0.2.1", authorization=f"Bearer {TOKEN}"), TOKEN) is None
    for client in ("127.0.0.1", "192.0.2.1"):
        refused = refusal(asked(client), TOKEN)
        assert refused is not None
        assert refused.status_code == 401
        assert TOKEN.encode() not in refused.body


def test_a_token_is_compared_as_a_whole() -> None:
    assert is_token(TOKEN, TOKEN)
    for wrong in (None, "", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
        assert not is_token(wrong, TOKEN)


def test_whom_a_token_trusts_is_no_part_of_the_secret() -> None:
    """As the tokens of the API are written down."""
    pinned = f"{TOKEN}.{'0' * 64}"
    assert bearer_of([(b"authorization", b"Bearer " + pinned.encode())]) == TOKEN
    assert is_token(TOKEN, pinned)


async def test_the_format_is_the_one_that_is_asked_for(registry: CollectorRegistry) -> None:
    exposition = Exposition(registry)
    plain = await exposition.answer("*/*")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert not bytes(plain.body).endswith(b"# EOF\n")
    open_metrics = await exposition.answer("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    read = read_openmetrics(bytes(open_metrics.body).decode())  # type: ignore[no-untyped-call]
    assert [family.name for family in read] == ["ces_times"]
    assert "no-store" in plain.headers["cache-control"]


async def test_many_readers_cost_no_more_than_one(registry: CollectorRegistry, once: Once) -> None:
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)

    exposition = Exposition(registry, look)
    told = await asyncio.gather(*(exposition.answer("") for _ in range(20)))
    assert len({bytes(answer.body) for answer in told}) == 1
    assert (looks, once.times) == (1, 1)


async def test_what_was_written_long_ago_is_told_to_nobody(
    registry: CollectorRegistry, once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "KEPT_S", 0.0)
    exposition = Exposition(registry)
    for times in (1, 2, 3):
        assert f"ces_times {times}.0" in bytes((await exposition.answer("")).body).decode()
    assert once.times == 3


def test_a_service_says_what_it_is_and_whether_it_works() -> None:
    ready = False
    registry = registry_of("network-ctl", lambda: ready)
    found = {sample.name: sample for family in registry.collect() for sample in family.samples}
    assert found["ces_build_info"].labels["service"] == "network-ctl"
    assert found["ces_build_info"].labels["version"]
    assert found["ces_ready"].value == 0
    ready = True
    assert registry.get_sample_value("ces_ready") == 1
    assert not [name for name in found if name.endswith("_created")]
