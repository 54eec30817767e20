"""What must be the same after an attack as before it, and how two looks at it differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from ces_client import Client
from ces_testbed.cluster import Cluster

FAILED: Final = (
    "Traceback (most recent call last)", "handler failed", "a batch failed", "cannot be taken in",
    "a batch of requests failed", "a request failed", "could not be renewed",
)  # fmt: skip
OF_A_NODE: Final = (
    "name", "state", "cordoned", "reclaimed", "cpu", "memory", "gpu", "arch", "labels", "runtime", "network",
    "host_address", "subnet", "datasets",
)  # fmt: skip
MONITOR_S: Final = 20.0


@dataclass(frozen=True)
class Look:
    """``starts``: how often each service was started. ``streams``: what each is, its consumers, and the numbers of its
    first and last message. ``nodes``: what the manager says of each honest node. ``failures``: lines of each service's
    log that tell of one."""

    starts: Mapping[str, int]
    streams: Mapping[str, Mapping[str, Any]]
    nodes: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, int]


def look(cluster: Cluster, client: Client, rogue: str) -> Look:
    """Raises httpx.HTTPError, ces_client's errors."""
    views = {view.name: view.model_dump(mode="json") for view in client.nodes.list() if view.name != rogue}
    services = [name for name in cluster.supervisor.names() if name != f"agent-{rogue}"]
    return Look(
        starts={name: cluster.supervisor.starts(name) for name in services},
        streams=_streams(cluster),
        nodes={name: {key: view[key] for key in OF_A_NODE} for name, view in views.items()},
        failures={name: failures(cluster.files.log(name)) for name in services},
    )


def failures(log: Path) -> int:
    with log.open(encoding="utf-8", errors="replace") as lines:
        return sum(any(words in line for words in FAILED) for line in lines)


def _streams(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """As the broker's own monitor tells them."""
    url = f"http://{cluster.layout.host}:{cluster.layout.ports.nats_monitor}/jsz"
    asked = {"streams": "1", "consumers": "1", "config": "1", "accounts": "1"}
    with httpx.Client(timeout=MONITOR_S, trust_env=False) as http:
        accounts = http.get(url, params=asked).raise_for_status().json().get("account_details", [])
    return {
        stream["name"]: {
            "config": stream["config"],
            "consumers": sorted(consumer["name"] for consumer in stream.get("consumer_detail") or []),
            "first": stream["state"]["first_seq"],
            "last": stream["state"]["last_seq"],
        }
        for account in accounts
        for stream in account.get("stream_detail") or []
    }


def differences(before: Look, after: Look) -> Iterator[str]:
    """What has changed that no attack may change. Pure."""
    for name, starts in after.starts.items():
        if starts != before.starts[name]:
            yield f"{name} has started {starts - before.starts[name]} times"
        if count := after.failures[name] - before.failures[name]:
            yield f"the log of {name} tells of {count} failures"
    for name, was in before.streams.items():
        now = after.streams.get(name)
        if now is None:
            yield f"stream {name} is gone"
            continue
        for key in ("config", "consumers", "first"):
            if now[key] != was[key]:
                yield f"stream {name}: {key} was {was[key]} and is {now[key]}"
        if now["last"] < was["last"]:
            yield f"stream {name} has lost its last messages"
    for name, node in before.nodes.items():
        for key, value in node.items():
            if (found := after.nodes.get(name, {}).get(key)) != value:
                yield f"node {name}: {key} was {value} and is {found}"
