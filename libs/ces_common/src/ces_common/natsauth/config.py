"""The nats-server configuration for a cluster of CES."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ces_common.natsauth.patience import BEGIN_S, PING_EVERY_S, UNANSWERED_PINGS
from ces_common.natsauth.regions import Leaf
from ces_common.natsauth.trust import Trust

MAX_PAYLOAD: Final = 8 * 1024 * 1024  # bytes


def server_config(
    trust: Trust,
    *,
    store_dir: Path | str,
    host: str = "127.0.0.1",
    port: int = 4222,
    monitor_port: int | None = None,
    certificate: Path | None = None,
    leaf: Leaf | None = None,
) -> str:
    """A configuration file's text; it holds no secret. Port -1: any free one. ``certificate``: the server's file (see
    :mod:`ces_common.tls.certificates`); without one, connections are in the clear. ``leaf``: how it takes part in a
    federation of regions; JetStream then has the region's name as its domain.

    With a certificate, a connection begins with TLS: a client that waited for the server's first words could be told
    that no TLS is needed.

    JetStream keeps its default of syncing to disk every two minutes. ``sync_interval: always`` would keep every
    acknowledged fact through a power cut, at the price of a disk write each; CES does not need it, since the database
    is the truth and the controllers read it again.
    """
    domain = "" if leaf is None else f", domain: {leaf.region}"
    lines = [
        f"host: {json.dumps(host)}",
        f"port: {port}",
        *([f"http: {json.dumps(f'{host}:{monitor_port}')}"] if monitor_port is not None else []),
        f"max_payload: {MAX_PAYLOAD}",
        f'ping_interval: "{PING_EVERY_S}s"',
        f"ping_max: {UNANSWERED_PINGS}",
        *(_tls(certificate) if certificate is not None else []),
        *([f"server_name: {leaf.region}", *leaf.config()] if leaf is not None else []),
        f"jetstream {{ store_dir: {json.dumps(str(store_dir))}{domain} }}",
        f"operator: {trust.operator_jwt}",
        f"system_account: {trust.system_account}",
        # Kept in a folder, so that the manager can replace the account's JWT by one that lists revoked users.
        f"resolver: {{ type: full, dir: {json.dumps(f'{store_dir}/accounts')}, allow_delete: false }}",
        "resolver_preload: {",
        f"  {trust.system_account}: {trust.system_account_jwt}",
        f"  {trust.account}: {trust.account_jwt}",
        *([f"  {leaf.account}: {leaf.account_jwt}"] if leaf is not None else []),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _tls(certificate: Path) -> list[str]:
    file = json.dumps(str(certificate))
    return [f"tls {{ cert_file: {file}, key_file: {file}, handshake_first: true, timeout: {BEGIN_S} }}"]
