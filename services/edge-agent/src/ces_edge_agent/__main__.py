"""python -m ces_edge_agent"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: run_service looks for garbage from then on

import asyncio
import os
from typing import assert_never

import structlog

from ces_common import subjects
from ces_common.bus.port import BusError
from ces_common.connection import bus_from
from ces_common.health import health_app, serve_http
from ces_common.messages.traces import AGENT
from ces_common.runtime import RuntimeKind
from ces_common.service import run_loops, run_service
from ces_common.setup_files import metrics_token
from ces_common.trace_shipping import ship_spans
from ces_edge_agent.agent import Agent
from ces_edge_agent.card_sharing import kept_by
from ces_edge_agent.cards import NO_CARDS, MachineCards, machine_cards
from ces_edge_agent.energy.account import Account
from ces_edge_agent.energy.meters import found_meter
from ces_edge_agent.enrolment import ensure_joined, manager_trust
from ces_edge_agent.lease import machine_clocks
from ces_edge_agent.ports import Network, Runtime
from ces_edge_agent.renewal import Renewal
from ces_edge_agent.settings import AgentSettings

log = structlog.get_logger()
SERVICE = "edge-agent"
RETRY_S = 5.0


def make_runtime(settings: AgentSettings, cards: MachineCards = NO_CARDS) -> Runtime:
    """The runtime that ``CES_RUNTIME`` names; it is not opened yet."""
    match settings.runtime:
        case RuntimeKind.DOCKER:
            from ces_edge_agent.runtimes.docker import DockerRuntime

            return DockerRuntime(
                settings.state_dir,
                settings.node,
                cluster=settings.cluster,
                sandbox_image=settings.sandbox_image,
                allowed_images=settings.allowed_images,
                pull=settings.pull_images,
                disk=settings.worker_disk,
                lent=settings.lent,
                cards=cards,
            )
        case RuntimeKind.PROCESS:
            from ces_edge_agent.runtimes.process import ProcessRuntime
            from ces_edge_agent.runtimes.worker_users import parse_uids

            return ProcessRuntime(
                settings.state_dir,
                settings.node,
                isolate=settings.network == "tc",
                cluster=settings.cluster,
                hide=[*settings.hide, *([settings.datasets] if settings.datasets else [])],
                uids=parse_uids(settings.worker_uids),
                disk=settings.worker_disk,
                lent=settings.lent,
                cards=cards,
            )
        case _:
            assert_never(settings.runtime)


def make_network(settings: AgentSettings) -> Network:
    if settings.network == "tc":
        from ces_edge_agent.dataplane.tc_network import TcNetwork
        from ces_edge_agent.dataplane.wireguard.tunnels import TunnelSettings

        keys = settings.state_dir / "link-keys.json"
        tunnels = TunnelSettings(keys, settings.wireguard_port, settings.link_key_days * 86400)
        return TcNetwork(settings.node, settings.data_plane, tunnels=tunnels)
    from ces_edge_agent.dataplane.none import NoNetwork

    return NoNetwork(settings.node)


def energy_account(settings: AgentSettings) -> Account | None:
    """None where nothing tells how much energy the node uses."""
    meter = found_meter(settings.power_model, settings.powercap)
    if meter is None:
        log.info("the node's energy is unknown: nothing measures it, and CES_POWER_IDLE and CES_POWER_PEAK are not set")
        return None
    log.info("the node's energy is told", meter=meter.name, source=meter.source)
    whole = max(settings.node_cpu, 1000 * (os.cpu_count() or 1))  # it may offer only a part of itself
    return Account(meter, whole, settings.idle_watts)


async def run(settings: AgentSettings, stop: asyncio.Event) -> None:
    token = metrics_token(settings)
    cards = await asyncio.to_thread(machine_cards, settings.gpu_fake)
    confined = settings.network == "tc" or os.geteuid() == 0  # root gives each worker a user and a /tmp of its own
    kept = kept_by(same_root=settings.runtime is RuntimeKind.PROCESS, confined=confined)
    offered = cards.offered(settings.node_gpu, shares=settings.gpu_shares, kept=kept)
    membership = await ensure_joined(settings, offered)
    runtime, network = make_runtime(settings, cards), make_network(settings)
    await runtime.open()
    await network.open()
    told = {
        "nats_urls": membership.urls(),
        "nats_creds": membership.credentials,
        "ca": settings.ca or membership.authority,
    }
    bus = bus_from(settings.model_copy(update=told), settings.node)
    clocks = machine_clocks()
    account = await asyncio.to_thread(energy_account, settings)
    agent = Agent(settings, bus, runtime, network, clocks, membership.held().seed, account)
    checked = manager_trust(settings, membership)
    renewal = Renewal(bus, membership, settings.node, settings.manager_url, checked, clocks.steady)
    try:
        app = health_app(SERVICE, agent.missing, token)
        async with serve_http(app, settings.http_host, settings.http_port):
            spans = ship_spans(bus, subjects.spans(settings.node), AGENT)
            await run_loops(stop, agent.reconcile(), communicate(agent), renewal.run(), spans)
    finally:
        await bus.close()
        agent.close()
        await network.close()
        await runtime.close()


async def communicate(agent: Agent) -> None:
    """Try again when the bus refuses this node, while reconciling goes on within the lease."""
    while True:
        try:
            await agent.communicate()
        except BusError as error:
            log.error("the bus refuses this node", error=str(error))
        await asyncio.sleep(RETRY_S)


if __name__ == "__main__":
    run_service(SERVICE, AgentSettings, run)
