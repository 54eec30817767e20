"""python -m ces_manager"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: run_service looks for garbage from then on

import asyncio
import socket
from collections.abc import Callable

import structlog

from ces_common.bus.nats_claims import AccountClaims
from ces_common.connection import bus_from, tls_from
from ces_common.db import UNAVAILABLE, UnitOfWork, cause_of, migrate, new_engine
from ces_common.health import serve_http
from ces_common.natsauth import load_revocation_key, load_signing_key
from ces_common.queuefile import QueueFile, read_queue
from ces_common.service import BadSetup, run_loops, run_service
from ces_common.setup_files import metrics_token, read_secret, read_setup_file
from ces_common.tls.pins import secret_of
from ces_manager.access.grants import GrantsFile, check_tenants
from ces_manager.access.identities import Identities
from ces_manager.access.provider import Provider
from ces_manager.adjusting.keeper import SelfAdjuster
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.availability.notes import learn_repeatedly
from ces_manager.broadcast import Broadcast
from ces_manager.certificates import certificates_from
from ces_manager.clock import Clock
from ces_manager.database import Database
from ces_manager.duties import HISTORY, PROBE, RELAY, TIME, Duties
from ces_manager.energy.notes import note_energy_repeatedly
from ces_manager.job_secrets.keys import SecretKeys, parse_keys
from ces_manager.job_secrets.store import has_former, reseal
from ces_manager.jobs.speed_notes import note_repeatedly
from ces_manager.measurements import Measurements
from ces_manager.messaging.controllers import hear_controllers
from ces_manager.messaging.handlers import SERVICE, Messaging
from ces_manager.messaging.peers import Peers
from ces_manager.messaging.region_requests import RegionRequests
from ces_manager.messaging.relay import Relay
from ces_manager.messaging.renewals import serve_renewals
from ces_manager.messaging.secret_requests import serve_secrets
from ces_manager.messaging.span_intake import SpanIntake
from ces_manager.messaging.split_requests import SplitRequests
from ces_manager.messaging.streams import StreamKeeper
from ces_manager.network.prober import Prober
from ces_manager.nodes.credentials import Issuer
from ces_manager.nodes.expiry import LOST_AT_ONCE, expire, observe
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.nodes.hearing_clock import HearingClock
from ces_manager.nodes.revocation import Revoker
from ces_manager.queue.live import LiveQueue
from ces_manager.regions.hold_ends import end_holds
from ces_manager.replay.keyframes import keep_repeatedly
from ces_manager.retention import cutoffs, has_aged, prune
from ces_manager.settings import ManagerSettings
from ces_manager.span_export import export_from
from ces_manager.timeouts import DAY_S, Timeouts
from ces_manager.work.notes import note_work_repeatedly

log = structlog.get_logger()
DATABASE_RETRY_S = 1.0
LISTEN_S = 0.25
PRUNING_SHARE = 0.5  # of the time between two looks at what is due


def _provider(settings: ManagerSettings, queue: QueueFile) -> Provider | None:
    """Raises BadSetup."""
    if settings.oidc_issuer is None or settings.oidc_grants is None:
        return None
    grants = read_setup_file(settings.oidc_grants, GrantsFile, "CES_OIDC_GRANTS")
    check_tenants(grants, queue)
    try:
        return Provider(settings.oidc_issuer, settings.oidc_audience, grants, ca=settings.oidc_ca)
    except OSError as error:
        raise BadSetup(f"CES_OIDC_CA: {settings.oidc_ca} cannot be read: {error}") from error


async def run(settings: ManagerSettings, stop: asyncio.Event) -> None:
    token, of_metrics = read_secret(settings.admin_token_file, "CES_ADMIN_TOKEN_FILE"), metrics_token(settings)
    read_secret(settings.agent_signing_key_file, "CES_AGENT_SIGNING_KEY_FILE")  # that others cannot read it
    try:
        signing_key = load_signing_key(settings.agent_signing_key_file)
    except ValueError as error:
        raise BadSetup(f"CES_AGENT_SIGNING_KEY_FILE: {error}") from error
    issuer = Issuer(signing_key, settings.credential_days * DAY_S)
    claims, secret_keys, queue = claims_from(settings), secret_keys_from(settings), read_queue(settings.queue)
    if settings.migrate:
        await migrated(settings.database_url)
    timeouts = settings.timeouts()
    uow = UnitOfWork(new_engine(settings.database_url))
    bus = bus_from(settings, SERVICE, replicas=settings.nats_replicas)
    certificates = certificates_from(settings, claims)
    streams = StreamKeeper(bus, settings.tick_s)
    export = export_from() if settings.trace_ratio else None
    database, broadcast, measurements, hearing = Database(uow), Broadcast(), Measurements(), HearingClock()
    failure_detector = FailureDetector(hearing.seconds)
    started = asyncio.Event()

    def missing() -> str | None:
        if not started.is_set():
            return "the first connection to the bus"
        if not database.answers:
            return "the database"
        return None if bus.connected else "the bus"

    duties = Duties(database, f"{socket.gethostname()}:{settings.http_port}", lambda: missing() is None)
    relay, revoker = Relay(uow, bus, lambda: duties.holds(RELAY)), Revoker(database, claims)
    peers = Peers(bus, duties.me.process, database.clock.steady)
    for hint in (relay.hint.set, broadcast.wake, peers.hint.set):
        database.on_commit(hint)
    duties.on_taken(relay.hint.set)
    messaging = Messaging(database, bus, timeouts, failure_detector, measurements, broadcast, queue, peers.share)
    spans = SpanIntake(database, export)
    context = Context(
        database=database,
        bus=bus,
        timeouts=timeouts,
        measurements=measurements,
        failure_detector=failure_detector,
        revoker=revoker,
        prober=Prober(database, bus, lambda: duties.turn(PROBE)),
        broadcast=broadcast,
        queue=queue,
        live_queue=LiveQueue(bus, database.clock.steady),
        issuer=issuer,
        identities=Identities(database, secret_of(token), _provider(settings, queue)),
        secret_keys=secret_keys,
        agents_nats_urls=settings.agents_nats_urls,
        trace_ratio=settings.trace_ratio,
        address_block=settings.address_block,
        region=settings.region,
        max_applicants=settings.max_applicants,
        authority=certificates.authority if certificates is not None else None,
    )

    def news() -> None:
        """Another manager may have committed something."""
        relay.hint.set()
        broadcast.wake()

    async def reconnected() -> None:
        await revoker.reconnected()
        duties.hint.set()

    async def work() -> None:
        await bus.connect()
        bus.on_reconnect(reconnected)
        await hear_controllers(bus, failure_detector)
        await serve_renewals(bus, database, issuer, SERVICE)
        await serve_secrets(bus, database, secret_keys, SERVICE)
        await spans.serve(bus)
        if settings.region is not None:
            await RegionRequests(bus, database, context.live_queue, queue, measurements).serve()
            await SplitRequests(bus, database, queue, settings.address_block).serve()
        await peers.start(news, lambda beat: measurements.heard(beat, database.clock.now()))
        await messaging.start(streams.made)
        started.set()
        duties.hint.set()
        loops = [relay.run(), peers.run()]
        if secret_keys is not None:
            loops.append(resealed(database, secret_keys))
        await asyncio.gather(*loops)

    async def keep_streams() -> None:
        await started.wait()
        await streams.run()

    app = make_app(
        context, missing, ui=settings.ui, metrics_token=of_metrics, metrics_of_links=settings.metrics_of_links
    )
    tls = certificates.tls if certificates is not None else None
    async with serve_http(app, settings.http_host, settings.http_port, tls):
        try:
            await run_loops(
                stop,
                work(),
                keep_streams(),
                listen(hearing, messaging.hears, database.clock),
                duties.run(),
                expire_repeatedly(database, timeouts, failure_detector, measurements, duties, settings.tick_s),
                revoker.run(),
                spans.run(),
                note_repeatedly(database, measurements.speeds, duties),
                note_energy_repeatedly(database, measurements.energy, duties),
                note_work_repeatedly(database, measurements.work, duties),
                learn_repeatedly(database, hearing.seconds, failure_detector.nodes.age, timeouts, duties),
                keep_repeatedly(database, duties),
                SelfAdjuster(database, bus, measurements, lambda: duties.holds(TIME)).run(),
                *([certificates.run()] if certificates is not None else []),
                *([end_holds(database, duties)] if settings.region is not None else []),
            )
        finally:
            context.stop()
    await duties.give_up()
    await spans.flush()
    await bus.close()
    database.close()
    if export is not None:
        await asyncio.to_thread(export.close)


def claims_from(settings: ManagerSettings) -> AccountClaims | None:
    """Raises BadSetup where the revocation key cannot be used."""
    path = settings.revocation_key_file
    if path is None:
        log.warning("CES_REVOCATION_KEY_FILE is not set: credentials of forgotten and replaced devices stay good")
        return None
    read_secret(path, "CES_REVOCATION_KEY_FILE")
    try:
        return AccountClaims(settings.nats_urls, load_revocation_key(path), tls_from(settings))
    except ValueError as error:
        raise BadSetup(f"CES_REVOCATION_KEY_FILE: {error}") from error


def secret_keys_from(settings: ManagerSettings) -> SecretKeys | None:
    """Raises BadSetup where they cannot be used."""
    path = settings.secrets_key_file
    if path is None:
        return None
    try:
        return parse_keys(read_secret(path, "CES_SECRETS_KEY_FILE"))
    except ValueError as error:
        raise BadSetup(f"CES_SECRETS_KEY_FILE: {path}: {error}") from error


async def resealed(database: Database, keys: SecretKeys) -> None:
    """Have the first key encrypt all secrets, waiting for a database that is away."""
    while True:
        try:
            if await database.read(lambda tx: has_former(tx, keys)):
                count = await database.write(lambda tx: reseal(tx, keys))
                log.info("secrets are encrypted with another key now: the first in its file", count=count)
            return
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))
            await asyncio.sleep(DATABASE_RETRY_S)


async def migrated(url: str) -> None:
    """Bring the schema up to date, waiting for a database that is not there yet."""
    while True:
        try:
            await asyncio.to_thread(migrate, url)
            return
        except UNAVAILABLE as error:
            log.warning("waiting for the database", error=cause_of(error))
            await asyncio.sleep(DATABASE_RETRY_S)


async def listen(hearing: HearingClock, hears: Callable[[], bool], clock: Clock) -> None:
    """Note all the time whether nodes can be heard."""
    while True:
        hearing.look(clock.steady(), hears())
        await asyncio.sleep(LISTEN_S)


async def expire_repeatedly(
    database: Database,
    timeouts: Timeouts,
    failure_detector: FailureDetector,
    measurements: Measurements,
    duties: Duties,
    every_s: float,
) -> None:
    """Let time have its effects: silent nodes, ended leases, missed deadlines, old history. A manager that does not
    hold these duties observes all the same: by what it has seen it judges once it has taken them over."""
    while True:
        try:
            if duties.holds(TIME):
                due = await database.in_writer(lambda: expire(database.uow, timeouts, failure_detector, database.clock))
                if due:
                    late = {job: it.why for job, it in due.late.items()}
                    log.warning("due", silent=due.silent, lost=due.lost, late=late)
                    database.committed()
                if len(due.lost) == LOST_AT_ONCE:  # there may be more
                    continue
            else:
                await database.in_writer(lambda: observe(database.uow, timeouts, failure_detector))
            if duties.holds(HISTORY):
                await drop_history(database, timeouts, every_s * PRUNING_SHARE)
        except UNAVAILABLE as error:
            log.warning("the database does not answer", error=cause_of(error))
        measurements.forget_old(database.clock.now())
        await asyncio.sleep(every_s)


async def drop_history(database: Database, timeouts: Timeouts, within_s: float) -> None:
    """Step by step until nothing is old enough, or ``within_s`` seconds have passed; others write in between."""
    steady, dropped = database.clock.steady, 0
    until, cut = steady() + within_s, cutoffs(database.clock.dated(), timeouts)
    while await database.read(lambda tx: has_aged(tx, cut)):
        dropped += await database.in_writer(lambda: prune(database.uow, cut, timeouts, database.clock.now()))
        if steady() >= until:
            break
    if dropped:
        log.info("history dropped", rows=dropped)


if __name__ == "__main__":
    run_service(SERVICE, ManagerSettings, run)
