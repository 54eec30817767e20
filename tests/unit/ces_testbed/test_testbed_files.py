"""A cluster's files, what its services are told, and what is told about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ces_client import load_job
from ces_client.errors import BadInput
from ces_common.natsauth import init_trust
from ces_testbed import services
from ces_testbed.choices import NetworkChoice, RuntimeChoice, checked_queue, choose, read_topology
from ces_testbed.cleanup import leftovers, remove_files
from ces_testbed.demo import demo_job
from ces_testbed.progress import News, Told, read_news
from ces_testbed.services import Layout
from ces_testbed.spec import ClusterSpec, Files, Ports, default_root
from ces_testbed.topology import default_topology, parse_topology

PORTS = Ports(nats=1, nats_monitor=6, api=2, scheduler=3, compute_ctl=4, network_ctl=5)


def layout(root: Path, network: str = "tc") -> Layout:
    spec = ClusterSpec.model_validate({"name": "lab", "topology": default_topology(), "network": network})
    return Layout(spec, Files(root), PORTS, "198.18.0.1")


def test_a_spec_survives_being_written(tmp_path: Path) -> None:
    files = Files(tmp_path)
    spec = ClusterSpec(name="lab", topology=default_topology())
    files.spec.write_text(spec.model_dump_json())
    assert files.read_spec() == spec


def test_a_queue_file_that_services_would_refuse_starts_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text("tenants: [{name: default, weight: -1}]")
    with pytest.raises(BadInput, match="queue") as refused:
        checked_queue(file)
    (error,) = refused.value.problem.errors
    assert error["field"] == "--queue"
    assert "tenants[0].weight: must be above 0, is -1" in error["problem"]
    file.write_text("patience: 1m")
    assert checked_queue(file) == file


def test_services_are_told_of_the_queue_file(tmp_path: Path) -> None:
    spec = ClusterSpec(name="lab", topology=default_topology(), queue=tmp_path / "queue.yaml")
    told = Layout(spec, Files(tmp_path), PORTS, "198.18.0.1")
    for name, has in (("scheduler", True), ("compute-ctl", False)):
        assert (services.controller_service(told, name).env.get("CES_QUEUE") == str(tmp_path / "queue.yaml")) is has


def test_a_cluster_of_switches_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere to run"):
        ClusterSpec(name="lab", topology=parse_topology("nodes: [{name: s}]", "f"))


def test_the_callers_own_settings_reach_no_service(tmp_path: Path) -> None:
    env = services.base_env(layout(tmp_path), {"PATH": "/bin", "CES_TOKEN": "secret", "NO_PROXY": "internal"})
    assert "CES_TOKEN" not in env
    assert env["PATH"] == "/bin"
    assert env["NO_PROXY"] == "internal,127.0.0.1,198.18.0.1"


def test_an_agent_lives_in_its_host_only_with_tc(tmp_path: Path) -> None:
    node = default_topology().nodes[0]
    isolated = services.agent_service(layout(tmp_path), node, "token", "198.18.0.2")
    assert isolated.namespace == "ces-lab-n1"
    assert isolated.env["CES_DATA_PLANE"] == "ces-lab-n1-dp"
    assert isolated.env["CES_NODE_CPU"] == "1"
    assert isolated.env["CES_NODE_LABELS"] == "site=roof"
    assert isolated.argv[2:4] == ["ces_testbed.enter", "ces-lab-n1"]
    plain = services.agent_service(layout(tmp_path, "none"), node, "token", "127.0.0.1")
    assert plain.namespace is None
    assert plain.argv[1:] == ["-m", "ces_edge_agent"]


def test_only_the_manager_is_told_the_database_and_the_signing_key(tmp_path: Path) -> None:
    trust = init_trust(tmp_path / "trust")
    manager = services.manager_service(layout(tmp_path), trust)
    scheduler = services.controller_service(layout(tmp_path), "scheduler")
    assert manager.env["CES_DATABASE_URL"] == f"sqlite:///{tmp_path}/ces.db"
    assert Path(manager.env["CES_AGENT_SIGNING_KEY_FILE"]).exists()
    assert not {"CES_DATABASE_URL", "CES_AGENT_SIGNING_KEY_FILE", "CES_ADMIN_TOKEN_FILE"} & set(scheduler.env)


def test_removing_spares_logs_and_folders_of_others(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "nats").mkdir()
    remove_files(files)
    assert (tmp_path / "nats").exists()  # no cluster was here
    files.prepare()
    files.spec.write_text(ClusterSpec(name="lab", topology=default_topology()).model_dump_json())
    files.database.touch()
    (tmp_path / "notes.txt").touch()
    files.log("manager").touch()
    remove_files(files)
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "notes.txt"}
    assert files.log("manager").exists()


def test_the_context_goes_with_its_cluster_and_not_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tmp_path / "context.json"
    monkeypatch.setenv("CES_CONTEXT", str(context))
    files = Files(tmp_path / "cluster")
    for token, stays in (("mine", False), ("another's", True)):
        files.prepare()
        files.spec.write_text(ClusterSpec(name="lab", topology=default_topology()).model_dump_json())
        files.token.write_text("mine\n")
        context.write_text(json.dumps({"url": "http://127.0.0.1:8080", "token": token}))
        remove_files(files)
        assert context.exists() is stays


def test_news_are_read_as_far_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    assert read_news(path, 0) == ([], 0)
    told = Told(path)
    told.say(News(kind="step", step="hosts", done=1, total=2))
    with path.open("a") as file:
        file.write('{"kind": "ready"')
    items, place = read_news(path, 0)
    assert [item.step for item in items] == ["hosts"]
    with path.open("a") as file:
        file.write(', "text": "url"}\n')
    items, _ = read_news(path, place)
    assert items == [News(kind="ready", text="url")]


def test_the_network_is_chosen_by_what_the_machine_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ces_testbed.choices.why_no_tc", lambda: "it needs root")
    choice = choose(RuntimeChoice.PROCESS, NetworkChoice.AUTO)
    assert choice.network == "none"
    assert "bandwidth is not enforced" in choice.note
    assert "it needs root" in choice.note
    with pytest.raises(BadInput, match="tc cannot be used"):
        choose(RuntimeChoice.PROCESS, NetworkChoice.TC)
    monkeypatch.setattr("ces_testbed.choices.why_no_tc", lambda: None)
    assert choose(RuntimeChoice.PROCESS, NetworkChoice.AUTO).unenforced is None


def test_a_wrong_topology_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="topology"):
        read_topology(tmp_path / "none.yaml")


def test_the_demonstrations_job_is_the_example() -> None:
    example = Path(__file__).parents[3] / "examples" / "jobs" / "digits-ring.yaml"
    assert load_job(demo_job()) == load_job(example)


def test_files_of_a_cluster_lie_in_the_users_state(tmp_path: Path) -> None:
    assert default_root("lab", {"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "ces" / "lab"


def test_nothing_is_left_of_a_cluster_that_never_was(tmp_path: Path) -> None:
    assert leftovers("never", Files(tmp_path / "never"), containers=False) == []
