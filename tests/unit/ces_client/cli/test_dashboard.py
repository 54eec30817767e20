"""``ces dashboard``: what it opens, and who else on the machine could see it."""

from __future__ import annotations

import re
import stat
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from ces_command import ces

from ces_client.cli import dashboard

CODE = {"code": "ces_code_1_secret", "expires_at": "2026-01-01T09:00:00Z"}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes as soon as the page is open."""

    async def pressed() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dashboard, "_until_closed", pressed)
    monkeypatch.setenv("CES_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CES_TOKEN", "secret")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, closed: None) -> list[tuple[str, str, int]]:
    """What a browser was started with, what lay there, and who may read it."""
    found = []

    def start(url: str) -> bool:
        file = Path(unquote(urlsplit(url).path))
        found.append((url, file.read_text(), stat.S_IMODE(file.stat().st_mode)))
        return True

    monkeypatch.setattr(webbrowser, "open", start)
    return found


def test_the_browser_is_led_to_the_page_by_a_file_that_nobody_else_reads(connected, opened):
    connected.on("POST", "sessions/codes", CODE, status=201)
    connected.on("DELETE", "sessions/1", {})
    shown = ces("dashboard", "--port", "0")
    [(url, text, mode)] = opened
    assert CODE["code"] not in url
    assert re.search(rf"url=http://127\.0\.0\.1:\d+/ui/#code={CODE['code']}\"", text)
    assert mode == 0o600
    assert not Path(unquote(urlsplit(url).path)).exists()  # gone with the command
    assert CODE["code"] not in shown.stdout
    assert "the session has ended" in shown.stdout
    assert len(connected.sent("DELETE", "sessions/1")) == 1


def test_without_a_browser_the_address_is_shown(connected, closed, monkeypatch):
    connected.on("POST", "sessions/codes", CODE, status=201)
    assert f"/ui/#code={CODE['code']}" in ces("dashboard", "--port", "0", "--no-browser").stdout
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert f"/ui/#code={CODE['code']}" in ces("dashboard", "--port", "0").stdout


@pytest.mark.parametrize(("status", "ended"), [(404, True), (401, False), (500, False)])
def test_a_session_that_could_not_be_ended_is_not_said_to_have_ended(connected, closed, status, ended):
    refused = {"title": "Refused", "status": status}
    connected.on("POST", "sessions/codes", CODE, status=201)
    connected.on("DELETE", "sessions/1", refused, status=status)
    shown = ces("dashboard", "--port", "0", "--no-browser")
    assert ("the session has ended" in shown.stdout) is ended
    assert ("up to twelve hours" in shown.stderr) is not ended
