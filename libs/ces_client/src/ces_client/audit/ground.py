"""What a log does not tell, and an audit must know."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

Hop = tuple[str, str]
Amounts = tuple[int, int, int]  # millicores, bytes, GPUs


@dataclass(frozen=True)
class Asked:
    """What a job asked for, task by task. ``expected_s``: for how long it says it runs; None where it does not say.
    ``suspendable``: whether it lets itself be frozen for a more urgent job; None where nobody knows."""

    tasks: Mapping[str, Amounts]
    expected_s: float | None = None
    suspendable: bool | None = None


@dataclass(frozen=True)
class Ground:
    """What there is. ``links`` and ``media``: their capacity in bit/s; where ``links`` is None nobody knows them, and
    flows are not judged. ``tunnelled``: the media that tunnels share. ``jobs``: by id, or by name. ``nodes``: what
    those have that joined before the log begins.
    """

    links: Mapping[Hop, int] | None = None
    media: Mapping[str, int] = field(default_factory=dict)
    medium_of: Mapping[Hop, str] = field(default_factory=dict)
    tunnelled: Set[str] = frozenset()
    jobs: Mapping[str, Asked] = field(default_factory=dict)
    nodes: Mapping[str, Amounts] = field(default_factory=dict)

    def asked(self, job: str, name: str) -> Asked | None:
        """None where nobody knows."""
        return self.jobs.get(job) or self.jobs.get(name)
