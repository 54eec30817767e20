"""What docker-compose.yml lets each service see, and the secrets that its first step makes."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from ces_common.messages.identities import Identity
from ces_common.natsauth import SERVICES
from ces_common.roles import Role
from ces_common.tls.certificates import load_authority
from ces_common.tls.pins import fingerprint_of

ROOT = Path(__file__).parents[2]
MAKER = "init"
KNOWN = {
    "manager": {
        "admin.token",
        "agent-signing-key.json",
        "authority.pem",
        "context.json",
        "metrics.token",
        "nats.creds",
        "pgpass",
        "revocation-key.json",
        "secrets.key",
    },
    "migrate": {"pgpass"},
    "scheduler": {"authority.pem", "metrics.token", "nats.creds"},
    "compute-ctl": {"authority.pem", "metrics.token", "nats.creds"},
    "network-ctl": {"authority.pem", "metrics.token", "nats.creds"},
    "postgres": {"password"},
    "bootstrap": {"admin.token"},
}


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with folders of this test's own, where every file stays this user's."""
    spec = importlib.util.spec_from_file_location("compose_init", ROOT / "deploy" / "compose" / "init.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    for name in ("SECRETS", "OWN", "NATS", "TLS", "NATS_TLS", "METRICS", "AGENTS"):
        monkeypatch.setattr(module, name, tmp_path / name)
        (tmp_path / name).mkdir()
    for agent in ("n1", "n2"):
        (tmp_path / "AGENTS" / agent).mkdir()
    return module


def contents(folder: Path) -> dict[str, dict[str, str]]:
    return {each.name: {file.name: file.read_text() for file in each.iterdir()} for each in folder.iterdir()}


def test_no_two_services_mount_one_volume_of_secrets() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounted: dict[str, list[str]] = {}
    for name, service in services.items():
        for mount in service.get("volumes", []):
            volume, target = mount.split(":")[:2]
            if target.startswith(("/secrets", "/services")):
                mounted.setdefault(volume, []).append(name)
                assert name == MAKER or target == f"/secrets/{name}", mount
                assert name == MAKER or mount.endswith(":ro"), mount
    assert mounted.pop("secrets") == [MAKER]
    assert all(users[0] == MAKER and len(users) == 2 for users in mounted.values()), mounted
    assert {users[1] for users in mounted.values()} == set(KNOWN)


def test_every_service_is_given_what_it_needs_and_keeps_it(init: ModuleType, tmp_path: Path) -> None:
    init.main()
    made = contents(tmp_path / "OWN")
    assert {service: set(files) for service, files in made.items()} == KNOWN
    assert made["bootstrap"]["admin.token"] == made["manager"]["admin.token"].strip()
    authority = load_authority(tmp_path / "TLS")
    assert fingerprint_of(made["bootstrap"]["admin.token"]) == authority.fingerprint
    assert {made[service]["authority.pem"] for service in SERVICES if service in made} == {authority.pem}
    assert made["postgres"]["password"] in made["migrate"]["pgpass"]
    for path in (tmp_path / "OWN").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    init.main()
    assert contents(tmp_path / "OWN") == made


def test_whoever_has_one_token_for_metrics_learns_no_other(init: ModuleType, tmp_path: Path) -> None:
    """Prometheus has all of them, and none of them opens anything else."""
    init.main()
    made, agents = contents(tmp_path / "OWN"), contents(tmp_path / "AGENTS")
    known = {file.name: file.read_text() for file in (tmp_path / "METRICS").iterdir()}
    authority = known.pop("authority.pem")
    assert authority == made["scheduler"]["authority.pem"]
    assert set(known) == {"manager.token", "services.token", "n1.token", "n2.token"}
    assert len(set(known.values())) == len(known)
    assert made["manager"]["metrics.token"] == known["manager.token"]
    for service in ("scheduler", "compute-ctl", "network-ctl"):
        assert made[service]["metrics.token"] == known["services.token"]
    assert agents == {agent: {"metrics.token": known[f"{agent}.token"]} for agent in ("n1", "n2")}
    others = {text for files in made.values() for name, text in files.items() if name != "metrics.token"}
    assert not any(token in text for token in known.values() for text in others)
    for path in [*(tmp_path / "METRICS").iterdir(), *(tmp_path / "AGENTS").rglob("*.token")]:
        assert path.stat().st_mode & 0o077 == 0, path
    init.main()
    assert contents(tmp_path / "AGENTS") == agents


def test_a_stack_with_one_volume_for_all_goes_on_with_its_secrets(init: ModuleType, tmp_path: Path) -> None:
    init.main()
    made = contents(tmp_path / "OWN")
    for service in ("manager", "scheduler", "compute-ctl", "network-ctl", "postgres"):  # as they lay before
        (tmp_path / "OWN" / service).rename(tmp_path / "SECRETS" / service)
    init.main()
    assert contents(tmp_path / "OWN") == made
    assert [each.name for each in (tmp_path / "SECRETS").iterdir()] == ["trust"]


def test_nats_keeps_its_configuration_until_it_says_something_else(
    init: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no renewed certificate while its file names another operator's JWT than it started with."""
    init.main()
    file = tmp_path / "NATS" / "nats-server.conf"
    made = file.read_text()
    monkeypatch.setattr("time.time", lambda at=time.time(): at + 3600)
    init.main()
    assert file.read_text() == made
    file.write_text(made.replace("allow_delete: false", "allow_delete: true"))
    init.main()
    assert "allow_delete: false" in file.read_text()
    assert file.read_text() != made, "JWTs are made anew"


def test_the_group_of_the_certificate_of_nats_is_kept(init: ModuleType, tmp_path: Path) -> None:
    init.main()
    assert (tmp_path / "NATS_TLS").stat().st_mode & stat.S_ISGID
    maker = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][MAKER]
    assert "FSETID" in maker["cap_add"], "without it the mode is dropped in silence"


def test_the_auditor_is_let_in_with_a_token_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a token's life later it gets another one, and the one before is refused."""
    spec = importlib.util.spec_from_file_location("compose_bootstrap", ROOT / "deploy" / "compose" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    file, given = tmp_path / "context.json", []
    monkeypatch.setattr(bootstrap, "AUDITOR", file)
    monkeypatch.setattr(os, "chown", lambda path, user, group: given.append((path, user, group)))
    made, revoked = [], []

    class Tokens:
        def create(self, name: str, role: str, *, lasts_s: int) -> SimpleNamespace:
            made.append((name, role, lasts_s))
            return SimpleNamespace(token=f"token-of-{name}")

        def revoke(self, name: str) -> None:
            revoked.append(name)

    client = SimpleNamespace(url="https://manager:8080", tokens=Tokens())
    monkeypatch.setattr(bootstrap, "auditor_now", lambda _: None)
    bootstrap.admit_auditor(client)
    [(name, role, lasts_s)] = made
    assert (name.startswith("auditor-"), role, lasts_s) == (True, "auditor", 730 * 86400)
    assert json.loads(file.read_text()) == {"url": client.url, "token": f"token-of-{name}"}
    assert file.stat().st_mode & 0o077 == 0
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert given == [(file, 10016, 10016)]
    assert services["auditor"]["user"] == "10016:10016"
    for left_days, role, number in ((366, Role.AUDITOR, 1), (364, Role.AUDITOR, 2), (729, Role.OPERATOR, 3)):
        ends = datetime.now(UTC) + timedelta(days=left_days)
        good = Identity(name=name, role=role, expires_at=ends)
        monkeypatch.setattr(bootstrap, "auditor_now", lambda _, good=good: good)
        bootstrap.admit_auditor(client)
        assert len(made) == number
    assert revoked == [name, name]
