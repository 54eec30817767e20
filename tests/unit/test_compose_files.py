"""What the compose files let each service see, and the secrets that their first steps make."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from ces_common.messages.identities import Identity
from ces_common.natsauth import SERVICES, read_credentials
from ces_common.natsauth.jwt import claims_of
from ces_common.roles import Role
from ces_common.tls.certificates import load_authority
from ces_common.tls.pins import fingerprint_of
from ces_federation.peers import read_peers

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
FEDERATION = {"authority.pem", "metrics.token", "nats.creds", "regions.json", "wire.creds"}
REGIONS = ("north", "east", "west")
STACK, OF_REGIONS = "docker-compose.yml", "docker-compose.regions.yml"


def script(name: str) -> ModuleType:
    """One of deploy/compose."""
    spec = importlib.util.spec_from_file_location(f"compose_{name}", ROOT / "deploy" / "compose" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def services_of(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / file).read_text())["services"]
    return found


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with folders of this test's own, where every file stays this user's."""
    module = script("init")
    monkeypatch.setattr(os, "chown", lambda *_: None)
    for name in ("SECRETS", "OWN", "NATS", "TLS", "NATS_TLS", "METRICS", "AGENTS", "REGION"):
        monkeypatch.setattr(module, name, tmp_path / name)
        (tmp_path / name).mkdir()
    for agent in ("n1", "n2"):
        (tmp_path / "AGENTS" / agent).mkdir()
    return module


def contents(folder: Path) -> dict[str, dict[str, str]]:
    return {each.name: {file.name: file.read_text() for file in each.iterdir()} for each in folder.iterdir()}


@pytest.mark.parametrize(("file", "of"), [(STACK, ""), *((OF_REGIONS, f"{region}-") for region in REGIONS)])
def test_no_two_services_mount_one_volume_of_secrets(file: str, of: str) -> None:
    """``of``: how the services and volumes of a region begin, among others'."""
    maker, mounted = of + MAKER, dict[str, list[str]]()
    for name, service in services_of(file).items():
        for mount in service.get("volumes", []):
            volume, target = mount.split(":")[:2]
            if volume.startswith(of) and target.startswith(("/secrets", "/services")):
                mounted.setdefault(volume, []).append(name)
                assert name == maker or target == f"/secrets/{name.removeprefix(of)}", mount
                assert name == maker or mount.endswith(":ro"), mount
    assert mounted.pop(f"{of}secrets") == [maker]
    assert all(users[0] == maker and len(users) == 2 for users in mounted.values()), mounted
    known = KNOWN.keys() | ({"federation"} if of else set())
    assert {users[1].removeprefix(of) for users in mounted.values()} == known


def test_regions_share_nothing_but_the_wire() -> None:
    services = services_of(OF_REGIONS)
    assert {name.split("-")[0] for name in services} == {*REGIONS, "hub"}
    on: dict[str, set[str]] = {}
    for name, service in services.items():
        region = name.split("-")[0]
        for mount in service.get("volumes", []):
            volume = mount.split(":")[0]
            assert volume.startswith((f"{region}-", "./", "/var/run")) or name == "hub-init", mount
        for network in service.get("networks", []):
            on.setdefault(network, set()).add(name)
            assert network == "wire" or network.startswith(region), name
    assert on["wire"] == {"hub", *(f"{region}-nats" for region in REGIONS)}
    assert [mount.split(":")[0] for mount in services["hub"]["volumes"]] == ["hub-server"]


def test_regions_have_names_and_addresses_of_their_own() -> None:
    services, blocks = services_of(OF_REGIONS), []
    introduced = services["hub-init"]["command"][-len(REGIONS) :]
    for region in introduced:
        told = [services[f"{region}-{name}"]["environment"] for name in ("manager", "federation")]
        assert [each["CES_REGION"] for each in (*told, services[f"{region}-init"]["environment"])] == [region] * 3
        assert told[0]["CES_ADDRESS_BLOCK"] == told[1]["CES_ADDRESS_BLOCK"]
        blocks.append(IPv4Network(told[0]["CES_ADDRESS_BLOCK"]))
    assert tuple(introduced) == REGIONS
    assert not any(one.overlaps(other) for one, other in combinations(blocks, 2))


@pytest.mark.parametrize("name", ["manager", "scheduler", "compute-ctl", "network-ctl", "nats", "postgres", "migrate"])
def test_a_regions_services_are_those_of_the_stack(name: str) -> None:
    """But for where they are, and that they know of other regions."""
    one, own = services_of(STACK)[name], {"networks", "volumes", "depends_on", "ports", "build", "healthcheck"}
    for region in REGIONS:
        other = services_of(OF_REGIONS)[f"{region}-{name}"]
        told = {key: value for key, value in other.get("environment", {}).items() if key in one.get("environment", {})}
        assert told == one.get("environment", {})
        assert {key: value for key, value in other.items() if key not in {*own, "environment", "tmpfs"}} == {
            key: value for key, value in one.items() if key not in {*own, "environment", "tmpfs"}
        }
        targets = [mount.split(":", 1)[1] for mount in other["volumes"]]
        assert targets == [mount.split(":", 1)[1] for mount in one["volumes"]]


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the hub has given to each region, by its name."""
    monkeypatch.setattr(os, "chown", lambda *_: None)
    script("hub").make(tmp_path / "hub", "hub", list(REGIONS), accept="default")
    return tmp_path / "hub" / "regions"


def test_the_hub_lets_each_region_in_and_its_server_has_no_secret_of_theirs(given: Path, tmp_path: Path) -> None:
    made = contents(given)
    files = {"hub.creds", "hub.pem", "regions.json"}
    assert {name: set(each) for name, each in made.items()} == dict.fromkeys(REGIONS, files)
    for region in REGIONS:
        assert claims_of(read_credentials(given / region / "hub.creds").jwt)["name"] == region
        peers = read_peers(given / region / "regions.json", region)
        assert {name: peer.accept for name, peer in peers.items()} == {
            other: ["default"] for other in REGIONS if other != region
        }
    tokens = {
        frozenset((region, name)): peer.token.get_secret_value()
        for region in REGIONS
        for name, peer in read_peers(given / region / "regions.json", region).items()
    }
    assert len(set(tokens.values())) == 3
    server = {file.name: file.read_text() for file in (tmp_path / "hub" / "server").iterdir()}
    assert set(server) == {"hub.pem", "nats-server.conf"}
    kept = [file.read_text().strip() for file in (tmp_path / "hub" / "private").rglob("*.seed")]
    assert kept
    assert not any(secret in text for secret in (*kept, *tokens.values()) for text in server.values())
    for path in (tmp_path / "hub").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.suffix == ".pem", path


def test_another_region_is_let_in_beside_those_that_there_are(given: Path, tmp_path: Path) -> None:
    before = contents(given)
    script("hub").make(tmp_path / "hub", "hub", [*REGIONS, "south"], accept="default")
    after = contents(given)
    for region in REGIONS:
        known, now = (json.loads(made[region].pop("regions.json"))["peers"] for made in (before, after))
        assert after[region] == before[region]
        assert now.pop("south")["accept"] == ["default"]
        assert now == known
    assert set(read_peers(given / "south" / "regions.json", "south")) == set(REGIONS)


def test_regions_of_several_owners_get_no_tokens_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "chown", lambda *_: None)
    script("hub").make(tmp_path, "hub.example.org", ["north", "east"])
    made = contents(tmp_path / "regions")
    assert {name: set(files) for name, files in made.items()} == {each: {"hub.creds", "hub.pem"} for each in made}
    assert set(made) == {"north", "east"}
    with pytest.raises(ValueError, match="no region's name"):
        script("hub").make(tmp_path, "hub.example.org", ["North"])


def test_a_cluster_that_is_a_region_has_its_federation_and_its_server_joins_the_hub(
    init: ModuleType, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (given / "north").iterdir():
        (tmp_path / "REGION" / file.name).write_text(file.read_text())
    monkeypatch.setenv("CES_REGION", "north")
    monkeypatch.setenv("CES_HUB_URL", "tls://hub:7422")
    init.main()
    made = contents(tmp_path / "OWN")
    assert {service: set(files) for service, files in made.items()} == KNOWN | {"federation": FEDERATION}
    assert set(read_peers(tmp_path / "OWN" / "federation" / "regions.json", "north")) == {"east", "west"}
    wire = claims_of(read_credentials(tmp_path / "OWN" / "federation" / "wire.creds").jwt)
    assert wire["name"] == "north"
    config = (tmp_path / "NATS" / "nats-server.conf").read_text()
    for part in ('urls: ["tls://hub:7422"]', "hub.creds", "hub.pem", wire["nats"]["issuer_account"], "domain: north"):
        assert part in config
    secret = read_credentials(given / "north" / "hub.creds").seed
    assert not any(secret in text for files in made.values() for text in files.values()), "its server's alone"
    init.main()
    assert contents(tmp_path / "OWN") == made
    assert (tmp_path / "NATS" / "nats-server.conf").read_text() == config


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
    for maker in (services_of(STACK)[MAKER], *(services_of(OF_REGIONS)[f"{region}-{MAKER}"] for region in REGIONS)):
        assert "FSETID" in maker["cap_add"], "without it the mode is dropped in silence"


def test_the_auditor_is_let_in_with_a_token_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a token's life later it gets another one, and the one before is refused."""
    bootstrap = script("bootstrap")
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
    assert given == [(file, 10016, 10016)]
    assert services_of(STACK)["auditor"]["user"] == "10016:10016"
    for left_days, role, number in ((366, Role.AUDITOR, 1), (364, Role.AUDITOR, 2), (729, Role.OPERATOR, 3)):
        ends = datetime.now(UTC) + timedelta(days=left_days)
        good = Identity(name=name, role=role, expires_at=ends)
        monkeypatch.setattr(bootstrap, "auditor_now", lambda _, good=good: good)
        bootstrap.admit_auditor(client)
        assert len(made) == number
    assert revoked == [name, name]
