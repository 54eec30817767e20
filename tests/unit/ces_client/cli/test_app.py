"""The ``ces`` command itself: help, completion, and no manager known."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from ces_command import ces
from typer.testing import CliRunner

from ces_client import __version__
from ces_client.cli import app


def test_no_manager_is_known():
    assert "ces up" in ces("get", "jobs", code=2).stderr


def test_help_needs_no_numerics():
    code = "import sys, ces_client.cli as c\ntry: c.app(['--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('numpy', 'scipy', 'nats', 'sqlalchemy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("typed", "offered"), [("su", "submit"), ("get l", "links"), ("describe n", "node")])
def test_the_shell_completes(typed, offered):
    line = f"ces {typed}"
    environment = {"_CES_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    result = CliRunner().invoke(app, [], env=environment, prog_name="ces")
    assert offered in result.stdout.split()


def test_the_version_is_told():
    assert ces("--version").stdout == f"ces {__version__}\n"


def completed(line):
    environment = {"_CES_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return CliRunner().invoke(app, [], env=environment, prog_name="ces").stdout.split()


def test_the_shell_completes_names_of_jobs_nodes_and_tasks(connected, samples):
    connected.on("GET", "jobs", [samples.job(name=name) for name in ("digits", "dogs", "cats")])
    connected.on("GET", "nodes", [samples.node("n1"), samples.node("n2"), samples.node("m1")])
    connected.on("GET", f"jobs/{samples.id}", samples.job())
    assert completed("ces cancel d") == ["digits", "dogs"]
    assert completed("ces cancel 01") == [samples.id]
    assert completed("ces node drain n") == ["n1", "n2"]
    assert completed("ces probe n") == ["n1", "n2"]
    assert completed(f"ces logs {samples.id} w") == ["worker-0", "worker-1"]


def test_completion_without_a_cluster_is_quick_and_silent(monkeypatch):
    monkeypatch.setenv("CES_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CES_TOKEN", "t")
    began = time.monotonic()
    assert completed("ces cancel d") == []
    assert time.monotonic() - began < 5
    monkeypatch.delenv("CES_URL")
    assert completed("ces cancel d") == []
