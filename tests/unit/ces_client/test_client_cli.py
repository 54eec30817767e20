"""The ``ces`` command itself: usage, login, help, completion, and commands of other packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import httpx
import pytest
from ces_command import ces
from stamina.instrumentation import RetryDetails
from typer.testing import CliRunner

from ces_client.cli import app, machine, plugins
from ces_client.cli.patience import Patience
from ces_client.client import Client
from ces_client.context import load_context
from ces_client.doctor import Finding, examine
from ces_client.http import Busy


@pytest.mark.parametrize("words", [["get", "jobbs"], ["submit"], ["nothing"], ["node", "token", "--ttl", "1"]])
def test_wrong_usage_is_json_too(words):
    error = json.loads(ces(*words, "-o", "json", code=2).stdout)["error"]
    assert error["type"] == "ces:usage"
    assert error["detail"]
    assert "Usage" in ces(*words, code=2).stderr


def test_no_manager_is_known():
    assert "ces up" in ces("get", "jobs", code=2).stderr


def test_login_keeps_what_works(manager, samples, monkeypatch):
    monkeypatch.setattr(
        machine.Client,
        "from_context",
        lambda context, patience_s: Client(context.url, context.token, transport=httpx.MockTransport(manager)),
    )
    manager.on("GET", "nodes", samples.problem(401, "Not authenticated"), [samples.node("n0")])
    assert "valid token" in ces("login", samples.url, "--token", "wrong", code=2).stderr
    with pytest.raises(Exception, match="No manager is known"):
        load_context()
    assert "logged in" in ces("login", f"{samples.url}/", input="secret\n").stdout
    assert (load_context().url, load_context().token) == (samples.url, "secret")


def test_doctor_tells_what_the_machine_can_do():
    findings = {finding.what: finding for finding in examine()}
    assert findings["python"].good
    assert "process" in findings["→ runtimes"].found
    assert all(finding.remedy for finding in findings.values() if not finding.good)
    shown = json.loads(ces("doctor", "-o", "json").stdout)["findings"]
    assert {entry["what"] for entry in shown} == set(findings)
    assert "container engine" in ces("doctor").stdout


def test_doctor_looks_for_the_engine_where_it_is_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    found = next(finding for finding in examine() if finding.what == "container engine")
    assert isinstance(found, Finding)
    assert not found.good
    assert "none.sock" in found.found


@pytest.fixture
def extra(tmp_path, monkeypatch):
    """Two commands of another package, one of which cannot be imported."""
    (tmp_path / "extra_ces").mkdir()
    (tmp_path / "extra_ces" / "__init__.py").write_text("raise AssertionError('imported for its help')\n")
    (tmp_path / "extra_cli.py").write_text(
        "import typer\n"
        "from ces_client.errors import bad_field\n"
        "group = typer.Typer(help='Run things.')\n"
        "@group.command()\n"
        "def one():\n    typer.echo('one')\n"
        "def greet(name: str = 'you'):\n"
        '    """Say hello,\n    politely.\n\n    More."""\n'
        "    if name == 'nobody':\n        raise bad_field('No greeting', 'name', 'is nobody', 'name somebody')\n"
        "    typer.echo(f'hello {name}')\n"
    )
    (tmp_path / "extra_ces" / "cli.py").write_text('def train():\n    """Train."""\n')
    (tmp_path / "extra_broken.py").write_text('import not_installed_anywhere\ndef broken():\n    """Break."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("extra_cli", "extra_broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    named = {"greet": "extra_cli:greet", "group": "extra_cli:group", "train": "extra_ces.cli:train"}
    named["broken"] = "extra_broken:broken"
    points = {name: EntryPoint(name, value, plugins.GROUP) for name, value in named.items()}
    benches = {"greet": EntryPoint("greet", "extra_cli:greet", plugins.BENCH_GROUP)}
    benches["broken"] = EntryPoint("broken", "extra_broken:broken", plugins.BENCH_GROUP)
    groups = {plugins.GROUP: points, plugins.BENCH_GROUP: benches}
    monkeypatch.setattr(plugins, "plugins", lambda group: groups[group])


@pytest.mark.usefixtures("extra")
def test_commands_of_other_packages_join_without_being_imported():
    shown = ces("--help").stdout
    for line in ("greet", "Say hello, politely.", "Run things.", "Train."):
        assert line in shown
    assert "extra_cli" not in sys.modules
    assert ces("greet", "--name", "me").stdout == "hello me\n"
    assert ces("group", "one").stdout == "one\n"
    assert "Say hello" in ces("greet", "--help").stdout
    assert "remedy: name somebody" in ces("greet", "--name", "nobody", code=2).stderr
    assert "pip install extra_broken" in ces("broken", code=2).stderr


@pytest.mark.usefixtures("extra")
def test_measurements_of_other_packages_join_without_being_imported():
    assert "Say hello, politely." in ces("bench", "--help").stdout
    assert "extra_cli" not in sys.modules
    assert ces("bench", "greet", "--name", "me").stdout == "hello me\n"
    said = ces("bench", "broken", code=2).stderr
    assert "`ces bench broken` cannot start" in said
    assert "pip install extra_broken" in said


def test_help_needs_no_numerics():
    code = "import sys, ces_client.cli as c\ntry: c.app(['--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('numpy', 'scipy', 'nats', 'sqlalchemy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_errors_as_json_stand_alone_on_standard_output():
    code = "import stamina; stamina.set_testing(True, attempts=3); from ces_client.cli import main; main()"
    command = [sys.executable, "-c", code, "get", "jobs", "-o", "json"]
    environment = os.environ | {"CES_URL": "http://127.0.0.1:1", "CES_TOKEN": "t"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["status"] == 503
    assert done.stderr == ""


@pytest.mark.parametrize(("typed", "offered"), [("su", "submit"), ("get l", "links"), ("describe n", "node")])
def test_the_shell_completes(typed, offered):
    line = f"ces {typed}"
    environment = {"_CES_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    result = CliRunner().invoke(app, [], env=environment, prog_name="ces")
    assert offered in result.stdout.split()


def test_a_command_that_is_kept_waiting_says_so_once(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr("ces_client.cli.patience.time.monotonic", lambda: now)
    request = httpx.Request("GET", "http://manager:8080/v1/jobs")
    hook = Patience()
    for outage in range(2):
        for retry, wait in enumerate((0.1, 0.2, 0.4, 0.8, 1.6), start=1):
            error = httpx.ConnectError("refused", request=request)
            hook(RetryDetails("send", (), {}, retry, wait, 0.0, error))
            now += wait
            assert (capsys.readouterr().err != "") is (retry == 5), (outage, retry)
        now += 60
    for retry in (1, 2):
        hook(RetryDetails("send", (), {}, retry, 0.1, 0.0, Busy(httpx.Response(503))))
        now += 2
    assert "cannot answer now (HTTP 503)" in capsys.readouterr().err
