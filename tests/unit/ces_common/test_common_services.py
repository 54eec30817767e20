"""What every service stands on: hints, loops, health over HTTP, settings, logs, derived names, shares of a link."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ces_common import naming, telemetry
from ces_common.health import health_app, serve_http
from ces_common.service import Hint, run_loops
from ces_common.settings import ServiceSettings
from ces_common.shares import HEADROOM, reservable, reservable_of_medium, return_rate, unreserved_rate


async def test_hints_before_the_wait_count_once() -> None:
    hint = Hint()
    hint.set()
    hint.set()
    assert await hint.wait(5)
    assert not await hint.wait(0)


async def test_a_hint_ends_the_wait() -> None:
    hint = Hint()
    waiting = asyncio.create_task(hint.wait(60))
    await asyncio.sleep(0)
    hint.set()
    assert await waiting


async def test_a_hint_that_comes_with_the_timeout_is_not_lost() -> None:
    """Whenever it is set: either this wait tells of it or the next one does."""
    for turns in range(8):
        hint = Hint()

        async def late(hint: Hint = hint, turns: int = turns) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            hint.set()

        heard, _ = await asyncio.gather(hint.wait(0), late())
        assert heard or await hint.wait(0)


async def test_a_hint_survives_a_cancelled_wait() -> None:
    hint = Hint()
    waiting = asyncio.create_task(hint.wait(60))
    await asyncio.sleep(0)
    hint.set()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await hint.wait(0)


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("ended")


async def test_stop_ends_all_loops() -> None:
    stop, ended = asyncio.Event(), list[str]()
    running = asyncio.create_task(run_loops(stop, forever(ended), forever(ended)))
    await asyncio.sleep(0)
    stop.set()
    await running
    assert len(ended) == 2


async def test_a_loops_failure_ends_the_others_and_is_raised() -> None:
    ended: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("unforeseen")

    with pytest.raises(RuntimeError, match="unforeseen"):
        await run_loops(asyncio.Event(), forever(ended), fails())
    assert ended == ["ended"]


@asynccontextmanager
async def serving(missing: str | None, remark: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serve_http(health_app(lambda: missing, remark), "127.0.0.1", 0) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        yield client


async def test_health_of_a_ready_service() -> None:
    async with serving(None) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).status_code == 200
        metrics = await client.get("/metrics")
        assert "python_info" in metrics.text


async def test_health_of_one_that_is_not() -> None:
    async with serving("the database") as client:
        assert (await client.get("/healthz")).status_code == 200
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["missing"]) == (503, "the database")


async def test_health_of_one_that_is_ready_but_not_as_it_was_meant() -> None:
    async with serving(None, "the policy is refused") as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready", "remark": "the policy is refused"})


async def test_a_taken_port_is_an_error_and_not_the_end_of_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError):
            async with serve_http(health_app(lambda: None), "127.0.0.1", port):
                pass


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_NATS_URLS", "nats://a:1, nats://b:2,")
    monkeypatch.setenv("CES_RESYNC_S", "5")
    settings = ServiceSettings()
    assert settings.nats_urls == ["nats://a:1", "nats://b:2"]
    assert settings.resync_s == 5


@pytest.mark.parametrize(
    ("name", "value"), [("CES_HTTP_PORT", "70000"), ("CES_LOG_LEVEL", "loud"), ("CES_RESYNC_S", "0")]
)
def test_impossible_settings_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=name.removeprefix("CES_").lower()):
        ServiceSettings()


def test_logs_are_json_lines_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    root = logging.getLogger()
    before = (root.handlers[:], root.level, structlog.get_config())
    try:
        telemetry.configure_logging("tester", "info")
        structlog.get_logger("x").info("hello", join_token="sesame", nats_seed="SU", node="n1")
        structlog.get_logger("x").debug("unheard")
        logging.getLogger("elsewhere").warning("from the standard library")
        sys.stderr.flush()
    finally:
        root.handlers[:], root.level = before[0], before[1]
        structlog.reset_defaults()
        structlog.configure(**before[2])
        structlog.contextvars.clear_contextvars()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["hello", "from the standard library"]
    assert lines[0]["node"] == "n1"
    assert (lines[0]["join_token"], lines[0]["nats_seed"]) == ("***", "***")
    assert {line["service"] for line in lines} == {"tester"}


@given(st.text("abcXYZ019_-", min_size=1, max_size=63))
def test_device_names_fit_the_kernel(name: str) -> None:
    for device in (naming.link_device(name), naming.endpoint_device(name)):
        assert 0 < len(device) <= naming.DEVICE_LENGTH
        assert "/" not in device


def test_device_names_differ_where_only_the_end_of_a_long_name_does() -> None:
    assert naming.link_device("edge") == "to-edge"
    assert naming.link_device("a-very-long-node-name-1") != naming.link_device("a-very-long-node-name-2")
    assert naming.endpoint_device("01J1") != naming.endpoint_device("01J2")


@given(st.integers(6_500_000, 10**12))
def test_shares_of_one_full_flow_each_way_fit_the_link(capacity: int) -> None:
    """From 6.5 Mbit/s on; below, the floors outweigh the headroom."""
    flow = reservable(capacity)
    assert flow <= capacity * (1 - HEADROOM)
    assert flow + return_rate(flow) + unreserved_rate(capacity) <= capacity


@pytest.mark.parametrize("mtu", [1450, 1400, 1230])
def test_what_tunnels_promise_of_a_medium_fits_with_the_headers_around_it(mtu: int) -> None:
    """Full frames, one acknowledgement for two of them, and all that may go beside: 50 bytes more around each."""
    capacity, frame, acknowledgement, around = 100_000_000, mtu + 14, 66, 50
    flows = reservable_of_medium(capacity, tunnels=True)
    answers = flows / (2 * frame) * (acknowledgement + around)
    longer = 1 + around / frame
    assert (flows + unreserved_rate(capacity)) * longer + answers <= capacity
