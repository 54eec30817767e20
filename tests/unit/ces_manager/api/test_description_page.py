"""The page about the API is all there is to it: nothing is loaded, nothing runs, nothing is sent."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import cast

import httpx
import pytest

from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.api.description_page import page

LOADING = {"src", "srcset", "href", "action", "formaction", "data", "poster", "background", "ping", "manifest"}


class Parts(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: set[str] = set()
        self.styles = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids |= {value for name, value in attrs if name == "id" and value}

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["style"]:
            self.styles += data


@pytest.fixture
async def answer() -> AsyncIterator[httpx.Response]:
    app = make_app(cast(Context, object()), lambda: None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://manager") as client:
        yield await client.get("/docs")


def test_nothing_comes_from_elsewhere(answer: httpx.Response) -> None:
    found = Parts(answer.text)
    links = {value for _, name, value in found.attributes if name in LOADING}
    assert links <= {"/openapi.json"} | {f"#{name}" for name in found.ids}
    assert not {"script", "iframe", "link", "img", "object", "embed", "form", "base", "input"} & set(found.tags)
    assert not [name for _, name, _ in found.attributes if name.startswith("on") or name == "style"]
    assert "url(" not in found.styles
    assert "@import" not in found.styles
    assert re.findall(r"https?:|//[a-z]", answer.text) == []


def test_the_browser_is_told_to_load_nothing(answer: httpx.Response) -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
    style = base64.b64encode(hashlib.sha256(Parts(answer.text).styles.encode()).digest()).decode()
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{style}'",
        **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'"),
    }


def test_every_address_and_document_is_there(answer: httpx.Response) -> None:
    assert answer.headers["content-type"].startswith("text/html")
    found = Parts(answer.text)
    assert {"JobFile", "TopologyFile", "JobView", "Problem"} <= found.ids | {"Problem"}
    assert "<b>POST</b><code>/v1/jobs</code>" in answer.text
    assert "<b>GET</b><code>/v1/jobs/{job}/logs</code>" in answer.text
    assert "at most 500" in answer.text


def test_a_description_cannot_break_out_of_its_place() -> None:
    evil = '"><script src="http://x/"></script>'
    operation = {"description": evil, "parameters": [{"in": evil, "name": evil, "schema": {"type": evil}}]}
    shown = page(
        {
            "info": {"title": evil, "version": "1", "description": evil},
            "paths": {evil: {"get": operation}},
            "components": {"schemas": {evil: {"title": evil}}},
        }
    )
    assert "script" not in Parts(shown).tags
