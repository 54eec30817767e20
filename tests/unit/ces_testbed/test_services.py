"""What a local cluster tells its services."""

from __future__ import annotations

import re
from pathlib import Path

from ces_common.natsauth import init_trust
from ces_testbed import services
from ces_testbed.services import Layout
from ces_testbed.spec import ClusterSpec, Files, Ports
from ces_testbed.topology import default_topology

PORTS = Ports(nats=1, nats_monitor=6, api=2, scheduler=3, compute_ctl=4, network_ctl=5)


def layout(root: Path, network: str = "tc") -> Layout:
    spec = ClusterSpec.model_validate({"name": "lab", "topology": default_topology(), "network": network})
    return Layout(spec, Files(root), PORTS, "198.18.0.1")


def test_services_are_told_of_the_queue_file(tmp_path: Path) -> None:
    spec = ClusterSpec(name="lab", topology=default_topology(), queue=tmp_path / "queue.yaml")
    told = Layout(spec, Files(tmp_path), PORTS, "198.18.0.1")
    for name, has in (("scheduler", True), ("compute-ctl", False)):
        assert (services.controller_service(told, name).env.get("CES_QUEUE") == str(tmp_path / "queue.yaml")) is has


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
    assert isolated.env["CES_MEASURE"] == "false", "all share one machine"
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


def test_agents_that_share_a_machine_measure_it_only_where_that_is_set(tmp_path: Path) -> None:
    told = with_settings(tmp_path, CES_MEASURE="true")
    agent = services.agent_service(told, default_topology().nodes[0], "token", "198.18.0.2")
    assert agent.env["CES_MEASURE"] == "true"


def with_settings(root: Path, **settings: str) -> Layout:
    spec = ClusterSpec(name="lab", topology=default_topology(), network="tc", settings=settings)
    return Layout(spec, Files(root), PORTS, "198.18.0.1")


def test_settings_of_the_cluster_reach_every_service_and_come_before_its_usual_ones(tmp_path: Path) -> None:
    told = with_settings(tmp_path, CES_SOLVER="mine", CES_LEASE_S="60", CES_LOG_LEVEL="debug")
    manager = services.manager_service(told, init_trust(tmp_path / "trust"))
    assert services.controller_service(told, "scheduler").env["CES_SOLVER"] == "mine"
    assert manager.env["CES_LEASE_S"] == "60"
    assert manager.env["CES_LEASE_MARGIN_S"] == "4.0"
    agent = services.agent_service(told, default_topology().nodes[0], "token", "198.18.0.2")
    assert agent.env["CES_LOG_LEVEL"] == "debug"


def test_what_a_cluster_decides_itself_cannot_be_set(tmp_path: Path) -> None:
    told = with_settings(tmp_path)
    made = [
        services.manager_service(told, init_trust(tmp_path / "trust")),
        services.controller_service(told, "scheduler"),
        services.agent_service(told, default_topology().nodes[0], "token", "198.18.0.2"),
    ]
    own = {name for service in made for name in service.env if re.match("CES_(?!TESTBED_)", name)}
    may_be_set = {"CES_LOG_LEVEL", "CES_LEASE_S", "CES_LEASE_MARGIN_S", "CES_UNREACHABLE_S", "CES_MEASURE"}
    assert own - may_be_set <= services.DECIDED.keys()
    assert not may_be_set & services.DECIDED.keys()


def test_an_agent_that_has_joined_needs_no_token(tmp_path: Path) -> None:
    agent = services.agent_service(layout(tmp_path), default_topology().nodes[0], None, "198.18.0.2")
    assert "CES_JOIN_TOKEN" not in agent.env


def test_services_of_a_kind_run_side_by_side_each_with_a_port_and_a_log_of_its_own(tmp_path: Path) -> None:
    spec = ClusterSpec(name="lab", topology=default_topology(), managers=2, schedulers=3)
    ports = PORTS.model_copy(update={"more": {"manager-2": 7, "scheduler-2": 8, "scheduler-3": 9}})
    told, trust = Layout(spec, Files(tmp_path), ports, "198.18.0.1"), init_trust(tmp_path / "trust")
    assert told.managers == ["manager", "manager-2"]
    assert told.controllers == ["scheduler", "scheduler-2", "scheduler-3", "compute-ctl", "network-ctl"]
    made = [
        *(services.manager_service(told, trust, name) for name in told.managers),
        *(services.controller_service(told, name) for name in told.controllers),
    ]
    assert [each.env["CES_HTTP_PORT"] for each in made] == ["2", "7", "3", "8", "9", "4", "5"]
    assert len({each.log for each in made}) == len(made)
    assert {each.env["CES_DATABASE_URL"] for each in made[:2]} == {f"sqlite:///{tmp_path / 'ces.db'}"}
    for each in made:
        kind = services.kind_of(each.name)
        assert each.command[-1] == services.MODULES[kind]
        assert each.env["CES_NATS_CREDS"] == str(tmp_path / "credentials" / f"{kind}.creds")
    assert told.ready_url("manager-2") == "https://198.18.0.1:7/readyz"
    assert told.ready_url("scheduler").startswith("http://")
