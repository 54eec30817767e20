"""Lists as tables: jobs, nodes, links, probes of links, the queue; and one node in full."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.availability import availability_text
from ces_client.view.cards import card_text
from ces_client.view.confinement import confinement_text
from ces_client.view.deadline import deadline_text
from ces_client.view.energy import energy_text
from ces_client.view.formats import DASH, cpu_share, memory_share, moment, rate, since, state_text
from ces_client.view.queue_status import dominant_part, job_names, reason_text, start_text
from ces_client.view.scores import category_text, level_text, raw_text
from ces_client.view.tables import fact_list, plain_table
from ces_common.messages.api import JobSummary, LinkProbeView, LinkView, NodeView, QueueEntry
from ces_common.messages.events import QueueStatusView
from ces_common.messages.membership import Applicant
from ces_common.messages.owner_calendar import OwnerCalendar, zone_of
from ces_common.messages.profiles import NodeProfile
from ces_common.messages.scores import NodeScores
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_common.states import JobState


def job_table(jobs: Sequence[JobSummary], now: datetime) -> Table:
    """With a column of deadlines where any job has one."""
    due = ("DEADLINE",) if any(job.deadline_at is not None for job in jobs) else ()
    columns = ("NAME", "ID", "STATE", "PRIO", "TASKS", "AGE", *due, "NODES")
    table = plain_table(*columns, right=("PRIO", "TASKS", "AGE"), optional=("PRIO", "TASKS", "AGE", *due, "NODES"))
    for job in jobs:
        state = state_text(job.state)
        if job.restarts:
            state.append(f" ({job.restarts} restart{'s' if job.restarts > 1 else ''})", style="yellow")
        nodes = ", ".join(job.nodes) if job.nodes else (job.reason or DASH)
        age = since(job.submitted_at, now)
        deadline = [deadline_text(job, now)] if due else []
        table.add_row(job.name, job.id, state, str(job.priority), str(job.tasks), age, *deadline, Text(nodes))
    return table


def node_table(nodes: Sequence[NodeView | Applicant], now: datetime) -> Table:
    """Devices that have applied are no nodes yet: little is known of them. A column of levels stands where any node has
    been measured."""
    level = ("LEVEL",) if any(isinstance(node, NodeView) and node.scores is not None for node in nodes) else ()
    columns = ("NAME", "STATE", "CPU", "MEMORY", "GPU", "ARCH", "RUNTIME", "NETWORK", "TASKS", "HEARD", *level)
    optional = (*level, "ARCH", "RUNTIME", "NETWORK", "GPU", "HEARD", "TASKS", "MEMORY")
    table = plain_table(*columns, right=("TASKS",), wrapped=(), optional=optional)
    for node in nodes:
        if isinstance(node, Applicant):
            unknown = (DASH, DASH, DASH)
            arch = node.arch or DASH
            table.add_row(node.name, state_text(node.state), *unknown, arch, *unknown, since(node.applied_at, now))
            continue
        table.add_row(
            node.name,
            _node_state(node),
            cpu_share(node.cpu_allocated, node.cpu),
            memory_share(node.memory_allocated, node.memory),
            f"{node.gpu_allocated:g}/{node.gpu}" if node.gpu else DASH,
            node.arch or DASH,
            node.runtime,
            node.network,
            str(len(node.allocations)),
            since(node.last_heartbeat, now),
            *([level_text(node.scores)] if level else []),
        )
    return table


def link_table(links: Sequence[LinkView]) -> Table:
    """DROPPED: packets for which a queue was full, which shaping does to senders that exceed their rate. ERRORS:
    packets that the device lost. Both are counted since the device was made. DELAY: as configured, where any is."""
    delay = ("DELAY",) if any(link.delay for link in links) else ()
    numbers = ("CAPACITY", *delay, "RESERVED", "USED", "DROPPED", "ERRORS", "RTT")
    optional = ("KIND", "RTT", "MEDIUM", "ERRORS", "DROPPED", "USED")
    columns = ("LINK", "STATE", *numbers, "KIND", "MEDIUM")
    table = plain_table(*columns, right=numbers, wrapped=("STATE",), optional=optional)
    for link in links:
        share = f" ({link.reserved / link.bandwidth:.0%})" if link.bandwidth and link.reserved else ""
        table.add_row(
            f"{link.src} › {link.dst}",
            _link_state(link),
            _capacity(link),
            *([f"{link.delay / 1000:g} ms"] if delay else []),
            rate(link.reserved) + share,
            rate(link.used),
            DASH if link.drops is None else str(link.drops),
            DASH if link.errors is None else str(link.errors),
            DASH if link.round_trip_s is None else f"{link.round_trip_s * 1000:.3g} ms",
            link.kind,
            link.medium or DASH,
        )
    return table


def probe_table(probes: Sequence[LinkProbeView]) -> Table:
    columns = ("CONFIGURED", "SENT", "RECEIVED", "MEASURED", "ROUND TRIP")
    table = plain_table("LINK", *columns, right=columns, wrapped=(), optional=("SENT", "CONFIGURED"))
    for probe in probes:
        table.add_row(
            f"{probe.src} › {probe.dst}",
            show_bandwidth(probe.bandwidth),
            rate(probe.sent),
            rate(probe.received),
            f"at least {rate(probe.received)}" if probe.measured is None else show_bandwidth(probe.measured),
            DASH if probe.round_trip_s is None else f"{probe.round_trip_s * 1000:.3g} ms",
        )
    return table


def _link_state(link: LinkView) -> Text:
    text = state_text(link.state)
    return text.append(f" ({link.reason})") if link.reason and link.state == "down" else text


def _capacity(link: LinkView) -> str:
    """``80 Mbit/s of 100 Mbit/s`` where less was measured than is configured."""
    if link.measured is None or link.measured >= link.bandwidth:
        return show_bandwidth(link.bandwidth)
    return f"{show_bandwidth(link.measured)} of {show_bandwidth(link.bandwidth)}"


def queue_table(entries: Sequence[QueueEntry], now: datetime) -> Table:
    """HELD BY: running jobs that have what a waiting one needs. With a column of deadlines where any job has one."""
    due = ("DEADLINE",) if any(entry.deadline_at is not None for entry in entries) else ()
    columns = ("#", "JOB", "TENANT", "PRIO", "WAITS", "SCORE", "WHY", "START", *due, "HELD BY")
    optional = ("TENANT", "SCORE", "PRIO", "HELD BY", "WAITS")
    table = plain_table(*columns, right=("#", "PRIO", "WAITS", "SCORE"), wrapped=("WHY", "HELD BY"), optional=optional)
    for entry in entries:
        queue_status = entry.queue_status
        holders = job_names(queue_status.holders) if queue_status is not None and queue_status.holders else DASH
        table.add_row(
            str(entry.position),
            entry.name,
            entry.tenant,
            str(entry.priority),
            since(entry.submitted_at, now),
            _score(queue_status),
            _why(entry),
            start_text(queue_status, now),
            *([DASH if entry.deadline_at is None else moment(entry.deadline_at, now)] if due else []),
            holders,
        )
    return table


def _score(queue_status: QueueStatusView | None) -> str:
    if queue_status is None:
        return DASH
    return "overdue" if queue_status.overdue else f"{queue_status.score.total:.2f}"


def _why(entry: QueueEntry) -> Text:
    """What stands in its way, or else what counts most in its score."""
    if entry.state is JobState.SUSPENDED:
        why = "" if entry.reason is None else f": {reason_text(entry.reason)}"
        return state_text(entry.state).append(why, style="default")
    if entry.reason is not None:
        return reason_text(entry.reason)
    if entry.queue_status is None:
        return Text("not tried yet", style="dim")
    return Text(f"not its turn yet: {dominant_part(entry.queue_status.score)}", style="dim")


def node_detail(node: NodeView, links: Sequence[LinkView], now: datetime) -> RenderableType:
    """A node with what runs on it and the links that leave or reach it."""
    head = Text(node.name, style="bold").append("  ").append_text(_node_state(node))
    used_cpu = DASH if node.cpu_used is None else show_cpu(round(node.cpu_used, -1))
    used_memory = DASH if node.memory_used is None else show_memory(node.memory_used)
    facts = [
        ("cpu", f"{cpu_share(node.cpu_allocated, node.cpu)} allocated, machine uses {used_cpu}"),
        ("memory", f"{memory_share(node.memory_allocated, node.memory)} allocated, machine uses {used_memory}"),
        ("gpu", f"{node.gpu_allocated:g}/{node.gpu} allocated"),
        ("architecture", node.arch or DASH),
        ("labels", ", ".join(f"{key}={value}" for key, value in sorted(node.labels.items())) or DASH),
        ("runtime", node.runtime),
        ("confines", confinement_text(node.runtime, node.network, node.confinement)),
        ("network", node.network + (" (nothing is enforced)" if node.network == "none" else "")),
        ("address", f"{node.host_address}, workers in {node.subnet}"),
        ("last heard", DASH if node.last_heartbeat is None else f"{since(node.last_heartbeat, now)} ago"),
        ("energy", energy_text(node.energy)),
        ("availability", availability_text(node.availability)),
        ("tasks", ", ".join(node.allocations) or DASH),
        *_score_facts(node.scores, now),
        *_profile_facts(node.profile),
        ("data", ", ".join(node.datasets) or DASH),
    ]
    if node.cards:
        facts[3:3] = [("card", card_text(card)) for card in node.cards]
    if node.calendar is not None:
        facts.append(("owner", calendar_text(node.calendar, now)))
    if node.warning is not None:
        facts.insert(0, ("warning", node.warning))
    parts: list[RenderableType] = [head, fact_list(facts)]
    if links:
        parts += [Text(), link_table(links)]
    learned = [
        (f"{link.src} › {link.dst}", availability_text(link.availability))
        for link in links
        if link.availability is not None
    ]
    if learned:
        parts += [Text("\navailability of links", style="bold"), fact_list(learned)]
    return Group(*parts)


def _score_facts(scores: NodeScores | None, now: datetime) -> list[tuple[str, str]]:
    if scores is None:
        return [("level", "not measured")]
    return [
        ("level", f"{level_text(scores)} of 10, measured {since(scores.at, now)} ago"),
        ("scores", ", ".join(category_text(each) for each in scores.categories) or DASH),
        *(("measured", raw_text(each)) for each in scores.raw),
    ]


def _profile_facts(profile: NodeProfile | None) -> list[tuple[str, str]]:
    """Where it is and what it draws, as far as its agent was told."""
    facts = []
    if profile is not None and profile.position is not None:
        reach = "reaches nobody" if profile.coverage is None else f"reaches {profile.coverage:g} m"
        facts.append(("position", f"{profile.position.lat:g}, {profile.position.lon:g}, {reach}"))
    if profile is not None and profile.power:
        facts.append(("power", f"{profile.power[0]:g} W without work, {profile.power[-1]:g} W at full load (said)"))
    return facts


def calendar_text(calendar: OwnerCalendar | None, now: datetime) -> str:
    """When a node's owner usually needs it, and when next."""
    if calendar is None:
        return "when its owner needs it is not known"
    usually = f"usually needs it {calendar.times} ({calendar.zone})"
    try:
        expected_at = calendar.expected_at(now)
        local = expected_at.astimezone(zone_of(calendar.zone))
    except ValueError:  # of a manager that knows more than this machine
        return usually
    return f"{usually}, {'now' if expected_at <= now else f'next on {local:%a %H:%M}'}"


def _node_state(node: NodeView) -> Text:
    text = state_text(node.state)
    if node.cordoned:
        text.append(" cordoned", style="yellow")
    if node.reclaimed:
        text.append(" reclaimed", style="yellow")
    if node.warning is not None:
        text.append(" contested", style="red")
    return text
