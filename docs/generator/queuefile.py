"""The fields of the queue's file, from its models."""

from __future__ import annotations

from ces_common.fields import Document
from ces_common.queuefile import ClusterShares, QueueFile, TenantEntry, Weights
from generator import fields
from generator.words import QUEUE_FIELDS

PARTS: dict[str, type[Document]] = {
    "The file": QueueFile,
    "`weights`": Weights,
    "`tenants[]`": TenantEntry,
    "`guaranteed` and `quota`": ClusterShares,
}


def tables() -> str:
    return fields.tables(PARTS, QUEUE_FIELDS)


def unexplained() -> list[str]:
    return fields.unexplained(PARTS, QUEUE_FIELDS)
