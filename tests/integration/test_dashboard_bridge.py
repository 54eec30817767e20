"""The address on this machine that leads a browser to the manager."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from tls_server import certified, https

from ces_client.bridge import bridge, trust_of
from ces_client.context import Context
from ces_client.errors import BadInput, Unreachable
from ces_common.health import serve_http
from ces_common.tls.certificates import Authority
from ces_common.tls.pins import PATH, pinned


def manager(authority: Authority | None = None) -> Starlette:
    async def echo(request: Request) -> Response:
        return PlainTextResponse(f"{request.headers.get('authorization')} {len(await request.body())}")

    async def endless(_: Request) -> Response:
        async def body() -> AsyncIterator[bytes]:
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0.01)

        return StreamingResponse(body())

    async def said(_: Request) -> Response:
        return PlainTextResponse(authority.pem if authority is not None else "")

    return Starlette(
        routes=[Route("/echo", echo, methods=["GET", "POST"]), Route("/endless", endless), Route(PATH, said)]
    )


@pytest.mark.parametrize("trusted_by", ["file", "pin"])
async def test_bytes_pass_as_they_are_over_tls_that_is_checked(tmp_path: Path, trusted_by: str) -> None:
    authority, file = certified(tmp_path)
    async with https(manager(authority), file) as url:
        by_file = Context(url, "secret", ca=str(tmp_path / "authority.pem"))
        by_pin = Context(url, pinned("secret", authority.fingerprint))
        context = by_file if trusted_by == "file" else by_pin
        trust = await asyncio.to_thread(trust_of, context)
        async with (
            bridge(context, trust, 0) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http,
        ):
            assert (await http.get("/echo")).text == "None 0"  # nothing is added
            large = await http.post("/echo", content=b"x" * 300_000, headers={"Authorization": "Bearer mine"})
            assert large.text == "Bearer mine 300000"
            async with http.stream("GET", "/endless") as answer:
                chunks = answer.aiter_raw()
                heard = [await anext(chunks) for _ in range(5)]
                beside = await asyncio.gather(*(http.get("/echo") for _ in range(10)))
            assert all(chunk.startswith(b"data: x") for chunk in heard)
            assert {each.status_code for each in beside} == {200}


async def test_plain_http_passes_too(tmp_path: Path) -> None:
    async with serve_http(manager(), "127.0.0.1", 0) as there:
        context = Context(f"http://127.0.0.1:{there}", "secret")
        assert trust_of(context) is None
        async with bridge(context, None, 0) as port, httpx.AsyncClient() as http:
            assert (await http.get(f"http://127.0.0.1:{port}/echo")).text == "None 0"


async def test_nobody_in_the_managers_place_gets_anything(tmp_path: Path) -> None:
    authority, _ = certified(tmp_path / "true")
    other, file = certified(tmp_path / "false")
    async with https(manager(other), file) as url:
        pin = Context(url, pinned("secret", authority.fingerprint))
        with pytest.raises(Unreachable, match="another authority"):
            await asyncio.to_thread(trust_of, pin)
        context = Context(url, "secret", ca=str(tmp_path / "true" / "authority.pem"))
        async with bridge(context, trust_of(context), 0) as port, httpx.AsyncClient() as http:
            with pytest.raises(httpx.TransportError):
                await http.get(f"http://127.0.0.1:{port}/echo", headers={"Authorization": "Bearer mine"})


async def test_while_nothing_answers_a_browser_is_told_so_and_later_served(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        there = free.getsockname()[1]
    context = Context(f"http://127.0.0.1:{there}")
    async with bridge(context, None, 0) as port, httpx.AsyncClient() as http:
        with pytest.raises(httpx.TransportError):
            await http.get(f"http://127.0.0.1:{port}/echo")
        async with serve_http(manager(), "127.0.0.1", there):
            assert (await http.get(f"http://127.0.0.1:{port}/echo")).status_code == 200


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(BadInput, match="cannot be used"):
        async with bridge(Context("http://127.0.0.1:1"), None, taken.getsockname()[1]):
            pass
