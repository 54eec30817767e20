"""Every kind of message that an agent may send, with a good one to begin from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ces_common import subjects
from ces_common.messages.agent_queries import CredentialQuery, LinkProbed, LogAnswer
from ces_common.messages.base import Message
from ces_common.messages.checkpoints import CheckpointReport
from ces_common.messages.confinement import ConfinementReport
from ces_common.messages.reports import Applied, DataReport, Heartbeat, LinkReport, Progress, Status
from ces_common.messages.scores import ScoreReport
from ces_common.messages.secrets import SecretsQuery
from ces_common.messages.traces import SpanBatch


@dataclass(frozen=True)
class Kind:
    """``model``: None where the subject says it all. ``at``: where it is sent, ``{}`` standing for the node; for
    ``answers``, where the question comes from. ``good``: the fields of a good one but the node's name. ``per_s``: how
    many of one node are read; beyond that they are dropped before anybody looks into them."""

    name: str
    model: type[Message] | None
    at: str
    good: Mapping[str, Any] = field(default_factory=dict)
    per_s: float = 50.0
    answers: bool = False

    @property
    def names_its_node(self) -> bool:
        return self.model is not None and "node" in self.model.model_fields

    def sample(self, node: str) -> dict[str, Any]:
        return {**({"node": node} if self.names_its_node else {}), **self.good}

    def subject(self, node: str) -> str:
        return self.at.format(subjects.node_name(node))


_FLOW = {
    "number": 1, "job": "j.1", "measured": 1e6, "peak": 2e6, "total": 10**9, "drops": 3, "waited": 0.5, "rate": 10**7,
}  # fmt: skip
_LINK = {"peer": "n1", "sent": 1e6, "received": 1e6, "drops": 0, "errors": 0, "round_trip_s": 0.001}
_CHECKPOINT = {"attempt": 1, "incarnation": 1, "name": "step-7", "size": 9, "digest": "0a" * 32}
_WORKER = {"allocation": "a", "incarnation": 1, "state": "exited", "exit_code": 1, "reason": "it ended", "pid": 7}
_KEY = "U" + "A" * 55

KINDS = (
    Kind(
        "heartbeat", Heartbeat, f"{subjects.PREFIX}.hb.{{}}",
        {
            "boot": "b", "machine": "m", "cpu": 100.0, "memory": 2**20, "flows": [_FLOW], "links": [_LINK],
            "workers": [{"allocation": "a", "cpu": 1.0, "memory": 1}],
        },
        per_s=10,
    ),
    Kind(
        "status", Status, f"{subjects.PREFIX}.agent.{{}}.status",
        {"epoch": "e", "generation": 1, "workers": [_WORKER]},
    ),
    Kind(
        "applied", Applied, f"{subjects.PREFIX}.agent.{{}}.applied",
        {"generation": 1, "jobs": ["j.1"], "failed": {"j.2": "no room"}},
    ),
    Kind(
        "links", LinkReport, f"{subjects.PREFIX}.agent.{{}}.links",
        {
            "links": [{"peer": "n1", "state": "down", "reason": "no echo"}],
            "encryption": {"keys": ["A" * 43 + "="], "port": 51820},
        },
    ),
    Kind("data", DataReport, f"{subjects.PREFIX}.agent.{{}}.data", {"port": 8000, "datasets": ["mnist"]}),
    Kind(
        "confinement", ConfinementReport, f"{subjects.PREFIX}.agent.{{}}.confinement",
        {"confinement": {"user": "shared", "filter": False, "root": "writable", "disk": "unbounded"}},
    ),
    Kind(
        "scores", ScoreReport, f"{subjects.PREFIX}.agent.{{}}.scores",
        {"measurements": [{"kind": "integer", "threads": 2, "rates": [1e4, 1e4], "others": 0.01, "source": "pow"}]},
    ),
    Kind(
        "checkpoints", CheckpointReport, f"{subjects.PREFIX}.agent.{{}}.checkpoints",
        {
            "packed": [{"job": "j", "checkpoint": _CHECKPOINT}],
            "held": [{"job": "j", "digests": ["0a" * 32]}],
            "begun": [{"job": "j", "attempt": 2, "incarnation": 1, "source": "n1", "name": "step-7", "reason": "late"}],
        },
    ),
    Kind(
        "progress", Progress, f"{subjects.PREFIX}.agent.{{}}.progress",
        {"allocation": "a", "job": "j", "task": "t", "data": {"round": 1, "loss": 0.5, "more": {"a": [1]}}},
        per_s=500,
    ),
    Kind("renewal", CredentialQuery, f"{subjects.PREFIX}.renew.{{}}", {"public_key": _KEY}, per_s=1),
    Kind("secrets", SecretsQuery, f"{subjects.PREFIX}.secrets.{{}}", {"allocation": "a", "incarnation": 1}, per_s=20),
    Kind(
        "spans", SpanBatch, f"{subjects.PREFIX}.spans.{{}}",
        {
            "service": "edge-agent",
            "spans": [
                {
                    "trace": "0a" * 16, "span": "0b" * 8, "parent": "0c" * 8, "name": "start worker", "job": "j",
                    "attempt": 1, "start_us": 1, "duration_us": 2, "attributes": {"task": "t"},
                }
            ],
        },
        per_s=5,
    ),
    Kind("fetch of compute", None, f"{subjects.PREFIX}.fetch.{{}}.compute", per_s=2),
    Kind("fetch of network", None, f"{subjects.PREFIX}.fetch.{{}}.network", per_s=2),
    Kind(
        "answer about a log", LogAnswer, f"{subjects.PREFIX}.rpc.agent.{{}}.logs",
        {"found": True, "offset": 3, "text": "abc", "complete": False}, answers=True,
    ),
    Kind(
        "answer about a link", LinkProbed, f"{subjects.PREFIX}.rpc.agent.{{}}.probe",
        {"rate": 1e6, "round_trip_s": 0.001}, answers=True,
    ),
)  # fmt: skip
SAID = tuple(kind for kind in KINDS if not kind.answers)
