"""python -m ces_manager"""

from __future__ import annotations

import asyncio

import structlog

from ces_common.bus.nats_claims import AccountClaims
from ces_common.connecting import bus_from
from ces_common.db import UNAVAILABLE, UnitOfWork, cause_of, migrate, new_engine
from ces_common.health import serve_http
from ces_common.natsauth import load_revocation_key, load_signing_key
from ces_common.queuefile import read_queue
from ces_common.service import BadSetup, run_loops, run_service
from ces_manager.api.app import make_app
from ces_manager.api.auth import read_secret
from ces_manager.api.context import Context
from ces_manager.api.streams import Bell
from ces_manager.desk import Desk
from ces_manager.live_queue import LiveQueue
from ces_manager.liveness import Vigil
from ces_manager.measurements import Measurements
from ces_manager.messaging import SERVICE, Messaging
from ces_manager.policy import Policy
from ces_manager.probing import Probing
from ces_manager.pruning import cutoffs, has_aged, prune
from ces_manager.relay import Relay
from ces_manager.revoking import Revoking
from ces_manager.settings import ManagerSettings
from ces_manager.ticking import tick

log = structlog.get_logger()
DATABASE_RETRY_S = 1.0


async def run(settings: ManagerSettings, stop: asyncio.Event) -> None:
    token = read_secret(settings.admin_token_file, "CES_ADMIN_TOKEN_FILE")
    read_secret(settings.agent_signing_key_file, "CES_AGENT_SIGNING_KEY_FILE")  # that others cannot read it
    try:
        signing_key = load_signing_key(settings.agent_signing_key_file)
    except ValueError as error:
        raise BadSetup(f"CES_AGENT_SIGNING_KEY_FILE: {error}") from error
    claims, queue = claims_from(settings), read_queue(settings.queue)
    if settings.migrate:
        await migrated(settings.database_url)
    policy = settings.policy()
    uow = UnitOfWork(new_engine(settings.database_url))
    bus = bus_from(settings, SERVICE)
    desk, bell, measurements, vigil = Desk(uow), Bell(), Measurements(), Vigil()
    relay, revoking = Relay(uow, bus), Revoking(desk, claims)
    desk.on_commit(relay.hint.set)
    desk.on_commit(bell.ring)
    messaging = Messaging(desk, bus, policy, measurements, bell, queue)
    context = Context(
        desk=desk,
        bus=bus,
        policy=policy,
        measurements=measurements,
        vigil=vigil,
        revoking=revoking,
        probing=Probing(desk, bus),
        bell=bell,
        queue=queue,
        live_queue=LiveQueue(bus, desk.clock.steady),
        agent_signing_key=signing_key,
        agents_nats_urls=settings.agents_nats_urls,
    )
    started = asyncio.Event()

    def missing() -> str | None:
        if not started.is_set():
            return "the first connection to the bus"
        if not desk.database_answers:
            return "the database"
        return None if bus.connected else "the bus"

    async def work() -> None:
        await bus.connect()
        bus.on_reconnect(messaging.keep_streams)
        bus.on_reconnect(revoking.reconnected)
        await messaging.start()
        started.set()
        await relay.run()

    app = make_app(context, token, missing)
    async with serve_http(app, settings.http_host, settings.http_port):
        try:
            await run_loops(
                stop, work(), let_time_pass(desk, policy, vigil, measurements, settings.tick_s), revoking.run()
            )
        finally:
            context.stopping.set()
            bell.ring()
    await bus.close()
    desk.close()


def claims_from(settings: ManagerSettings) -> AccountClaims | None:
    """Raises BadSetup where the revocation key cannot be used."""
    path = settings.revocation_key_file
    if path is None:
        log.warning("CES_REVOCATION_KEY_FILE is not set: the credentials of forgotten nodes stay good")
        return None
    read_secret(path, "CES_REVOCATION_KEY_FILE")
    try:
        return AccountClaims(settings.nats_urls, load_revocation_key(path))
    except ValueError as error:
        raise BadSetup(f"CES_REVOCATION_KEY_FILE: {error}") from error


async def migrated(url: str) -> None:
    """Bring the schema up to date, waiting for a database that is not there yet."""
    while True:
        try:
            await asyncio.to_thread(migrate, url)
            return
        except UNAVAILABLE as error:
            log.warning("waiting for the database", error=cause_of(error))
            await asyncio.sleep(DATABASE_RETRY_S)


async def let_time_pass(desk: Desk, policy: Policy, vigil: Vigil, measurements: Measurements, every_s: float) -> None:
    """Let time have its effects: silent nodes, ended leases, missed deadlines, old history."""
    while True:
        try:
            due = await desk.in_writer(lambda: tick(desk.uow, policy, vigil, desk.clock))
            if due:
                log.warning("due", silent=due.silent, lost=due.lost, late={job: it.why for job, it in due.late.items()})
                desk.committed()
            await drop_history(desk, policy)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))
        measurements.forget_old(desk.clock.now())
        await asyncio.sleep(every_s)


async def drop_history(desk: Desk, policy: Policy) -> None:
    """One step of it, where anything is old enough."""
    cut = cutoffs(desk.clock.dated(), policy)
    if await desk.read(lambda tx: has_aged(tx, cut)):
        dropped = await desk.in_writer(lambda: prune(desk.uow, cut, policy, desk.clock.now()))
        log.info("history dropped", rows=dropped)


if __name__ == "__main__":
    run_service(SERVICE, ManagerSettings, run)
