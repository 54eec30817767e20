"""Who is let in on a real server, who stays out, and who is thrown out again."""

from __future__ import annotations

import asyncio
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from nats_identities import SOON, Cluster, Enter, nothing, send_and_see
from nats_process import NatsServer

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.nats_claims import AccountClaims
from ces_common.bus.port import AccessRefused, Bus, BusError, BusUnavailable, NoResponder
from ces_common.natsauth import (
    REVOKER,
    SERVICES,
    Credentials,
    init_trust,
    issue_user,
    load_revocation_key,
    load_signing_key,
    new_user_key,
    read_credentials,
    save_credentials,
    server_config,
)
from ces_common.natsauth.jwt import claims_of, revoking
from ces_common.natsauth.keys import BadKey, Kind, new_seed, public_key
from ces_common.subjects import BadName


async def refused(cluster: Cluster, credentials: Credentials | None, name: str = "n1") -> None:
    bus = NatsBus(cluster.server.url, name=name, credentials=credentials)
    with pytest.raises(AccessRefused):
        await bus.connect(deadline_s=SOON)
    assert not bus.connected
    await bus.close()


async def test_nobody_gets_in_without_credentials(cluster: Cluster) -> None:
    await refused(cluster, None)


async def test_a_jwt_needs_its_own_seed(cluster: Cluster) -> None:
    good = cluster.trust.new_credentials("agent", "n1")
    await refused(cluster, Credentials(jwt=good.jwt, seed=new_user_key().seed))


async def test_a_tampered_jwt_is_refused(cluster: Cluster) -> None:
    good = cluster.trust.new_credentials("agent", "n1")
    other = cluster.trust.new_credentials("agent", "n2")
    (header, _, signature), (_, body, _) = good.jwt.split("."), other.jwt.split(".")
    await refused(cluster, Credentials(jwt=f"{header}.{body}.{signature}", seed=other.seed), "n2")


async def test_a_jwt_of_a_foreign_cluster_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    foreign = init_trust(tmp_path / "foreign")
    await refused(cluster, foreign.new_credentials("agent", "n1"))
    key = new_user_key()
    forged = load_signing_key(foreign.signing_key_file("agent"))
    claimed = type(forged)(role="agent", account=cluster.trust.account, seed=forged.seed)
    await refused(cluster, Credentials(jwt=issue_user(claimed, "n1", key.public), seed=key.seed))


async def test_the_agents_signing_key_makes_agents_only(cluster: Cluster, enter: Enter) -> None:
    fake = await enter("agent", "managers")
    assert await send_and_see(fake, subjects.heartbeat("managers")) is True
    assert await send_and_see(fake, subjects.event("job", "submitted", "j")) is False
    with pytest.raises(AccessRefused):
        await fake.subscribe(subjects.rpc("manager", "snapshot"), nothing)


async def test_a_node_joins_with_a_key_that_never_leaves_it(cluster: Cluster, tmp_path: Path) -> None:
    node_key = new_user_key()  # on the node
    signing_key = load_signing_key(cluster.trust.signing_key_file("agent"))  # all that the manager has
    jwt = issue_user(signing_key, "edge-7", node_key.public)
    assert node_key.seed not in jwt
    file = tmp_path / "edge-7.creds"
    save_credentials(file, Credentials(jwt=jwt, seed=node_key.seed))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bus: Bus = NatsBus(cluster.server.url, name="edge-7", credentials=read_credentials(file))
    await bus.connect(deadline_s=SOON)
    assert bus.connected
    await bus.close()


@pytest.mark.parametrize("name", ["*", ">", "a.b", "", "{{name()}}", "a b"])
def test_no_user_is_issued_for_a_name_that_is_more_than_a_name(cluster: Cluster, name: str) -> None:
    with pytest.raises(BadName):
        issue_user(cluster.trust.signing_key("agent"), name, new_user_key().public)


@pytest.mark.parametrize("name", [*SERVICES, REVOKER])
def test_no_node_goes_by_the_name_of_a_service_whose_inbox_it_would_hear(cluster: Cluster, name: str) -> None:
    with pytest.raises(BadName, match="call the node otherwise"):
        issue_user(cluster.trust.signing_key("agent"), name, new_user_key().public)


def test_no_user_is_issued_for_what_is_no_users_key(cluster: Cluster) -> None:
    good = new_user_key().public
    account = public_key(new_seed(Kind.ACCOUNT))
    damaged = good[:-1] + ("A" if good[-1] != "A" else "B")
    for bad in ("", "nonsense", account, new_user_key().seed, good[:-8], damaged):
        with pytest.raises(BadKey):
            issue_user(cluster.trust.signing_key("agent"), "n1", bad)


def test_secrets_are_for_their_owner_only_and_shown_to_nobody(cluster: Cluster) -> None:
    files = list(cluster.trust.directory.iterdir())
    assert len(files) == 11
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(cluster.trust.directory.stat().st_mode) == 0o700
    shown = server_config(cluster.trust, store_dir="/store")
    for role in ("agent", "manager"):
        key, credentials = cluster.trust.signing_key(role), cluster.trust.new_credentials(role, "x")
        assert key.seed not in repr(key)
        assert credentials.seed not in repr(credentials)
        assert key.seed not in shown
    revocation = load_revocation_key(cluster.trust.revocation_key_file)
    assert revocation.signing_seed not in repr(revocation) + shown
    assert revocation.credentials.seed not in repr(revocation) + shown


async def test_making_the_trust_again_keeps_every_credential_valid(cluster: Cluster, tmp_path: Path) -> None:
    first = init_trust(tmp_path / "trust")
    credentials = first.new_credentials("agent", "n1")
    again = init_trust(tmp_path / "trust")
    assert (again.account, again.system_account) == (first.account, first.system_account)
    with NatsServer(tmp_path / "server", server_config(again, store_dir=tmp_path / "store", port=-1)) as server:
        bus = NatsBus(server.url, name="n1", credentials=credentials)
        await bus.connect(deadline_s=SOON)
        with pytest.raises(NoResponder):  # there is no manager, but it is let in
            await bus.request(subjects.fetch("n1", "compute"))
        await bus.close()


def user_key(credentials: Credentials) -> str:
    return str(claims_of(credentials.jwt)["sub"])


async def test_a_revoked_user_is_thrown_out_and_stays_out(tmp_path: Path) -> None:
    trust = init_trust(tmp_path / "trust")
    claims_key = load_revocation_key(trust.revocation_key_file)
    config = server_config(trust, store_dir=tmp_path / "store", port=-1)
    gone, stays = (trust.new_credentials("agent", name) for name in ("n1", "n2"))
    with NatsServer(tmp_path / "server", config) as server:
        for credentials, name in ((gone, "n1"), (stays, "n2")):
            await admitted(server, credentials, name)
        connected = NatsBus(server.url, name="n1", credentials=gone)
        await connected.connect(deadline_s=SOON)
        claims = AccountClaims([server.url], claims_key)
        assert await claims.revoke([user_key(gone)]) is True
        await until_thrown_out(connected)
        await connected.close()
        assert await claims.revoke([user_key(gone)]) is False, "the servers know it"
        server.stop()
        server.start()  # with the configuration that knows nothing of it
        with pytest.raises(AccessRefused):
            await admitted(server, gone, "n1")
        await admitted(server, stays, "n2")
        await admitted(server, trust.new_credentials("agent", "n1"), "n1")  # the name is not what was refused
        others = [user_key(trust.new_credentials("agent", "n3")) for _ in range(500)]
        assert await claims.revoke(others) is True, "the list outgrows what other messages are compressed for"
        with pytest.raises(AccessRefused):
            await admitted(server, gone, "n1")
    again = init_trust(tmp_path / "trust")
    assert again.account_jwt == trust.account_jwt, "a new one would be newer than the one with the revocations"
    with NatsServer(tmp_path / "server", server_config(again, store_dir=tmp_path / "store", port=-1)) as server:
        with pytest.raises(AccessRefused):
            await admitted(server, gone, "n1")
        await admitted(server, stays, "n2")


async def until_thrown_out(bus: NatsBus) -> None:
    async with asyncio.timeout(SOON):
        with suppress(BusUnavailable):
            while True:
                with suppress(NoResponder):
                    await bus.request(subjects.heartbeat("n1"))


async def admitted(server: NatsServer, credentials: Credentials, name: str) -> None:
    bus = NatsBus(server.url, name=name, credentials=credentials)
    await bus.connect(deadline_s=SOON)
    await bus.close()


async def test_who_may_revoke_may_do_nothing_else(cluster: Cluster) -> None:
    key = load_revocation_key(cluster.trust.revocation_key_file)
    bus = NatsBus(cluster.server.url, name="revoker", credentials=key.credentials)
    await bus.connect(deadline_s=SOON)
    account = f"$SYS.REQ.ACCOUNT.{cluster.trust.account}"
    assert claims_of((await bus.request(f"{account}.CLAIMS.LOOKUP")).decode())["sub"] == cluster.trust.account
    for subject in (
        f"$SYS.REQ.ACCOUNT.{cluster.trust.system_account}.CLAIMS.UPDATE",
        "$SYS.REQ.CLAIMS.UPDATE",
        "$SYS.REQ.CLAIMS.DELETE",
        f"{account}.CONNZ",
        "$SYS.REQ.SERVER.PING",
    ):
        with pytest.raises(AccessRefused):
            await bus.request(subject)
    for subject in ("$SYS.ACCOUNT.>", "$SYS.>"):
        with pytest.raises(AccessRefused):
            await bus.subscribe(subject, nothing)
    await bus.close()


async def test_a_key_that_the_server_does_not_trust_spoils_nothing(cluster: Cluster) -> None:
    key = load_revocation_key(cluster.trust.revocation_key_file)
    other = type(key)(account=key.account, signing_seed=new_seed(Kind.OPERATOR), credentials=key.credentials)
    with pytest.raises(BusError, match="another key signed it"):
        await AccountClaims([cluster.server.url], other).revoke([new_user_key().public])
    bystander = cluster.trust.new_credentials("agent", "n1")
    await admitted(cluster.server, bystander, "n1")


def test_revoking_makes_the_account_newer_whatever_the_clock_says(cluster: Cluster) -> None:
    key = load_revocation_key(cluster.trust.revocation_key_file)
    first = revoking(cluster.trust.account_jwt, key.signing_seed, ["U1"])
    assert first is not None
    second = revoking(first, key.signing_seed, ["U2"])
    assert second is not None
    issued = [claims_of(token)["iat"] for token in (cluster.trust.account_jwt, first, second)]
    assert issued == sorted(set(issued))
    assert set(claims_of(second)["nats"]["revocations"]) == {"U1", "U2"}
    assert claims_of(second)["nats"]["signing_keys"] == claims_of(cluster.trust.account_jwt)["nats"]["signing_keys"]
    assert revoking(second, key.signing_seed, ["U1"]) is None
    with pytest.raises(ValueError, match="not a JWT"):
        revoking("nonsense", key.signing_seed, ["U1"])
