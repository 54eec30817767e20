"""Subjects that are none of an agent's business. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ces_common import subjects

STREAMS: Final = (subjects.EVENT_STREAM, subjects.DEAD_STREAM, subjects.DESIRED_STREAM)
_OF_A_STREAM: Final = (
    "CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "SNAPSHOT", "RESTORE", "MSG.GET", "MSG.DELETE", "LEADER.STEPDOWN",
    "PEER.REMOVE",
)  # fmt: skip
_OF_A_CONSUMER: Final = (
    "CREATE", "DURABLE.CREATE", "INFO", "DELETE", "MSG.NEXT", "LEADER.STEPDOWN", "PAUSE", "UNPIN",
)  # fmt: skip
_OF_ALL: Final = ("INFO", "STREAM.NAMES", "STREAM.LIST", "ACCOUNT.PURGE.x", "SERVER.REMOVE", "META.LEADER.STEPDOWN")
SYSTEM: Final = (
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.SERVER.PING.RELOAD",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
    "$SYS.REQ.USER.INFO",
    "$SYS.REQ.CLAIMS.UPDATE",
    "$SYS.REQ.CLAIMS.DELETE",
    "$SYS._INBOX.x",
)


def jetstream() -> Iterator[str]:
    """Every verb of the JetStream API, on every stream of ours."""
    yield from (f"$JS.API.{verb}" for verb in _OF_ALL)
    yield "$JS.ACK.CES_EVT.manager.1.1.1.1.1"
    for stream in STREAMS:
        yield from (f"$JS.API.STREAM.{verb}.{stream}" for verb in _OF_A_STREAM)
        yield from (f"$JS.API.CONSUMER.{verb}.{stream}.manager" for verb in _OF_A_CONSUMER)
        yield from (f"$JS.API.{verb}.{stream}" for verb in ("CONSUMER.NAMES", "CONSUMER.LIST", "DIRECT.GET"))


def of_services(node: str, others: Sequence[str]) -> Iterator[str]:
    """Questions, events, documents and inboxes."""
    yield from (subjects.rpc("manager", each) for each in ("snapshot", "alive", "measured", "news"))
    yield from (subjects.rpc("scheduler", each) for each in ("plan", "queue"))
    yield from (subjects.agent_rpc(name, "logs") for name in (node, *others))
    for aggregate, fact in (("plan", "proposed"), ("network", "ready"), ("job", "failed"), ("preemption", "proposed")):
        yield subjects.event(aggregate, fact, "x")
    yield subjects.dead_letter("manager")
    for name in (node, *others):
        key = subjects.desired_key(name, "compute")
        yield from (subjects.desired_subject(key), subjects.desired_change(key))
    yield from (f"{subjects.inbox_prefix(name)}.1" for name in others)


def patterns(others: Sequence[str]) -> Iterator[str]:
    """What it may not listen to."""
    yield from (">", "*.>", f"{subjects.PREFIX}.>", subjects.ALL_HEARTBEATS, subjects.ALL_REPORTS, subjects.ALL_EVENTS)
    yield from (f"{subjects.PREFIX}.rpc.>", "_INBOX.>", "$SYS.>", "$JS.>", "$KV.>")
    for name in others:
        yield from (subjects.desired_changes(name), f"{subjects.inbox_prefix(name)}.>")
