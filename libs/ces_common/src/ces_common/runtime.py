"""The kinds of runtimes that a node's workers may run on."""

from __future__ import annotations

from enum import StrEnum


class RuntimeKind(StrEnum):
    PROCESS = "process"
    DOCKER = "docker"
