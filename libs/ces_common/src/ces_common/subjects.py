"""Every subject, stream, bucket and key name on the bus: built here, taken apart here, nowhere else.

All builders refuse a name that is not one plain token (letters, digits, ``_`` and ``-``), so that no input can
smuggle a wildcard or another level into a subject.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeVar

PREFIX: Final = "ces.v1"
EVENT_STREAM: Final = "CES_EVT"
DEAD_STREAM: Final = "CES_DEAD"
MANAGER_PLANS: Final = "manager"  # the manager's durable consumers
MANAGER_NETWORKS: Final = "manager-networks"
MANAGER_REFUSALS: Final = "manager-refusals"
MANAGER_DURABLES: Final = (MANAGER_PLANS, MANAGER_NETWORKS, MANAGER_REFUSALS)
ALL_EVENTS: Final = f"{PREFIX}.evt.>"
ALL_DEAD: Final = f"{PREFIX}.dead.>"
ALL_HEARTBEATS: Final = f"{PREFIX}.hb.*"
ALL_REPORTS: Final = f"{PREFIX}.agent.*.*"
ALL_FETCHES: Final = f"{PREFIX}.fetch.*.*"
ALL_RENEWALS: Final = f"{PREFIX}.renew.*"
ALL_SECRETS: Final = f"{PREFIX}.secrets.*"
ALL_SPANS: Final = f"{PREFIX}.spans.*"

ANY: Final = "*"
REGIONS: Final = "ces.regions.v1"  # on the wire between regions, which no account of a cluster is part of

DESIRED_BUCKET: Final = "ces_desired"
DESIRED_STREAM: Final = f"KV_{DESIRED_BUCKET}"
DESIRED_PREFIX: Final = f"$KV.{DESIRED_BUCKET}"
DESIRED_CHANGES: Final = f"{PREFIX}.desired"  # under which the server tells what was stored under DESIRED_PREFIX

ReportKind = Literal["status", "applied", "progress", "links", "data", "confinement", "checkpoints", "scores"]
REPORT_KINDS: Final[tuple[ReportKind, ...]] = (
    "status",
    "applied",
    "progress",
    "links",
    "data",
    "confinement",
    "checkpoints",
    "scores",
)
DesiredKind = Literal["compute", "network"]
DESIRED_KINDS: Final[tuple[DesiredKind, ...]] = ("compute", "network")

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,128}")
_Kind = TypeVar("_Kind", bound=str)
_REGION = re.compile(r"[a-z0-9]{1,16}")
_NODE = re.compile(r"[A-Za-z0-9_-]{1,63}")


class BadName(ValueError):
    """A name that cannot be part of a subject."""


def token(value: str, what: str = "name") -> str:
    """``value`` if it is one plain subject token. Raises BadName."""
    if not _TOKEN.fullmatch(value):
        raise BadName(f"{value!r} is no {what}: use 1 to 128 letters, digits, '_' or '-'")
    return value


def node_name(value: str) -> str:
    """``value`` if it can name a node. Raises BadName."""
    if not _NODE.fullmatch(value):
        raise BadName(f"{value!r} is no node name: use 1 to 63 letters, digits, '_' or '-'")
    return value


def event(aggregate: str, type_: str, id_: str) -> str:
    """The subject of one fact, for example ``ces.v1.evt.job.queued.01J...``."""
    return f"{PREFIX}.evt.{token(aggregate, 'aggregate')}.{token(type_, 'event type')}.{token(id_, 'id')}"


def events(aggregate: str, type_: str | None = None) -> str:
    """A pattern for all facts of an aggregate, or those of one type."""
    pattern = f"{PREFIX}.evt.{token(aggregate, 'aggregate')}"
    return f"{pattern}.{token(type_, 'event type')}.>" if type_ is not None else f"{pattern}.>"


def link_id(src: str, dst: str) -> str:
    """Stands for a directed link where facts about it need an id."""
    return f"{node_name(src)}--{node_name(dst)}"


def heartbeat(node: str) -> str:
    return f"{PREFIX}.hb.{node_name(node)}"


def parse_heartbeat(subject: str) -> str:
    """The node whose heartbeat it is. Raises BadName."""
    (node,) = _rest(subject, "hb", 1)
    return node_name(node)


def fetch(node: str, kind: DesiredKind) -> str:
    """The subject on which a node asks for its own desired state."""
    return f"{PREFIX}.fetch.{desired_key(node, kind)}"


def parse_fetch(subject: str) -> str:
    """The key that is asked for. Raises BadName."""
    key = ".".join(_rest(subject, "fetch", 2))
    parse_desired_key(key)
    return key


def renewal(node: str) -> str:
    """The subject on which a node asks for a credential that ends later."""
    return f"{PREFIX}.renew.{node_name(node)}"


def parse_renewal(subject: str) -> str:
    """The node that asks. Raises BadName."""
    (node,) = _rest(subject, "renew", 1)
    return node_name(node)


def secrets(node: str) -> str:
    """The subject on which a node asks for the secrets of a task that it is to start."""
    return f"{PREFIX}.secrets.{node_name(node)}"


def parse_secrets(subject: str) -> str:
    """The node that asks. Raises BadName."""
    (node,) = _rest(subject, "secrets", 1)
    return node_name(node)


def spans(node: str) -> str:
    """The subject on which a node's agent tells what it did for traced jobs."""
    return f"{PREFIX}.spans.{node_name(node)}"


def parse_spans(subject: str) -> str:
    """The node that tells. Raises BadName."""
    (node,) = _rest(subject, "spans", 1)
    return node_name(node)


def report(node: str, kind: ReportKind) -> str:
    """The subject an agent reports on about itself."""
    return f"{PREFIX}.agent.{node_name(node)}.{_one_of(kind, REPORT_KINDS, 'report')}"


def reports(kind: ReportKind) -> str:
    """A pattern for one kind of report from every node."""
    return f"{PREFIX}.agent.*.{_one_of(kind, REPORT_KINDS, 'report')}"


def parse_report(subject: str) -> tuple[str, ReportKind]:
    """The node and the kind of an agent's report. Raises BadName."""
    node, kind = _rest(subject, "agent", 2)
    return node_name(node), _one_of(kind, REPORT_KINDS, "report")


def rpc(service: str, operation: str) -> str:
    """The subject of a service's query, for example ``ces.v1.rpc.manager.snapshot``."""
    if service == "agent":
        raise BadName("an agent's queries carry its node: use agent_rpc")
    return f"{PREFIX}.rpc.{token(service, 'service')}.{token(operation, 'operation')}"


def agent_rpc(node: str, operation: str) -> str:
    return f"{PREFIX}.rpc.agent.{node_name(node)}.{token(operation, 'operation')}"


def dead_letter(service: str) -> str:
    """Where a service's messages go that it could not handle."""
    return f"{PREFIX}.dead.{token(service, 'service')}"


def desired_key(node: str, kind: DesiredKind) -> str:
    """The key of a node's desired state in the bucket, for example ``edge-1.compute``."""
    return f"{node_name(node)}.{_one_of(kind, DESIRED_KINDS, 'desired state')}"


def parse_desired_key(key: str) -> tuple[str, DesiredKind]:
    """The node and the kind of a desired state's key. Raises BadName."""
    node, dot, kind = key.partition(".")
    if not dot:
        raise BadName(f"{key!r} is no desired-state key")
    return node_name(node), _one_of(kind, DESIRED_KINDS, "desired state")


def desired_subject(key: str) -> str:
    """The subject under which a key is stored. Raises BadName for a key that is not of the bucket."""
    parse_desired_key(key)
    return f"{DESIRED_PREFIX}.{key}"


def desired_change(key: str) -> str:
    """The subject that carries a key's changes. Raises BadName for a key that is not of the bucket."""
    parse_desired_key(key)
    return f"{DESIRED_CHANGES}.{key}"


def desired_changes(node: str) -> str:
    """A pattern for the changes of all keys of one node."""
    return f"{DESIRED_CHANGES}.{node_name(node)}.*"


def parse_desired_change(subject: str) -> str:
    """The key whose change ``subject`` carries. Raises BadName."""
    key = ".".join(_rest(subject, "desired", 2))
    parse_desired_key(key)
    return key


def region_name(value: str) -> str:
    """``value`` if it can name a region. Raises BadName."""
    if not _REGION.fullmatch(value):
        raise BadName(f"{value!r} is no region's name: use 1 to 16 lower-case letters and digits")
    return value


def of_region(to: str, by: str) -> str:
    """A pattern for all that one region says to another; ``ANY`` stands for every region."""
    ends = [end if end == ANY else region_name(end) for end in (to, by)]
    return f"{REGIONS}.{'.'.join(ends)}.>"


def between_regions(to: str, by: str, operation: str, id_: str) -> str:
    """The subject of one message that a region says to another. Answers have the operation ``answer`` and the id of
    what they answer."""
    ends = f"{region_name(to)}.{region_name(by)}"
    return f"{REGIONS}.{ends}.{token(operation, 'operation')}.{token(id_, 'id')}"


def parse_between_regions(subject: str) -> tuple[str, str, str, str]:
    """To whom, by whom, which operation, and its id. Raises BadName."""
    head, _, rest = subject.partition(f"{REGIONS}.")
    parts = rest.split(".")
    if head or len(parts) != 4:
        raise BadName(f"{subject!r} is no message between regions")
    to, by, operation, id_ = parts
    return region_name(to), region_name(by), token(operation, "operation"), token(id_, "id")


def inbox_prefix(name: str) -> str:
    """Under which the replies to ``name`` come; its credentials admit no other."""
    return f"_INBOX.{token(name)}"


def answered_to(subject: str) -> str:
    """How the reply subject of a request on ``subject`` must begin: with the node's own inbox where nodes ask, with
    any inbox where services do."""
    family, _, rest = subject.removeprefix(f"{PREFIX}.").partition(".")
    nodes_ask = family in ("hb", "fetch", "renew", "secrets", "spans")
    return f"{inbox_prefix(rest.partition('.')[0])}." if nodes_ask else "_INBOX."


def stream_of(subject: str) -> str:
    """The stream that stores ``subject`` (or every match of it, for a pattern). Raises BadName."""
    for stream, pattern in ((EVENT_STREAM, ALL_EVENTS), (DEAD_STREAM, ALL_DEAD)):
        if subject.startswith(pattern.removesuffix(">")):
            return stream
    raise BadName(f"{subject!r} is in no stream")


def matches(pattern: str, subject: str) -> bool:
    """Whether ``subject`` falls under ``pattern`` (``*``: one token, ``>``: one or more at the end)."""
    desired, given = pattern.split("."), subject.split(".")
    for i, part in enumerate(desired):
        if part == ">":
            return len(given) > i
        if i >= len(given) or part not in ("*", given[i]):
            return False
    return len(desired) == len(given)


def _rest(subject: str, family: str, count: int) -> list[str]:
    head = f"{PREFIX}.{family}."
    parts = subject[len(head) :].split(".") if subject.startswith(head) else []
    if len(parts) != count:
        raise BadName(f"{subject!r} is not of the form {head}" + ".".join(["<name>"] * count))
    return [token(part) for part in parts]


def _one_of(value: str, allowed: tuple[_Kind, ...], what: str) -> _Kind:
    for each in allowed:
        if each == value:
            return each
    raise BadName(f"{value!r} is no {what}: use one of {', '.join(allowed)}")
