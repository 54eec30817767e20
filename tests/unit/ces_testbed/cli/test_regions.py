"""``ces up --regions`` without clusters: what it refuses, starts, and takes away again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ces_client.cli import app, session
from ces_testbed.cli import lifecycle
from ces_testbed.cli import regions as command
from ces_testbed.hub import HubFiles
from ces_testbed.progress import News
from ces_testbed.spec import ClusterSpec, Files

UP = News(kind="ready", text="https://127.0.0.1:1")


class Background:
    """Of clusters that come up at once, or not."""

    started: list[ClusterSpec] = []
    news_of: dict[str, News] = {}

    def __init__(self, spec: ClusterSpec, files: Files, *, tied: bool) -> None:
        self.spec, self.files = spec, files

    def start(self) -> None:
        self.started.append(self.spec)

    def news(self) -> News:
        return self.news_of.get(self.spec.name, UP)

    def wait(self, timeout_s: float) -> bool:
        return True


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "context.json"))
    monkeypatch.setattr(Background, "started", [])
    monkeypatch.setattr(Background, "news_of", {})
    monkeypatch.setattr(command, "Background", Background)
    monkeypatch.setattr(command, "start_hub", lambda files: None)
    monkeypatch.setattr(lifecycle, "show_progress", lambda news, screen: news)
    monkeypatch.setattr("ces_testbed.cleanup.has_namespaces", lambda: False)
    yield
    session.name_cluster(None)


def ces(*words: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def hub(tmp_path: Path) -> HubFiles:
    return HubFiles(tmp_path / "state" / "ces" / "lab-hub")


def test_regions_are_clusters_that_know_each_other(tmp_path: Path) -> None:
    told = json.loads(ces("up", "--regions", 3, "--name", "lab", "--network", "none", "-o", "json").stdout)
    assert list(told["regions"]) == ["lab1", "lab2", "lab3"]
    first, second, third = Background.started
    assert first.region is not None
    assert first.region.peers == ["lab2", "lab3"]
    assert len({each.region.block for each in (first, second, third) if each.region is not None}) == 3
    assert len({each.api_port for each in (first, second, third)}) == 3
    assert hub(tmp_path).read() is not None
    ces("down", "--name", "lab")
    assert hub(tmp_path).read() is None
    assert not hub(tmp_path).trust.exists()


def test_where_one_cannot_be_started_nothing_stays(tmp_path: Path) -> None:
    Background.news_of["lab2"] = News(kind="failed", text="no port is free")
    said = ces("up", "--regions", 3, "--name", "lab", "--network", "none", code=1).output
    assert "lab2" in said
    assert "no port is free" in " ".join(said.split())
    assert [each.name for each in Background.started] == ["lab1", "lab2"]
    assert hub(tmp_path).read() is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--state", "/tmp/x"], "folders of their own"),
        (["--name", "abcdefghijklmnop"], "cannot name a cluster"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], why: str) -> None:
    said = " ".join(ces("up", "--regions", 2, "--network", "none", *words, code=2).output.split())
    assert why in said
    assert Background.started == []
