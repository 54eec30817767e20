"""The ``ces`` command: what it prints, and with which status it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import httpx
import pytest
from stamina.instrumentation import RetryDetails
from typer.testing import CliRunner

from ces_client.cli import app, attach, jobs, machine, plugins
from ces_client.cli.patience import Patience
from ces_client.client import Client
from ces_client.context import load_context
from ces_client.doctor import Finding, examine
from ces_client.http import Busy
from ces_common.messages.api import ForgottenNode, JobFlowsView, LinkProbeView, LinkView, NodeView
from ces_common.messages.events import Reason
from ces_common.messages.queries import PlanAnswer

FOREVER = Reason(code="cpu-total", text="the tasks need 9 cores; all nodes together have 4 cores", forever=True)


def ces(*arguments: object, code: int = 0, **more):
    result = CliRunner().invoke(app, [str(word) for word in arguments], **more)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def follow(manager, samples, *views):
    """A manager whose job goes through these views."""
    manager.on("POST", "jobs", views[0], status=201)
    manager.on("GET", f"jobs/{samples.id}", *views)
    manager.on("GET", f"jobs/{samples.id}/events", samples.sse())


def node(name: str) -> NodeView:
    fields = {"state": "ready", "cordoned": False, "cpu": 4000, "memory": 2**33, "gpu": 0, "cpu_allocated": 0}
    fields |= {"memory_allocated": 0, "gpu_allocated": 0, "arch": "arm64", "runtime": "process", "network": "tc"}
    return NodeView(name=name, host_address="10.0.0.1", subnet="10.1.0.0/24", **fields)


def test_submit(connected, samples, job_file):
    connected.on("POST", "jobs", samples.job("queued"), status=201)
    connected.on("GET", f"jobs/{samples.id}", samples.job("queued"), samples.job("planned", nodes=["n0", "n1"]))
    assert ces("submit", job_file).stdout == f"digits submitted: {samples.id}\nplanned on n0, n1\n"
    assert json.loads(ces("submit", job_file, "-o", "json").stdout)["state"] == "planned"


def test_submit_tells_why_a_job_waits_and_does_not_wait_for_it(connected, samples, job_file, monkeypatch):
    monkeypatch.setattr(jobs, "DECISION_S", 0.2)
    connected.on("POST", "jobs", samples.job("queued"), status=201)
    never = Reason(code="cpu", text="worker-0 asks for 64 cores, no node has more than 4", forever=True)
    connected.on("GET", f"jobs/{samples.id}", samples.job("queued", waiting=never))
    said = ces("submit", job_file).stdout.splitlines()[1]
    assert said.startswith(f"it waits: {never.text}; no job's end can change that")
    assert json.loads(ces("submit", job_file, "-o", "json").stdout)["waiting"]["forever"] is True
    for silent in (samples.job("queued"), samples.problem(500, "Internal error")):
        connected.on("GET", f"jobs/{samples.id}", silent)
        said = ces("submit", job_file).stdout.splitlines()[1]
        assert said == f"not decided yet; `ces describe job {samples.id}` shows how it goes"


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 1), ("cancelled", 1)])
def test_submit_and_wait_ends_as_the_job_does(connected, samples, job_file, state, code):
    follow(connected, samples, samples.job("queued"), samples.job("running", round_=20), samples.job(state))
    shown = ces("submit", job_file, "--wait", code=code).stdout.splitlines()
    news = [line.split(" ", 1)[1] for line in shown[:3]]
    assert news == ["digits queued", "digits running (worker-0 on n0, worker-1 on n1)", f"digits {state}"]
    assert any("10–50 Mbit/s" in line for line in shown[3:])


def test_waiting_with_json_prints_the_end_alone(connected, samples, job_file):
    follow(connected, samples, samples.job("queued"), samples.job("failed", reason="gone"))
    shown = json.loads(ces("submit", job_file, "--wait", "-o", "json", code=1).stdout)
    assert (shown["state"], shown["reason"]) == ("failed", "gone")


def test_a_job_without_any_place_is_not_waited_for(connected, samples, job_file, monkeypatch):
    monkeypatch.setattr(attach, "HOPELESS_S", 0.0)
    follow(connected, samples, samples.job("queued", waiting=FOREVER))
    result = ces("submit", job_file, "--wait", code=2)
    assert "the tasks need 9 cores" in result.stderr
    assert f"ces cancel {samples.id}" in result.stderr


def test_patience_with_a_cluster_that_still_gathers():
    verdict = attach.Verdict()
    assert not verdict.hopeless(FOREVER, 0.0)
    assert not verdict.hopeless(None, 50.0)
    assert not verdict.hopeless(FOREVER, 60.0)
    assert not verdict.hopeless(FOREVER.model_copy(update={"forever": False}), 70.0)
    assert not verdict.hopeless(FOREVER, 80.0)
    assert verdict.hopeless(FOREVER, 80.0 + attach.HOPELESS_S)


def test_ctrl_c_detaches_and_says_how_to_come_back(connected, samples, monkeypatch):
    def interrupted(self, job):
        yield samples.job("running")
        raise KeyboardInterrupt

    monkeypatch.setattr("ces_client.client.Jobs.watch", interrupted)
    result = ces("wait", samples.id, code=130)
    assert f"ces wait {samples.id}" in result.stderr
    assert connected.requests == []


def test_plan_tells_a_place_or_why_there_is_none(connected, samples, job_file):
    answer = PlanAnswer(feasible=True, version=1, solver="greedy", assignments={"worker-0": "n0", "worker-1": "n1"})
    connected.on("POST", "plans", answer)
    assert "digits has a place" in ces("plan", job_file).stdout
    connected.on("POST", "plans", PlanAnswer(feasible=False, version=1, solver="greedy", reason=FOREVER))
    assert "the tasks need 9 cores" in ces("plan", job_file, code=2).stdout
    assert json.loads(ces("plan", job_file, "-o", "json", code=2).stdout)["feasible"] is False


def test_a_wrong_file_never_leaves_the_machine(connected, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("name: x\ntasks: [{name: w, comand: [x]}]\n")
    said = ces("submit", path, code=2).stderr
    assert "bad.yaml is not valid" in said
    assert "tasks[0].comand" in said
    assert "remedy: perhaps 'command' was meant" in said
    error = json.loads(ces("submit", path, "-o", "json", code=2).stdout)["error"]
    assert error["errors"][0]["field"] == "tasks[0].comand"
    assert connected.requests == []


def test_refusals_and_silence_end_with_two(connected, samples, job_file):
    wrong = [{"field": "tasks.0.image", "problem": "not allowed [x]", "remedy": "use another"}]
    connected.on("POST", "jobs", samples.problem(422, "Invalid input", "see fields", wrong))
    said = ces("submit", job_file, code=2).stderr
    assert "error: Invalid input: see fields" in said
    assert "tasks.0.image: not allowed [x]\n    remedy: use another" in said
    connected.on("GET", "jobs", httpx.ConnectError("Connection refused"))
    said = ces("get", "jobs", code=2).stderr
    assert f"No answer from {samples.url}" in said
    assert "remedy: check that the manager runs there" in said
    assert json.loads(ces("get", "jobs", "--output=json", code=2).stdout)["error"]["type"] == "ces:unreachable"


@pytest.mark.parametrize("words", [["get", "jobbs"], ["submit"], ["nothing"], ["node", "token", "--ttl", "1"]])
def test_wrong_usage_is_json_too(words):
    error = json.loads(ces(*words, "-o", "json", code=2).stdout)["error"]
    assert error["type"] == "ces:usage"
    assert error["detail"]
    assert "Usage" in ces(*words, code=2).stderr


def test_no_manager_is_known():
    assert "ces up" in ces("get", "jobs", code=2).stderr


def test_get_lists(connected, samples):
    connected.on("GET", "jobs", [samples.job()])
    connected.on("GET", "nodes", [node("n0")])
    connected.on("GET", "links", [LinkView(src="n0", dst="s0", bandwidth=10**9, reserved=0, kind="veth")])
    connected.on("GET", "queue", [])
    assert "digits" in ces("get", "jobs").stdout
    assert "0/4 cores" in ces("get", "nodes").stdout
    assert "n0 › s0" in ces("get", "links").stdout
    assert ces("get", "queue").stdout == "no job waits\n"
    assert json.loads(ces("get", "queue", "-o", "json").stdout) == []
    assert json.loads(ces("get", "nodes", "-o", "json").stdout)[0]["name"] == "n0"


def test_probing_measures_one_link_or_all_that_are_up(connected):
    found = LinkProbeView(src="n0", dst="s0", bandwidth=10**9, sent=1e9, received=8e8, measured=8 * 10**8)
    connected.on("POST", "links/n0/s0/probe", found)
    assert "800 Mbit/s" in ces("probe", "n0", "s0").stdout
    assert json.loads(connected.sent("POST", "links/n0/s0/probe")[0].content) == {"seconds": 1.0}
    for words in (["probe"], ["probe", "n0"], ["probe", "n0", "s0", "--all"]):
        assert "ces probe n1 n2" in ces(*words, code=2).stderr
    links = [
        LinkView(src=src, dst="s0", bandwidth=10**9, reserved=0, kind="veth", state=state)
        for src, state in (("n0", "up"), ("n1", "down"), ("n2", "up"))
    ]
    connected.on("GET", "links", links)
    ended = ces("probe", "--all", "-o", "json", code=1)
    assert [each["src"] for each in json.loads(ended.stdout)] == ["n0"]
    assert "n2 › s0" in ended.stderr
    assert not connected.sent("POST", "links/n1/s0/probe")


def test_flows_are_shown_once_or_until_their_job_is_over(connected, samples, monkeypatch):
    monkeypatch.setattr("ces_client.cli.watching.time.sleep", lambda _: None)

    def view(state):
        flows = [flow.model_dump() for flow in samples.job("running").flows]
        return JobFlowsView(id=samples.id, name="digits", state=state, at=samples.submitted, flows=flows)

    path = f"jobs/{samples.id}/flows"
    connected.on("GET", path, view("running"), view("running"), view("succeeded"))
    shown = ces("flows", samples.id, "--hops").stdout
    assert "worker-0 → worker-1  strict  10 Mbit/s  50 Mbit/s" in shown
    lines = ces("flows", samples.id, "--watch", "-o", "json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["running", "succeeded"]
    assert json.loads(ces("flows", samples.id, "-o", "json").stdout)["flows"][0]["bandwidth"] == 40_000_000


def test_watching_shows_changes_until_ctrl_c(connected, samples, monkeypatch):
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("ces_client.cli.watching.time.sleep", pause)
    queued, running = [samples.job("queued")], [samples.job("running")]
    connected.on("GET", "jobs", queued, queued, running)
    lines = ces("get", "jobs", "--watch", "-o", "json").stdout.splitlines()
    assert [json.loads(line)[0]["state"] for line in lines] == ["queued", "running"]


def test_a_name_stands_for_its_latest_job(connected, samples):
    connected.on(
        "GET", "jobs", [samples.job(id="older", submitted_at=samples.submitted.replace(hour=1)), samples.job()]
    )
    for what, method, path in [
        ("cancel", "DELETE", f"jobs/{samples.id}"),
        ("pause", "POST", f"jobs/{samples.id}/pause"),
        ("resume", "POST", f"jobs/{samples.id}/resume"),
    ]:
        connected.on(method, path, samples.job("running"), status=202)
        assert ces(what, "digits").stdout == f"{what} requested for digits ({samples.id}), now running\n"
        assert json.loads(ces(what, "digits", "-o", "json").stdout)["id"] == samples.id
        assert len(connected.sent(method, path)) == 2
    connected.on("DELETE", f"jobs/{samples.id}", samples.job("succeeded"), status=202)
    assert ces("cancel", "digits").stdout == f"nothing to cancel: digits ({samples.id}) has succeeded\n"
    connected.on("GET", "jobs", [])
    assert "No job is named digits" in ces("cancel", "digits", code=2).stderr


def test_describe(connected, samples):
    connected.on("GET", f"jobs/{samples.id}", samples.job("running", round_=3))
    connected.on("GET", "nodes", [node("n0"), node("n1")])
    connected.on(
        "GET", "links", [LinkView(src=s, dst="s0", bandwidth=10**9, reserved=0, kind="veth") for s in ("n0", "n1")]
    )
    assert "when cut off" in ces("describe", "job", samples.id).stdout
    assert json.loads(ces("describe", "job", samples.id, "-o", "json").stdout)["plan"] is None
    shown = ces("describe", "node", "n1").stdout
    assert "n1 › s0" in shown
    assert "n0 › s0" not in shown
    assert "nodes are n0, n1" in ces("describe", "node", "n9", code=2).stderr


def test_logs(connected, samples):
    path = f"jobs/{samples.id}/logs"
    connected.on("GET", path, httpx.Response(200, text="worker-0 | a [red]b[/]\nworker-1 | c | d\n"))
    assert ces("logs", samples.id).stdout == "worker-0 | a [red]b[/]\nworker-1 | c | d\n"
    lines = [json.loads(line) for line in ces("logs", samples.id, "-o", "json").stdout.splitlines()]
    assert lines[1] == {"task": "worker-1", "line": "c | d"}
    connected.on("GET", path, httpx.Response(200, text="plain | line\n"))
    assert ces("logs", samples.id, "worker-0", "-f").stdout == "plain | line\n"
    assert dict(connected.requests[-1].url.params) == {"follow": "true", "task": "worker-0"}
    assert json.loads(ces("logs", samples.id, "worker-0", "-o", "json").stdout)["task"] == "worker-0"


def test_events(connected, samples):
    stream = samples.sse(samples.job_event(3, "running"), (None, "progress", {}), samples.job_event(4, "succeeded"))
    connected.on("GET", f"jobs/{samples.id}/events", stream)
    connected.on("GET", "events", stream)
    for words in (["events"], ["events", samples.id], ["events", samples.id, "-f"]):
        first, second = ces(*words).stdout.splitlines()
        assert first == f"     3 09:00:00 job.running {samples.id} state=running"
        assert "job.succeeded" in second
    assert [json.loads(line)["sequence"] for line in ces("events", "-o", "json").stdout.splitlines()] == [3, 4]


def test_nodes_and_topology(connected, samples, tmp_path):
    for what in ("cordon", "uncordon", "drain"):
        connected.on("POST", f"nodes/n1/{what}", node("n1"))
        assert ces("node", what, "n1").stdout == f"{what} requested for n1\n"
        assert json.loads(ces("node", what, "n1", "-o", "json").stdout)["name"] == "n1"
    for credential, said in (("revoked", "refused from now on"), ("pending", "goes on trying"), ("kept", "stays good")):
        connected.on("POST", "nodes/n1/forget", ForgottenNode(node="n1", jobs=["j1", "j2"], credential=credential))
        first, second = ces("node", "forget", "n1").stdout.splitlines()
        assert first == "n1 is forgotten; jobs that lose their place: j1, j2"
        assert said in second
    assert json.loads(ces("node", "forget", "n1", "-o", "json").stdout)["credential"] == "kept"
    connected.on("POST", "nodes/tokens", {"token": "abc", "expires_at": samples.submitted.isoformat()}, status=201)
    made = ces("node", "token")
    assert made.stdout == "abc\n"
    assert "lets one node join" in made.stderr
    path = tmp_path / "topology.yaml"
    path.write_text("links: [{src: a, dst: b, bandwidth: 1Gbit}]\n")
    link = LinkView(src="a", dst="b", bandwidth=10**9, reserved=0, kind="veth").model_dump()
    connected.on("PUT", "topology", {"version": 2, "nodes": [], "links": [link]})
    done = ces("topology", "apply", path)
    assert "1 links, 0 media" in done.stdout
    assert done.stderr == "not joined yet: a, b; links to them count once they have\n"
    there = [node(name).model_dump(mode="json") for name in ("a", "b")]
    connected.on("PUT", "topology", {"version": 2, "nodes": there, "links": [link]})
    assert ces("topology", "apply", path).stderr == ""
    assert json.loads(connected.requests[-1].read()) == {"links": [{"src": "a", "dst": "b", "bandwidth": "1Gbit"}]}
    path.write_text("links: [{src: a}]\n")
    assert "links[0].dst" in ces("topology", "apply", path, code=2).stderr


def test_login_keeps_what_works(manager, samples, monkeypatch):
    monkeypatch.setattr(
        machine.Client,
        "from_context",
        lambda context, patience_s: Client(context.url, context.token, transport=httpx.MockTransport(manager)),
    )
    manager.on("GET", "nodes", samples.problem(401, "Not authenticated"), [node("n0")])
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


@pytest.mark.parametrize("what", ["jobs", "nodes", "links", "queue"])
def test_an_empty_list_says_so_to_people_and_stays_a_list_for_scripts(connected, what):
    connected.on("GET", what, [])
    (line,) = ces("get", what).stdout.splitlines()
    assert line.startswith("no ")
    assert ces("get", what, "-o", "json").stdout == "[]\n"


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
