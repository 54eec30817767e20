"""NATS by TLS: what a false broker in the true one's place gets, and what renewing certificates costs."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nats_identities import SOON
from nats_process import NatsServer, plain_config
from tls_server import HERE, certified, listening

from ces_common.bus import NatsBus
from ces_common.bus.nats_claims import AccountClaims
from ces_common.bus.port import AccessRefused, BusUnavailable
from ces_common.natsauth import init_trust, load_revocation_key, server_config
from ces_common.natsauth.jwt import claims_of
from ces_common.natsauth.trust import Trust
from ces_common.tls.certificates import renew
from ces_common.tls.pins import trusting

INFO = b'INFO {"server_id":"F","version":"2.11.0","max_payload":1048576,"auth_required":true,"nonce":"abc"%b}\r\n'
CLIENT_HELLO = 0x16  # the first byte of TLS


class Site:
    """A broker with a certificate, and who may come to it."""

    def __init__(self, folder: Path, names: tuple[str, ...] = HERE) -> None:
        self.trust: Trust = init_trust(folder / "trust")
        self.authority, self.file = certified(folder / "tls", names)
        config = server_config(self.trust, store_dir=folder / "store", port=-1, certificate=self.file)
        self.server = NatsServer(folder / "nats", config)
        self.tls = trusting(self.authority.pem)

    @property
    def url(self) -> str:
        return self.server.url.replace("nats://", "tls://")

    @property
    def claims(self) -> AccountClaims:
        return AccountClaims([self.url], load_revocation_key(self.trust.revocation_key_file), self.tls)

    def bus(self, url: str, tls: ssl.SSLContext | None = None, name: str = "roof-seventeen") -> NatsBus:
        credentials = self.trust.new_credentials("agent", name)
        return NatsBus(url, name=name, credentials=credentials, tls=tls or self.tls)

    def serial(self) -> str:
        """Of the certificate that the broker shows now."""
        with (
            socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2]))) as plain,
            self.tls.wrap_socket(plain, server_hostname="127.0.0.1") as shown,
        ):
            return str((shown.getpeercert() or {})["serialNumber"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@asynccontextmanager
async def connected(bus: NatsBus) -> AsyncIterator[NatsBus]:
    await bus.connect(deadline_s=SOON)
    try:
        yield bus
    finally:
        await bus.close()


@pytest.mark.parametrize("said", [b"", b',"tls_required":false', b',"tls_required":true'])
async def test_a_listener_in_the_brokers_place_hears_nothing_but_the_beginning_of_tls(site: Site, said: bytes) -> None:
    async with listening(INFO % said) as (port, listener):
        bus = site.bus(f"tls://127.0.0.1:{port}")
        with pytest.raises(BusUnavailable):
            await bus.connect(deadline_s=3)
        await bus.close()
    heard = b"".join(listener.heard)
    assert heard[0] == CLIENT_HELLO
    for secret in (b"CONNECT", b"jwt", b"roof-seventeen", b"sig"):
        assert secret not in heard


async def test_a_bare_broker_in_the_true_ones_place_lets_nobody_in(site: Site, tmp_path: Path) -> None:
    """The attack that once had a device run programs: it needs no more than to be asked."""
    with NatsServer(tmp_path / "bare", plain_config(tmp_path / "bare-store")) as bare:
        bus = site.bus(bare.url.replace("nats://", "tls://"))
        with pytest.raises(BusUnavailable):
            await bus.connect(deadline_s=3)
        assert not bus.connected
        await bus.close()


async def test_a_broker_of_another_authority_lets_nobody_in(site: Site, tmp_path: Path) -> None:
    """It even trusts the very same identities."""
    _, file = certified(tmp_path / "false")
    config = server_config(site.trust, store_dir=tmp_path / "false-store", port=-1, certificate=file)
    with NatsServer(tmp_path / "false-nats", config) as false:
        bus = site.bus(false.url.replace("nats://", "tls://"))
        with pytest.raises(BusUnavailable):
            await bus.connect(deadline_s=3)
        await bus.close()


async def test_a_certificate_for_another_name_is_not_enough(tmp_path: Path) -> None:
    site = Site(tmp_path, names=("elsewhere",))
    with site.server:
        bus = site.bus(site.url)
        with pytest.raises(BusUnavailable):
            await bus.connect(deadline_s=3)
        await bus.close()


async def test_nobody_talks_to_it_in_the_clear(site: Site) -> None:
    with site.server:
        bus = NatsBus(site.server.url, name="n1", credentials=site.trust.new_credentials("agent", "n1"))
        with pytest.raises(BusUnavailable):
            await bus.connect(deadline_s=3)
        await bus.close()


async def test_a_renewed_certificate_is_taken_up_and_nobody_is_disconnected(site: Site) -> None:
    with site.server:
        async with connected(site.bus(site.url)) as bus:
            lost = asyncio.Event()

            async def back() -> None:
                lost.set()

            bus.on_reconnect(back)
            before = site.serial()
            assert renew(site.file, site.authority, HERE, timedelta(days=30), datetime.now(UTC))
            assert site.serial() == before, "it has not been told yet"
            await site.claims.reload()
            assert site.serial() != before
            await bus._connection.flush()
            assert bus.connected
            assert not lost.is_set()
        async with connected(site.bus(site.url)):
            pass


async def test_who_was_refused_stays_refused_when_the_broker_reads_its_files_again(site: Site) -> None:
    credentials = site.trust.new_credentials("agent", "n1")
    with site.server:
        assert await site.claims.revoke([str(claims_of(credentials.jwt)["sub"])])
        await site.claims.reload()
        bus = NatsBus(site.url, name="n1", credentials=credentials, tls=site.tls)
        with pytest.raises(AccessRefused):
            await bus.connect(deadline_s=SOON)
        await bus.close()


async def test_a_broker_that_says_nothing_is_given_up_and_left(site: Site) -> None:
    """Half a beginning of TLS must keep nobody for ever, neither from trying again nor from ending."""
    async with listening(b"") as (port, listener):
        bus = site.bus(f"tls://127.0.0.1:{port}")
        async with asyncio.timeout(SOON):
            with pytest.raises(BusUnavailable):
                await bus.connect(deadline_s=5)
            await bus.close()
    assert listener.heard
