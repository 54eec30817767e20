"""`ces up` and `ces down` without a cluster: what they refuse, what they keep, and what they say."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ces_client import Context, save_context
from ces_client.cli import app, session
from ces_testbed import owners
from ces_testbed.cli import cluster, lifecycle
from ces_testbed.processes import Known, Records
from ces_testbed.progress import News
from ces_testbed.spec import Addresses, ClusterSpec, Files, Ports
from ces_testbed.topology import default_topology

PORTS = Ports(nats=1, nats_monitor=6, api=23456, scheduler=3, compute_ctl=4, network_ctl=5)
Usage = namedtuple("Usage", "total used free")


class Background:
    """Of a cluster that comes up, or fails, at once."""

    started: list[ClusterSpec] = []
    news = News(kind="ready", text="http://127.0.0.1:23456")

    def __init__(self, spec: ClusterSpec, files: Files, *, tied: bool) -> None:
        self.spec, self.files = spec, files

    def start(self) -> None:
        self.started.append(self.spec)

    def wait(self, timeout_s: float) -> bool:
        return True


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test touches what runs on this machine."""
    for name in [name for name in os.environ if name.startswith("CES_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CES_CONTEXT", str(tmp_path / "context.json"))
    (tmp_path / "locks").mkdir()
    monkeypatch.setattr(owners, "FOLDER", tmp_path / "locks")
    monkeypatch.setattr(Background, "started", [])
    monkeypatch.setattr(cluster, "Background", Background)
    monkeypatch.setattr(lifecycle, "show_progress", lambda news, screen: news)
    monkeypatch.setattr(Background, "news", lambda self: News(kind="ready", text="http://127.0.0.1:23456"))
    monkeypatch.setattr("ces_testbed.cleanup.has_namespaces", lambda: False)
    monkeypatch.setattr("ces_testbed.cli.options.why_no_tc", lambda: None)
    yield
    session.name_cluster(None)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "state" / "ces" / "lab")


def ces(*words: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def leave_behind(files: Files, **more: Any) -> ClusterSpec:
    """What a cluster leaves whose own process was killed."""
    spec = ClusterSpec.model_validate(
        {"name": "lab", "topology": default_topology(), "network": "none", "api_port": 23456} | more
    )
    files.prepare()
    files.spec.write_text(spec.model_dump_json())
    files.addresses.write_text(Addresses(host="127.0.0.1", ports=PORTS).model_dump_json())
    files.database.write_text("jobs")
    return spec


def test_a_cluster_whose_process_was_killed_is_resumed_with_its_jobs(files: Files) -> None:
    left = leave_behind(files)
    shown = ces("up", "--name", "lab").stdout
    assert "resuming it, with its jobs and history" in shown
    assert Background.started == [left]
    assert files.database.read_text() == "jobs"


def test_it_is_not_resumed_as_something_else(files: Files, tmp_path: Path) -> None:
    left = leave_behind(files)
    ask = ("up", "--name", "lab")
    for options, named in (
        (("--port", 8081), "--port"),
        (("--network", "tc"), "--network"),
        (("--solver", "greedy"), "--solver"),
    ):
        refused = ces(*ask, *options, code=2).stderr
        assert f"leave {named} out to resume it; `ces down --name lab` or --fresh drops it" in refused
    assert Background.started == []
    assert files.database.exists()
    ces(*ask, "--port", 23456, "--network", "none", "--runtime", "process")
    assert Background.started == [left]


def test_only_fresh_drops_what_is_kept_and_says_so(files: Files) -> None:
    leave_behind(files)
    shown = ces("up", "--name", "lab", "--fresh", "--network", "none").stdout
    assert f"removing what an earlier cluster left in {files.root}" in shown
    assert not files.database.exists()
    assert not files.addresses.exists()


def test_a_failed_resumption_keeps_the_state_and_a_failed_start_leaves_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Background, "news", lambda self: News(kind="failed", text="nats: no space left"))
    leave_behind(files)
    assert "no space left" in ces("up", "--name", "lab", code=1).stderr
    assert files.database.exists()
    removed = []
    monkeypatch.setattr(lifecycle, "remove_cluster", lambda name, files, *, containers: removed.append(name))
    assert "no space left" in ces("up", "--name", "lab", "--fresh", "--network", "none", code=1).stderr
    assert removed == ["lab", "lab"], "before it started, and after it failed"


def test_a_name_that_another_holds_is_refused_with_its_owner(tmp_path: Path) -> None:
    theirs = Files(tmp_path / "theirs")
    theirs.prepare()
    theirs.spec.write_text(ClusterSpec(name="lab", topology=default_topology(), network="tc").model_dump_json())
    owners.claim("lab", theirs)
    for words, title in (
        (("up", "--name", "lab", "--network", "tc"), "The name lab is taken on this machine"),
        (("down", "--name", "lab"), "The cluster lab is another's"),
    ):
        refused = ces(*words, code=2).stderr
        assert title in refused
        assert f"{theirs.root} (user " in refused
        assert f"process {os.getpid()}" in refused
        assert f"ces down --name lab --state {theirs.root}" in refused
        assert "--force" in refused
    assert theirs.spec.exists()
    ces("up", "--name", "lab", "--network", "none")
    assert len(Background.started) == 1, "without hosts and containers nothing is shared"
    ces("down", "--name", "lab", "--force")
    assert not theirs.spec.exists()


def test_a_name_may_be_used_beside_a_holder_where_nothing_is_shared(tmp_path: Path, files: Files) -> None:
    theirs = Files(tmp_path / "theirs")
    owners.claim("lab", theirs)
    leave_behind(files)
    assert "cluster lab is down" in ces("down", "--name", "lab").stdout
    assert not files.spec.exists()
    assert owners.owner_of("lab") is not None


def test_hints_name_the_cluster_and_its_state(tmp_path: Path) -> None:
    assert "  ces down  " in ces("up", "--network", "none").stdout
    assert "  ces down --name lab  " in ces("up", "--name", "lab", "--network", "none").stdout
    elsewhere = tmp_path / "elsewhere"
    shown = ces("up", "--name", "lab", "--state", elsewhere, "--network", "none").stdout
    assert f"  ces down --name lab --state {elsewhere}  " in shown


def test_one_that_runs_is_not_started_again(files: Files) -> None:
    leave_behind(files)
    me = Known.of("supervisor", os.getpid())
    assert me is not None
    Records(files.processes).write([me])
    assert "`ces down --name lab` ends it" in ces("up", "--name", "lab", code=2).stderr


def test_down_that_finds_nothing_lists_what_there_is(tmp_path: Path) -> None:
    assert "nothing to do" in ces("down").stdout
    assert json.loads(ces("down", "-o", "json").stdout)["was_up"] is False
    save_context(Context("http://m", "t"), name="far")
    assert "nothing to do" in ces("down").stdout
    save_context(Context("http://h", "t", state=str(tmp_path / "state" / "ces" / "rs")), name="rs")
    refused = ces("down", code=1).stderr
    assert "There is no cluster local" in refused
    assert "rs (`ces down --name rs`)" in refused


def test_down_ends_the_cluster_that_the_option_names(files: Files) -> None:
    leave_behind(files)
    ces("down", "--cluster", "lab")
    assert not files.spec.exists()


def test_a_folder_that_cannot_be_written_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = ces("up", "--state", tmp_path / "file" / "lab", code=2).stderr
    assert "cannot be written: Not a directory" in refused
    assert "name another one with --state" in refused
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    assert "holds other things" in ces("up", "--state", tmp_path / "notes", code=2).stderr


def test_free_space_is_looked_at_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2**40, 2**40 - 2**20, 2**20))
    refused = ces("up", code=2).stderr
    assert "The disk is full" in refused
    assert "1 MiB are free" in refused
    assert not (tmp_path / "state").exists()
    assert Background.started == []


def test_another_port_than_the_usual_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "port_is_free", lambda host, port: False)
    monkeypatch.setattr(lifecycle, "free_port", lambda host, taken: 23456)
    assert "port 8080 is taken: the API listens on 23456 (--port names one)" in ces("up", "--network", "none").stdout
    assert Background.started[0].api_port == 23456
    assert "taken" not in ces("up", "--name", "lab", "--network", "none", "--port", 9000).stdout


def test_what_the_shell_sets_in_vain_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_SOLVER", "mine")
    shown = ces("up", "--network", "none").stdout
    assert 'CES_SOLVER of this shell is not passed on to the cluster: write --solver "$CES_SOLVER"' in shown
    assert Background.started[0].settings == {}
    assert "not passed on" not in ces("up", "--name", "lab", "--network", "none", "--solver", "greedy").stdout
    assert Background.started[1].settings == {"CES_SOLVER": "greedy"}


def test_earlier_logs_are_set_aside(files: Files) -> None:
    files.logs.mkdir(parents=True)
    files.log("manager").write_text("earlier")
    ces("up", "--name", "lab", "--network", "none")
    assert (files.root / "logs.1" / "manager.log").read_text() == "earlier"
    assert not files.log("manager").exists()
